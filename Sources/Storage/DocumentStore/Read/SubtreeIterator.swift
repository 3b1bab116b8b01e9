package import DocumentModel
package import KeyValue

/// An iterator over all documents at and below a path in name order: parents before children, missing parents included.
///
/// Each step finds its successor from the previous key, so an iteration can stop on one snapshot and resume on
/// another (at the same version, if the result must be one consistent state). Memory: one frame per level.
package struct SubtreeIterator {
  /// A document, or a missing document that has descendants.
  package struct Step {
    package var key: DocumentKey
    /// The document, or `nil` if it does not exist.
    package var document: StoredDocument?
  }

  /// One collection on the path to the current document: its documents and its missing documents, merged in name order.
  private struct Frame {
    let path: ResourcePath
    var scan: DocumentIterator?
    var missing: SubtreeSegments
    var document: (id: [UInt8], document: StoredDocument)?
    var parentID: [UInt8]?
    var siblings: SubtreeSegments?
  }

  private let snapshot: any KeyValueSnapshot
  private let version: Int64?
  private var frames: [Frame] = []

  /// Starts below `root`, which is the documents root, a document (itself not included), or a collection.
  ///
  /// `after` resumes after a document that an earlier iterator returned.
  /// - Throws: ``StorageError`` if the read fails.
  package init(
    _ snapshot: any KeyValueSnapshot, below root: ResourcePath, after: DocumentKey? = nil, at version: Int64? = nil
  ) throws(StorageError) {
    self.snapshot = snapshot
    self.version = version
    guard let after else {
      if root.isCollection {
        try push(root, siblings: nil, after: nil)
      } else {
        try descend(below: root)
      }
      return
    }
    // Rebuild the frames from the root down to the document, each positioned after its segment of the path.
    let segments = after.path.segments
    var path = ResourcePath.root
    for index in stride(from: 0, to: segments.count, by: 2) {
      let collection = path.appending(segments[index])
      if collection.isAtOrBelow(root) {
        let siblings =
          collection == root
          ? nil : try SubtreeSegments(snapshot, below: path, after: Array(segments[index]), at: version)
        try push(collection, siblings: siblings, after: Array(segments[index + 1]))
      }
      path = collection.appending(segments[index + 1])
    }
    try descend(below: after.path)
  }

  /// Returns the next document, or `nil` at the end.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package mutating func next() throws(StorageError) -> Step? {
    while !frames.isEmpty {
      let top = frames.count - 1
      if let step = try take(top) {
        try descend(below: step.key.path)
        return step
      }
      // The collection is complete; its next sibling replaces it.
      let parent = frames[top].path.parent
      var siblings = frames[top].siblings
      frames.removeLast()
      if let sibling = try siblings?.next() {
        try push(parent.appending(sibling), siblings: siblings, after: nil)
      }
    }
    return nil
  }

  private mutating func descend(below document: ResourcePath) throws(StorageError) {
    var collections = try SubtreeSegments(snapshot, below: document, at: version)
    guard let first = try collections.next() else { return }
    try push(document.appending(first), siblings: collections, after: nil)
  }

  private mutating func push(
    _ path: ResourcePath, siblings: SubtreeSegments?, after id: [UInt8]?
  ) throws(StorageError) {
    var reader = SnapshotReader(snapshot)
    var scan: DocumentIterator?
    if let row = try reader.collection(path) {
      scan = try DocumentIterator(
        snapshot, collection: row.number, from: id.map(DocumentIterator.Start.after) ?? .beginning, at: version)
    }
    var missing = try SubtreeSegments(snapshot, below: path, after: id, at: version)
    let parentID = try missing.next()
    var frame = Frame(path: path, scan: scan, missing: missing, parentID: parentID, siblings: siblings)
    try Self.advance(&frame)
    frames.append(frame)
  }

  private static func advance(_ frame: inout Frame) throws(StorageError) {
    frame.document = nil
    guard let document = try frame.scan?.next() else { return }
    var id: [UInt8] = []
    frame.scan?.appendID(to: &id)
    frame.document = (id, document)
  }

  /// Takes the lower of the next document and the next parent of descendants. If both are the same, it is returned
  /// once.
  private mutating func take(_ index: Int) throws(StorageError) -> Step? {
    let path = frames[index].path
    let order: Ordering
    switch (frames[index].document, frames[index].parentID) {
    case (nil, nil): return nil
    case (_?, nil): order = .less
    case (nil, _?): order = .greater
    case (let document?, let parentID?): order = ResourceID.compare(document.id, parentID)
    }
    var step: Step?
    if order != .greater, let (id, document) = frames[index].document, let key = DocumentKey(path.appending(id)) {
      step = Step(key: key, document: document)
      try Self.advance(&frames[index])
    }
    if order != .less, let id = frames[index].parentID {
      if order == .greater, let key = DocumentKey(path.appending(id)) { step = Step(key: key, document: nil) }
      frames[index].parentID = try frames[index].missing.next()
    }
    return step
  }
}
