package import DocumentModel
import KeyEncoding
package import KeyValue

/// An iterator over the documents of one collection in name order, at the snapshot or at an earlier version.
///
/// For an earlier version it merges two cursors: the current documents, and the history, whose before-images
/// replace documents changed since. Memory is bounded. Cost: one step per document and, for an earlier version, one
/// seek per document with history.
package struct DocumentIterator {
  /// The start of an iteration.
  package enum Start: Sendable {
    case beginning
    /// At this ID if it exists, otherwise after it.
    case at([UInt8])
    case after([UInt8])
  }

  /// The ID of the document that ``next()`` returned, as ``OrderedCode/append(lastID:to:)`` encodes it.
  package private(set) var idCode: [UInt8] = []

  private let version: Int64?
  private let documents: PrefixCursor
  private let history: PrefixCursor?
  private var key = StorageKey()

  /// Starts an iteration. `version` is `nil` for the state of the snapshot, otherwise at least ``MetaKey/historyFrom``.
  /// - Throws: ``StorageError`` if the read fails.
  package init(
    _ snapshot: any KeyValueSnapshot, collection: UInt64, from start: Start = .beginning, at version: Int64? = nil
  ) throws(StorageError) {
    self.version = version
    key.begin(.documents)
    key.append(number: collection)
    documents = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    switch start {
    case .beginning: break
    case .at(let id): key.append(lastID: id)
    case .after(let id):
      key.append(lastID: id)
      key.append(raw: CollectionOfOne(0))  // The lowest key above the ID's key.
    }
    try documents.seek(key)
    guard version != nil else {
      history = nil
      return
    }
    key.begin(.history)
    key.append(number: collection)
    let history = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    switch start {
    case .beginning: break
    case .at(let id): key.append(segment: id)
    case .after(let id):
      key.append(segment: id)
      key.becomeUpperBound()
    }
    try history.seek(key)
    self.history = history
  }

  /// Returns the next document, or `nil` at the end. Its fields are valid as long as the snapshot.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed or damaged.
  package mutating func next() throws(StorageError) -> StoredDocument? {
    if let version, let history { return try next(at: version, history) }
    guard let rest = try documents.suffix() else { return nil }
    idCode.removeAll(keepingCapacity: true)
    idCode.append(raw: rest)
    return try takeDocument()
  }

  /// Appends the ID of the document that ``next()`` returned, in the form used in paths.
  package func appendID(to path: inout [UInt8]) {
    idCode.withUnsafeBytes { code in _ = OrderedCode.decode(lastID: code, into: &path) }
  }

  private func takeDocument() throws(StorageError) -> StoredDocument {
    let document = try SnapshotReader.decode(row: documents.cursor.value, key: documents.cursor.key)
    documents.consume()
    return document
  }

  private mutating func next(at version: Int64, _ history: PrefixCursor) throws(StorageError) -> StoredDocument? {
    while true {
      let current = try documents.suffix()
      guard let changed = try history.suffix() else {
        guard let current else { return nil }
        setIDCode(current)
        let document = try takeDocument()
        if document.updateVersion <= version { return document }
        continue
      }
      var rest = changed
      var changedID: [UInt8] = []
      guard OrderedCode.take(segment: &rest, into: &changedID) else {
        throw .corruption(path: "history", detail: "a key has no document ID")
      }
      var changedCode: [UInt8] = []
      OrderedCode.append(lastID: changedID, to: &changedCode)
      switch current.map({ Ordering.bytes($0, changedCode) }) ?? .greater {
      case .less:
        if let current { setIDCode(current) }
        let document = try takeDocument()
        if document.updateVersion <= version { return document }
      case .equal:
        idCode = changedCode
        let document = try takeDocument()
        let past = document.updateVersion <= version ? document : try image(changedID, version, history)
        try skipHistory(of: changedID, history)
        if let past { return past }
      case .greater:
        idCode = changedCode
        let past = try image(changedID, version, history)
        try skipHistory(of: changedID, history)
        if let past { return past }
      }
    }
  }

  private mutating func setIDCode(_ code: UnsafeRawBufferPointer) {
    idCode.removeAll(keepingCapacity: true)
    idCode.append(raw: code)
  }

  /// Returns the document before the first commit after `version`, or `nil` if it did not exist then or has not
  /// changed since.
  private mutating func image(
    _ id: [UInt8], _ version: Int64, _ history: PrefixCursor
  ) throws(StorageError) -> StoredDocument? {
    key.begin(raw: history.prefix)
    key.append(segment: id)
    let prefixCount = key.bytes.count
    key.append(version: version + 1)
    try history.seek(key)
    guard try history.suffix() != nil else { return nil }
    let found = history.cursor.key
    guard found.count == prefixCount + 8, found.prefix(prefixCount).elementsEqual(key.bytes.prefix(prefixCount)),
      !history.cursor.value.isEmpty
    else { return nil }
    // A before-image is a byte-for-byte copy of the row, whose checksum covers its key in the documents table.
    key.begin(raw: documents.prefix)
    key.append(lastID: id)
    let image = try key.withBytes { (key) throws(StorageError) in
      try SnapshotReader.decode(row: history.cursor.value, key: key)
    }
    // A creation leaves no before-image. If the document was created after `version`, this image is from after that.
    return image.updateVersion <= version ? image : nil
  }

  private mutating func skipHistory(of id: [UInt8], _ history: PrefixCursor) throws(StorageError) {
    key.begin(raw: history.prefix)
    key.append(segment: id)
    key.becomeUpperBound()
    try history.seek(key)
  }
}

/// A cursor that stays within the keys of one prefix and moves only when the next entry is requested.
final class PrefixCursor {
  let cursor: any KeyValueCursor
  let prefix: [UInt8]
  private var isThere = false
  private var isConsumed = false

  init(_ cursor: any KeyValueCursor, prefix: [UInt8]) {
    self.cursor = cursor
    self.prefix = prefix
  }

  /// Moves to the first entry that is not below a key.
  func seek(_ key: borrowing StorageKey) throws(StorageError) {
    isThere = try key.withBytes { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
    isConsumed = false
  }

  /// Returns the part of the entry's key after the prefix, or `nil` at the end. Valid until the cursor moves.
  func suffix() throws(StorageError) -> UnsafeRawBufferPointer? {
    if isThere, isConsumed {
      isThere = try cursor.next()
      isConsumed = false
    }
    guard isThere else { return nil }
    let key = cursor.key
    guard key.count >= prefix.count, key.prefix(prefix.count).elementsEqual(prefix) else {
      isThere = false
      return nil
    }
    return UnsafeRawBufferPointer(rebasing: key[prefix.count...])
  }

  /// Marks the current entry as consumed, so the next ``suffix()`` is that of the following entry.
  func consume() { isConsumed = true }
}
