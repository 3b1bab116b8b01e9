package import DocumentModel
package import DocumentStore
import FixtureTree
import QueryEngine

/// The answer to a call for suggestions.
package struct IndexSuggestions: Sendable {
  /// What an index file must declare so that the service in production answers every query that was seen.
  package var configuration: IndexConfiguration
  /// How many declarations were added or extended.
  package var added: Int
  /// How many shapes of queries were seen.
  package var queries: Int
  /// Whether every shape could be remembered and one file holds what they all want.
  package var isComplete: Bool

  /// The index file that declares ``configuration``.
  package var file: [UInt8] { IndexFile.text(of: configuration) }
}

extension FirestoreService {
  /// What an index file declares.
  /// - Throws: `INVALID_ARGUMENT` with the place of the first mistake.
  package static func indexConfiguration(_ file: [UInt8]) throws -> IndexConfiguration {
    do { return try IndexFile.read(ByteSource(file, name: "the index file")) } catch {
      throw Status(.invalidArgument, error.description)
    }
  }

  /// Which indexes a database has beyond the automatic ones, and how far each is; for administrators.
  /// - Throws: `NOT_FOUND` where the database is not served.
  package func indexReports(in id: DatabaseID, as caller: Caller) throws -> [IndexReport] {
    let access = try access(to: id, as: caller)
    try access.requireAdmin()
    return try access.database.indexReports()
  }

  /// What an index file must declare so that the service in production answers every query this database has served
  /// since the start: what `base` declares, or else what the database has, and what is missing there. For
  /// administrators.
  ///
  /// Cost: goes through the declarations of the collection once or twice for each shape of query.
  /// - Throws: `NOT_FOUND` where the database is not served.
  package func suggestIndexes(
    _ base: IndexConfiguration?, in id: DatabaseID, as caller: Caller
  ) throws -> IndexSuggestions {
    let access = try access(to: id, as: caller)
    try access.requireAdmin()
    let database = access.database
    var configuration = try base ?? database.declaredIndexes()
    let (needs, isComplete) = seenQueries.needs(in: id)
    // In an order that does not depend on when a query came.
    let open = needs.compactMap { needs -> (needs: IndexNeeds, key: String)? in
      let missing = needs.missing(in: configuration)
      return missing.isEmpty ? nil : (needs, missing.map(\.description).joined(separator: "; "))
    }.sorted { $0.key < $1.key }
    var added = 0
    var hasRoom = true
    for (needs, _) in open {
      // What was added for one query may serve the next.
      for index in needs.missing(in: configuration) {
        hasRoom =
          configuration.indexes.count < IndexFile.declarationsMax
          && configuration.fields.count < IndexFile.declarationsMax
        guard hasRoom else { break }
        configuration.add(index)
        added += 1
      }
    }
    return IndexSuggestions(
      configuration: configuration, added: added, queries: needs.count, isComplete: isComplete && hasRoom)
  }
}

extension IndexConfiguration {
  /// Declares an index beside the others. Of a field by itself what it has stays.
  mutating func add(_ index: RequiredIndex) {
    switch index {
    case .composite(let definition): indexes.append(definition)
    case .field(let wanted):
      let declaration = declaration(of: wanted)
      if let place = fields.firstIndex(where: { $0.isSameField(as: wanted) }) {
        fields[place] = declaration
      } else {
        fields.append(declaration)
      }
    }
  }

  /// The whole declaration of a field that has what it has now and what is wanted.
  func declaration(of wanted: FieldIndexing) -> FieldIndexing {
    var declaration =
      fields.first { $0.isSameField(as: wanted) }
      ?? FieldIndexing(
        collectionID: wanted.collectionID, path: wanted.path,
        entries: entries(of: wanted.path, in: wanted.collectionID))
    declaration.entries.formUnion(wanted.entries)
    return declaration
  }
}

extension FieldIndexing {
  fileprivate func isSameField(as other: FieldIndexing) -> Bool {
    path == other.path && collectionID.utf8.elementsEqual(other.collectionID.utf8)
  }
}
