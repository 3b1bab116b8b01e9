import DocumentModel
import KeyEncoding
package import KeyValue

/// The documents of one collection in name order, as they are now or were at a version.
///
/// In the past it walks two cursors: the current documents, and the history, whose before-images take the place of
/// what changed since. Memory is bounded; the cost is a step per document and, in the past, a seek per document that
/// has history.
package struct DocumentIterator {
  /// Where a scan starts.
  package enum Start: Sendable {
    case beginning
    /// At this id if it is there, else after it.
    case at([UInt8])
    case after([UInt8])
  }

  /// The id of the document that ``next()`` returned, as ``OrderedCode/append(lastID:to:)`` writes it.
  package private(set) var idCode: [UInt8] = []

  private let version: Int64?
  private let documents: PrefixCursor
  private let history: PrefixCursor?
  private var key = StorageKey()

  /// Starts a scan; `version` is `nil` to read what the snapshot shows, else at least ``MetaKey/historyFrom``.
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
      key.append(raw: CollectionOfOne(0))  // The lowest key above the id's own.
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

  /// The next document, or `nil` at the end. Its fields are valid as long as the snapshot.
  package mutating func next() throws(StorageError) -> StoredDocument? {
    if let version, let history { return try next(at: version, history) }
    guard let rest = try documents.suffix() else { return nil }
    idCode.removeAll(keepingCapacity: true)
    idCode.append(raw: rest)
    return try takeDocument()
  }

  /// Appends the id of the document that ``next()`` returned, as it stands in a path.
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
        throw .corruption(path: "history", detail: "a key without a document id")
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

  /// The document before the first commit after `version`; `nil` where it did not exist or was not changed since.
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
    // A before-image is the old row byte for byte; its checksum covers the key it stood under.
    key.begin(raw: documents.prefix)
    key.append(lastID: id)
    let image = try key.withBytes { (key) throws(StorageError) in
      try SnapshotReader.decode(row: history.cursor.value, key: key)
    }
    // What was made after the version has no before-image of its making: this is one of what it became.
    return image.updateVersion <= version ? image : nil
  }

  private mutating func skipHistory(of id: [UInt8], _ history: PrefixCursor) throws(StorageError) {
    key.begin(raw: history.prefix)
    key.append(segment: id)
    key.becomeUpperBound()
    try history.seek(key)
  }
}

/// A cursor that stays within the keys of one prefix and moves only when the next entry is asked for.
final class PrefixCursor {
  let cursor: any KeyValueCursor
  let prefix: [UInt8]
  private var isThere = false
  private var isConsumed = false

  init(_ cursor: any KeyValueCursor, prefix: [UInt8]) {
    self.cursor = cursor
    self.prefix = prefix
  }

  /// Goes to the first entry not below a key.
  func seek(_ key: borrowing StorageKey) throws(StorageError) {
    isThere = try key.withBytes { (key) throws(StorageError) in try cursor.seek(atOrAfter: key) }
    isConsumed = false
  }

  /// What follows the prefix in the key of the entry, or `nil` at the end. Valid until the cursor moves.
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

  /// Lets go of the entry: the next ``suffix()`` is that of the one behind it.
  func consume() { isConsumed = true }
}
