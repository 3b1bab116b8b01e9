import DocumentModel
import DocumentStore
import KeyValue
import Matching

/// The documents in the query's collections that have changed since the version that the query reads.
///
/// Index entries show the current state. The query ignores the entries of documents that changed after the version,
/// and puts their states at the version in the right position of the order. The change log says which documents
/// these are.
struct ChangeOverlay {
  private let scope: QueryPlan.Scope
  private let changesMax: Int
  /// Changes up to this version have been taken.
  private var taken: Int64
  private var known: Set<ChangedDocument> = []
  private var paths: [UInt64: ResourcePath?] = [:]

  init(_ scope: QueryPlan.Scope, since version: Int64, changesMax: Int) {
    self.scope = scope
    self.changesMax = changesMax
    taken = version
  }

  /// Whether no change has been found so far.
  var isEmpty: Bool { known.isEmpty }

  /// Returns the documents that changed since the last call, with the paths of their collections. No document is
  /// returned twice, even over several calls. Returns `nil` if too many documents have changed.
  mutating func take(
    _ reader: inout SnapshotReader
  ) throws -> [(document: ChangedDocument, collection: ResourcePath)]? {
    let last = try reader.lastVersion()
    guard last > taken else { return [] }
    var number: UInt64?
    if case .collection(let path, _) = scope {
      guard let row = try reader.collection(path), row.lastChange > taken else { return [] }
      number = row.number
    }
    let room = changesMax - known.count
    guard let changed = try reader.changedDocuments(after: taken, in: number, changesMax: room) else { return nil }
    taken = last
    var fresh: [(ChangedDocument, ResourcePath)] = []
    for document in changed where !known.contains(document) {
      guard let path = try path(document.collection, &reader) else { continue }
      known.insert(document)
      fresh.append((document, path))
    }
    return fresh
  }

  /// Returns the path of a collection, or `nil` if the query does not cover it.
  private mutating func path(_ number: UInt64, _ reader: inout SnapshotReader) throws -> ResourcePath? {
    switch scope {
    case .none: return nil
    case .collection(let path, _): return path
    case .collections(let scope):
      if let known = paths[number] { return known }
      let path = try reader.collectionPath(number)
      let wanted = scope.contains(path) ? path : nil
      paths.updateValue(wanted, forKey: number)
      return wanted
    }
  }
}
