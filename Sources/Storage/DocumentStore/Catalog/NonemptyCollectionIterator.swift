package import DocumentModel
import KeyEncoding
package import KeyValue

/// The collections of a database that hold documents, in name order.
///
/// A row of a collection outlives its documents, so each costs a look whether one is left.
package struct NonemptyCollectionIterator {
  private let snapshot: any KeyValueSnapshot
  private let version: Int64?
  private let root: ResourcePath
  private let rows: PrefixCursor

  /// Starts at the first collection at or below `root`; `version` as in ``DocumentIterator``.
  package init(
    _ snapshot: any KeyValueSnapshot, below root: ResourcePath = .root, at version: Int64? = nil
  ) throws(StorageError) {
    self.snapshot = snapshot
    self.version = version
    self.root = root
    var key = StorageKey()
    key.begin(.collections)
    key.append(path: root)
    rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    try rows.seek(key)
  }

  /// The next collection that `isWanted` and holds a document, or `nil` at the end.
  package mutating func next(where isWanted: (ResourcePath) -> Bool = { _ in true }) throws(StorageError)
    -> ResourcePath?
  {
    while let suffix = try rows.suffix() {
      guard let path = Self.decode(suffix, below: root) else {
        throw .corruption(path: "collections", detail: "a key that is no path")
      }
      let row = try SnapshotReader.decodeCollection(rows.cursor.value)
      rows.consume()
      guard isWanted(path) else { continue }
      var scan = try DocumentIterator(snapshot, collection: row.number, at: version)
      if try scan.next() != nil { return path }
    }
    return nil
  }

  /// The path whose segments a key names behind those of `root`.
  static func decode(_ code: UnsafeRawBufferPointer, below root: ResourcePath) -> ResourcePath? {
    var path = root
    var rest = code
    var segment: [UInt8] = []
    while !rest.isEmpty {
      segment.removeAll(keepingCapacity: true)
      guard OrderedCode.take(segment: &rest, into: &segment) else { return nil }
      path = path.appending(segment)
    }
    return path
  }
}
