import DocumentModel
import DocumentStore
import FieldMatch
import KeyValueStore

/// A document that a source offers; its fields are valid as long as the snapshot.
struct Row {
  var path: ResourcePath
  var document: StoredDocument
}

/// Where candidates of a query come from, one after the other. What order they come in is the plan's business.
protocol RowSource: AnyObject {
  /// The next candidate, or `nil` at the end.
  func next() throws -> Row?
  /// What was read so far.
  var work: QueryWork { get }
}

/// What running a query cost.
package struct QueryWork: Equatable, Sendable {
  /// Documents that were read from the store.
  package var documents = 0
  /// Index entries that were read.
  package var entries = 0

  static func + (a: QueryWork, b: QueryWork) -> QueryWork {
    QueryWork(documents: a.documents + b.documents, entries: a.entries + b.entries)
  }
}

/// The documents of one collection in name order, now or in the past.
final class CollectionSource: RowSource {
  private(set) var work = QueryWork()
  private let collection: ResourcePath
  private var scan: CollectionScan
  /// The code of the path at which the scan ends, as ``NameCode`` has it.
  private let isPastEnd: (ResourcePath) -> Bool

  init(
    _ snapshot: any KeyValueSnapshot, _ collection: ResourcePath, number: UInt64, from start: CollectionScan.Start,
    at version: Int64?, isPastEnd: @escaping (ResourcePath) -> Bool
  ) throws(StorageError) {
    self.collection = collection
    self.isPastEnd = isPastEnd
    scan = try CollectionScan(snapshot, collection: number, from: start, at: version)
  }

  func next() throws -> Row? {
    guard let document = try scan.next() else { return nil }
    work.documents += 1
    var bytes = collection.bytes
    bytes.append(UInt8(ascii: "/"))
    scan.appendID(to: &bytes)
    let path = ResourcePath(uncheckedBytes: bytes)
    return isPastEnd(path) ? nil : Row(path: path, document: document)
  }
}

/// The documents that the entries of an ``EntrySource`` name.
final class EntryDocuments: RowSource {
  private let collection: ResourcePath
  private let number: UInt64
  private let entries: any EntrySource
  private var reader: DocumentReader
  private var documents = 0

  init(
    _ snapshot: any KeyValueSnapshot, _ collection: ResourcePath, number: UInt64, _ entries: any EntrySource
  ) {
    self.collection = collection
    self.number = number
    self.entries = entries
    reader = DocumentReader(snapshot)
  }

  var work: QueryWork { QueryWork(documents: documents, entries: entries.entriesRead) }

  func next() throws -> Row? {
    while let code = try entries.next() {
      var id: [UInt8] = []
      guard code.withUnsafeBytes({ OrderedCode.decode(lastID: $0, into: &id) }) else {
        throw StorageError.corruption(path: "ascendingEntries", detail: "an entry without a document id")
      }
      // An entry without its document is damage that `hearth check` reports; here it is no result.
      guard let document = try reader.document(id, in: number) else { continue }
      documents += 1
      return Row(path: collection.appending(id), document: document)
    }
    return nil
  }
}

/// Several sources, one behind the other.
final class ConcatenatedSource: RowSource {
  private var sources: [any RowSource]
  private var done = QueryWork()

  init(_ sources: [any RowSource]) { self.sources = sources.reversed() }

  var work: QueryWork { sources.reduce(done) { $0 + $1.work } }

  func next() throws -> Row? {
    while let source = sources.last {
      if let row = try source.next() { return row }
      done = done + source.work
      sources.removeLast()
    }
    return nil
  }
}

/// All documents below a path in name order.
final class WalkSource: RowSource {
  private(set) var work = QueryWork()
  private var walk: DocumentWalk

  init(
    _ snapshot: any KeyValueSnapshot, below path: ResourcePath, after: DocumentKey?, at version: Int64?
  ) throws(StorageError) {
    walk = try DocumentWalk(snapshot, below: path, after: after, at: version)
  }

  func next() throws -> Row? {
    while let step = try walk.next() {
      guard let document = step.document else { continue }
      work.documents += 1
      return Row(path: step.key.path, document: document)
    }
    return nil
  }
}
