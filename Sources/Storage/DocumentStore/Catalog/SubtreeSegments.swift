package import DocumentModel
import KeyEncoding
package import KeyValue

/// The different segments that follow a path in the tree of collections, in name order, where documents lie below.
///
/// Below a document (or the root) these are the ids of its collections. Below a collection they are the ids of
/// documents that have descendants, whether they exist themselves or not. A row of a collection outlives its
/// documents, so each candidate costs a look whether anything is left; emptied collections are passed over.
package struct SubtreeSegments {
  private let snapshot: any KeyValueSnapshot
  private let version: Int64?
  private let cursor: PrefixCursor
  private var key = StorageKey()

  /// Starts below `path`, after the segment `after` where one is given; `version` as in ``DocumentIterator``.
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

  /// The next segment, or `nil` at the end.
  package mutating func next() throws(StorageError) -> [UInt8]? {
    var segment: [UInt8] = []
    while let suffix = try cursor.suffix() {
      guard !suffix.isEmpty else {
        cursor.consume()  // The row of the collection we look below.
        continue
      }
      var rest = suffix
      segment.removeAll(keepingCapacity: true)
      guard OrderedCode.take(segment: &rest, into: &segment) else {
        throw .corruption(path: "collections", detail: "a key that is no path")
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

  /// Whether a collection at or below ``key`` holds a document.
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
