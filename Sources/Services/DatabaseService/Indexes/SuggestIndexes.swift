package import DocumentModel
import DocumentStore
import FixtureTree
import QueryEngine

/// The indexes suggested for the queries that a database has served.
package struct IndexSuggestions: Sendable {
  /// A configuration with which production would answer every recorded query.
  package var configuration: IndexConfiguration
  /// The number of declarations added or extended.
  package var added: Int
  /// The number of recorded query shapes.
  package var queries: Int
  /// Whether all query shapes were recorded, and a single file can declare all their indexes.
  package var isComplete: Bool

  /// The index file that declares ``configuration``.
  package var file: [UInt8] { IndexFile.text(of: configuration) }
}

extension FirestoreService {
  /// Reads the declarations of an index file.
  /// - Throws: `INVALID_ARGUMENT` with the position of the first error.
  package static func indexConfiguration(_ file: [UInt8]) throws -> IndexConfiguration {
    do { return try IndexFile.read(ByteSource(file, name: "the index file")) } catch {
      throw Status(.invalidArgument, error.description)
    }
  }

  /// Returns the indexes of a database besides the automatic ones, with their states. For administrators.
  /// - Throws: `NOT_FOUND` if the database is not served; `PERMISSION_DENIED` if the caller is not an administrator
  ///   and rules apply.
  package func indexReports(in id: DatabaseID, as caller: Caller) throws -> [IndexReport] {
    return try access(to: id, as: caller, creates: false).administrator().database.indexReports()
  }

  /// Returns an index file with which production would answer every query that this database has served since the
  /// start. It contains the declarations of `base`, or otherwise those of the database, and the missing ones. For
  /// administrators.
  ///
  /// Cost: one or two passes over the declarations of the collection for each query shape.
  /// - Throws: `NOT_FOUND` if the database is not served; `PERMISSION_DENIED` if the caller is not an administrator
  ///   and rules apply.
  package func suggestIndexes(
    _ base: IndexConfiguration?, in id: DatabaseID, as caller: Caller
  ) throws -> IndexSuggestions {
    let database = try access(to: id, as: caller, creates: false).administrator().database
    var configuration = try base ?? database.declaredIndexes()
    let (needs, isComplete) = seenQueries.needs(in: id)
    // Sort, so that the result does not depend on the order of the queries.
    let open = needs.compactMap { needs -> (needs: IndexNeeds, key: String)? in
      let missing = needs.missing(in: configuration)
      return missing.isEmpty ? nil : (needs, missing.map(\.description).joined(separator: "; "))
    }.sorted { $0.key < $1.key }
    var added = 0
    var hasRoom = true
    for (needs, _) in open {
      // An index added for an earlier query may also serve this one.
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
  /// Adds a declaration. The declared entries of a single field are kept.
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

  /// Returns the complete declaration of a field: its present entries and the wanted ones.
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
