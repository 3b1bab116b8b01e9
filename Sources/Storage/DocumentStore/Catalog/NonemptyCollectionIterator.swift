package import DocumentModel
import KeyEncoding
package import KeyValue

/// An iterator over the collections of a database that contain documents, in name order.
///
/// A collection's row outlives its documents, so each row costs a lookup for a remaining document.
package struct NonemptyCollectionIterator {
  private let snapshot: any KeyValueSnapshot
  private let version: Int64?
  private let root: ResourcePath
  private let rows: PrefixCursor

  /// Starts at the first collection at or below `root`. `version` is used as in ``DocumentIterator``.
  /// - Throws: ``StorageError`` if the read fails.
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

  /// Returns the next collection that satisfies `isWanted` and contains a document, or `nil` at the end.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package mutating func next(where isWanted: (ResourcePath) -> Bool = { _ in true }) throws(StorageError)
    -> ResourcePath?
  {
    while let suffix = try rows.suffix() {
      guard let path = Self.decode(suffix, below: root) else {
        throw .corruption(path: "collections", detail: "malformed collection path in a key")
      }
      let row = try SnapshotReader.decodeCollection(rows.cursor.value)
      rows.consume()
      guard isWanted(path) else { continue }
      var scan = try DocumentIterator(snapshot, collection: row.number, at: version)
      if try scan.next() != nil { return path }
    }
    return nil
  }

  /// Returns `root` followed by the segments in a key, or `nil` if the key is malformed.
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
