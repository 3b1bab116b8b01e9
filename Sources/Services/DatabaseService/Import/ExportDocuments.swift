package import DocumentModel
import DocumentStore
import FixtureTree
package import KeyValue
import WireFormat

/// Writes the documents of a database, or a part of them, as a fixture tree.
///
/// All documents are shown as of one version, the newest when it starts. Every slice takes a snapshot of its own, so
/// that a long export holds none for long; it must be over before that version leaves the history.
package struct ExportDocuments {
  private let store: any KeyValueStore
  private let database: DatabaseID
  private let root: ResourcePath

  /// Prepares an export of what is at and below `root`: everything, a collection, or a document.
  package init(_ store: any KeyValueStore, database: DatabaseID, below root: ResourcePath = .root) {
    self.store = store
    self.database = database
    self.root = root
  }

  /// Documents read from one snapshot.
  private static let sliceDocumentsMax = 2000
  /// Text that is handed over at once, in bytes; a slice may add to it.
  private static let pieceBytesMin = 256 << 10

  /// Writes the tree, handing pieces of text to `write`. Returns the number of documents.
  ///
  /// Memory: a slice's text, one frame per level, and the patterns of the collections.
  /// - Throws: `StorageError`, ``Status`` when the version left the history, and what `write` throws.
  package func run(progress: (Int) -> Void = { _ in }, _ write: ([UInt8]) throws -> Void) throws -> Int {
    let version = try slice(at: nil) { reader, _ in try reader.lastVersion() }
    var writer = try FixtureTreeWriter(database: database, patterns: try patterns(at: version))
    var count = 0
    var last: DocumentKey?
    if let key = DocumentKey(root) {
      try slice(at: version) { reader, pinned in
        guard let document = try Self.document(key, at: pinned, &reader) else { return }
        try writer.write(key, EncodedFields(canonical: Array(document.fields)))
        count += 1
      }
    }
    var isAtEnd = false
    while !isAtEnd {
      try slice(at: version) { reader, pinned in
        var walk = try SubtreeIterator(reader.snapshot, below: root, after: last, at: pinned)
        for _ in 0..<Self.sliceDocumentsMax {
          guard let step = try walk.next() else {
            isAtEnd = true
            return
          }
          last = step.key
          guard let document = step.document else { continue }
          try writer.write(step.key, EncodedFields(canonical: Array(document.fields)))
          count += 1
        }
      }
      progress(count)
      if writer.output.count >= Self.pieceBytesMin { try write(writer.takeOutput()) }
    }
    try writer.finish()
    try write(writer.takeOutput())
    return count
  }

  /// Runs `body` on a fresh snapshot, with the version to read at, `nil` where the snapshot shows it as it is.
  private func slice<R>(
    at version: Int64?, _ body: (inout DocumentStore.SnapshotReader, Int64?) throws -> R
  ) throws -> R {
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    var reader = DocumentStore.SnapshotReader(snapshot)
    guard let version, try reader.lastVersion() != version else { return try body(&reader, nil) }
    guard try Int64(bitPattern: reader.meta(.historyFrom)) <= version else {
      throw Status(
        .failedPrecondition,
        "the export took longer than the database remembers what was, or the database was cleared; run it again")
    }
    return try body(&reader, version)
  }

  private func patterns(at version: Int64) throws -> [String] {
    var patterns = Set<[UInt8]>()
    var collections: [ResourcePath] = []
    try slice(at: version) { reader, pinned in
      var list = try NonemptyCollectionIterator(reader.snapshot, below: root, at: pinned)
      // A pattern that is known needs no second look.
      func isWanted(_ path: ResourcePath) -> Bool {
        !patterns.contains(Array(CollectionShape.pattern(of: path).utf8))
      }
      while let path = try list.next(where: isWanted) {
        patterns.insert(Array(CollectionShape.pattern(of: path).utf8))
        collections.append(path)
      }
    }
    if let key = DocumentKey(root) { collections.append(key.collection) }
    return CollectionShape.patterns(of: collections + collections.flatMap(Self.ancestors))
  }

  /// The collections above a collection: they hold the documents on the way, missing or not.
  private static func ancestors(_ collection: ResourcePath) -> [ResourcePath] {
    var all: [ResourcePath] = []
    var path = collection
    while path.segmentCount > 2 {
      path = path.parent.parent
      all.append(path)
    }
    return all
  }

  private static func document(
    _ key: DocumentKey, at version: Int64?, _ reader: inout DocumentStore.SnapshotReader
  ) throws -> StoredDocument? {
    guard let version else { return try reader.document(key) }
    guard let row = try reader.collection(key.collection) else { return nil }
    return try reader.document(key.id, in: row.number, at: version)
  }
}
