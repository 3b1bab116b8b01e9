package import DocumentModel
import DocumentStore
package import FixtureTree
package import KeyValue
import WireFormat

/// Reads the documents of a database, or of a part of it, to export them.
///
/// All documents are shown at one version, the newest at the start. Each slice uses its own snapshot, so that a long
/// export does not hold one for long. The export must finish before the version leaves the history.
package struct ExportDocuments {
  private let store: any KeyValueStore
  private let database: DatabaseID
  private let root: ResourcePath

  /// Prepares an export of `root` and everything below it. `root` is the root path, a collection or a document.
  package init(_ store: any KeyValueStore, database: DatabaseID, below root: ResourcePath = .root) {
    self.store = store
    self.database = database
    self.root = root
  }

  /// Returns the number of documents in the whole database, or `nil` for an export of a part. Cost: reads every key of
  /// a document.
  /// - Throws: ``StorageError`` if a read fails.
  package func documentCount() throws(StorageError) -> Int? {
    guard root.isRoot else { return nil }
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    return try DatabaseContents.documentCount(snapshot)
  }

  /// The maximum number of documents read from one snapshot.
  private static let sliceDocumentsMax = 2000

  /// Writes the documents and passes pieces of text to `write`. Returns the number of documents, and of those that the
  /// format cannot contain. If the part of the database below a path has no documents, writes nothing.
  ///
  /// Memory: the text of one slice, one frame for each level, and the patterns of the collections.
  /// - Throws: ``StorageError`` if a read fails, ``Status`` if the version has left the history, ``FixtureTreeError`` if
  ///   the format cannot contain the documents, and any error of `write`.
  package func run(
    as format: DocumentFileWriter.Format = .tree, progress: (Int) -> Void = { _ in },
    _ write: ([UInt8]) throws -> Void
  ) throws -> (count: Int, skipped: Int) {
    let version = try slice(at: nil) { reader, _ in try reader.lastVersion() }
    var writer = try DocumentFileWriter(
      format, database: database, below: root, patterns: format == .tree ? try patterns(at: version) : [])
    // Text is written between slices, so that a slow reader of the output holds no snapshot.
    var pieces: [[UInt8]] = []
    func passPieces() throws {
      for piece in pieces { try write(piece) }
      pieces.removeAll()
    }
    _ = try walk(
      at: version,
      progress: { count in
        progress(count)
        try passPieces()
      },
      { try writer.add($0, $1) { pieces.append($0) } })
    try passPieces()
    if writer.count > 0 || root.isRoot { try writer.finish(write) }
    return (writer.count, writer.skipped)
  }

  /// Passes every document to `body`, in name order. Returns the number of documents.
  ///
  /// Memory: one document, and one frame for each level.
  /// - Throws: ``StorageError`` if a read fails, ``Status`` if the version has left the history, and any error of
  ///   `body`.
  package func forEach(
    progress: (Int) -> Void = { _ in }, _ body: (DocumentKey, EncodedFields) throws -> Void
  ) throws -> Int {
    let version = try slice(at: nil) { reader, _ in try reader.lastVersion() }
    return try walk(at: version, progress: progress, body)
  }

  private func walk(
    at version: Int64, progress: (Int) throws -> Void, _ body: (DocumentKey, EncodedFields) throws -> Void
  ) throws -> Int {
    var count = 0
    var last: DocumentKey?
    if let key = DocumentKey(root) {
      try slice(at: version) { reader, pinned in
        guard let document = try Self.document(key, at: pinned, &reader) else { return }
        try body(key, EncodedFields(canonical: Array(document.fields)))
        count += 1
      }
    }
    var isAtEnd = false
    while !isAtEnd {
      try slice(at: version) { reader, pinned in
        var iterator = try SubtreeIterator(reader.snapshot, below: root, after: last, at: pinned)
        for _ in 0..<Self.sliceDocumentsMax {
          guard let step = try iterator.next() else {
            isAtEnd = true
            return
          }
          last = step.key
          guard let document = step.document else { continue }
          try body(step.key, EncodedFields(canonical: Array(document.fields)))
          count += 1
        }
      }
      try progress(count)
    }
    return count
  }

  /// Runs `body` on a new snapshot with the version to read, or `nil` if the snapshot shows exactly that version.
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
        "the export took longer than history is kept, or the database was cleared; run it again")
    }
    return try body(&reader, version)
  }

  private func patterns(at version: Int64) throws -> [String] {
    var patterns = Set<[UInt8]>()
    var collections: [ResourcePath] = []
    try slice(at: version) { reader, pinned in
      var list = try NonemptyCollectionIterator(reader.snapshot, below: root, at: pinned)
      // A known pattern does not need another collection.
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

  /// Returns the collections above a collection. They contain its ancestors, which may be missing documents.
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
