import DocumentModel
import DocumentStore
import KeyValue
import Matching

/// The documents that changed since the version a query reads, in the collections it looks at.
///
/// Index entries are of now. Where a document changed since the version its entries are passed over, and its state of
/// the version takes its place in the order; the log says which documents these are.
struct ChangeOverlay {
  private let scope: QueryPlan.Scope
  private let changesMax: Int
  /// Changes up to this version were taken.
  private var taken: Int64
  private var known: Set<ChangedDocument> = []
  private var paths: [UInt64: ResourcePath?] = [:]

  init(_ scope: QueryPlan.Scope, since version: Int64, changesMax: Int) {
    self.scope = scope
    self.changesMax = changesMax
    taken = version
  }

  /// Whether no document changed, as far as changes were taken.
  var isEmpty: Bool { known.isEmpty }

  /// The documents that changed since the last call, with the paths of their collections, each document only once in
  /// all; `nil` where there are too many.
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

  /// The path of a collection, or `nil` where the query does not look at it.
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
