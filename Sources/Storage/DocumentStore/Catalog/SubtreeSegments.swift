package import DocumentModel
import KeyEncoding
package import KeyValue

/// An iterator over the distinct segments that follow a path and lead to documents, in name order.
///
/// Below a document or the root, these are the IDs of its collections. Below a collection, they are the IDs of
/// documents that have descendants, whether the documents themselves exist or not. A collection's row outlives its
/// documents, so each candidate costs a lookup for a remaining document; empty collections are skipped.
package struct SubtreeSegments {
  private let snapshot: any KeyValueSnapshot
  private let version: Int64?
  private let cursor: PrefixCursor
  private var key = StorageKey()

  /// Starts below `path`, after the segment `after` if it is given. `version` is used as in ``DocumentIterator``.
  /// - Throws: ``StorageError`` if the read fails.
  package init(
    _ snapshot: any KeyValueSnapshot, below path: ResourcePath, after segment: [UInt8]? = nil, at version: Int64? = nil
  ) throws(StorageError) {
    self.snapshot = snapshot
    self.version = version
    key.begin(.collections)
    key.append(path: path)
    cursor = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    if let segment {
      key.append(segment: segment)
      key.becomeUpperBound()
    }
    try cursor.seek(key)
  }

  /// Returns the next segment, or `nil` at the end.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package mutating func next() throws(StorageError) -> [UInt8]? {
    var segment: [UInt8] = []
    while let suffix = try cursor.suffix() {
      guard !suffix.isEmpty else {
        cursor.consume()  // The row of the collection itself.
        continue
      }
      var rest = suffix
      segment.removeAll(keepingCapacity: true)
      guard OrderedCode.take(segment: &rest, into: &segment) else {
        throw .corruption(path: "collections", detail: "malformed collection path in a key")
      }
      key.begin(raw: cursor.prefix)
      key.append(segment: segment)
      let holdsDocuments = try anyDocumentBelow()
      key.begin(raw: cursor.prefix)
      key.append(segment: segment)
      key.becomeUpperBound()
      try cursor.seek(key)
      if holdsDocuments { return segment }
    }
    return nil
  }

  /// Returns whether a collection at or below ``key`` contains a document.
  private mutating func anyDocumentBelow() throws(StorageError) -> Bool {
    let rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    try rows.seek(key)
    while try rows.suffix() != nil {
      let row = try SnapshotReader.decodeCollection(rows.cursor.value)
      var scan = try DocumentIterator(snapshot, collection: row.number, at: version)
      if try scan.next() != nil { return true }
      rows.consume()
    }
    return false
  }
}
