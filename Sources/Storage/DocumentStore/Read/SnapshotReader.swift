package import DocumentModel
import KeyEncoding
package import KeyValue

/// Reads documents and catalog rows from one snapshot, or from the open write transaction.
///
/// It has a scratch key, so create one per request and use it from one thread. Bytes that it returns are valid as
/// long as the snapshot.
package struct SnapshotReader {
  package let snapshot: any KeyValueSnapshot
  private var key = StorageKey()

  /// Creates a reader of a snapshot.
  package init(_ snapshot: any KeyValueSnapshot) {
    self.snapshot = snapshot
  }

  /// Returns a reader of the same snapshot that takes over the scratch memory of this one.
  package mutating func take() -> SnapshotReader {
    let taken = self
    key.release()
    return taken
  }

  // MARK: Catalog

  /// The catalog row of a collection.
  package struct CollectionRow: Equatable, Sendable {
    /// The number in the keys of its documents and entries.
    package var number: UInt64
    /// The version of its last change.
    package var lastChange: Int64
  }

  /// Returns the row of a collection, or `nil` if the collection never had a document. Cost: one lookup.
  /// - Throws: ``StorageError`` if the read fails or the row is malformed.
  package mutating func collection(_ path: ResourcePath) throws(StorageError) -> CollectionRow? {
    key.begin(.collections)
    key.append(path: path)
    guard let row = try key.withBytes({ (key) throws(StorageError) in try snapshot.value(for: key) }) else {
      return nil
    }
    return try Self.decodeCollection(row)
  }

  static func decodeCollection(_ row: UnsafeRawBufferPointer) throws(StorageError) -> CollectionRow {
    guard row.count == 16 else { throw .corruption(path: "collections", detail: "a row of \(row.count) bytes, not 16") }
    return CollectionRow(
      number: UInt64(littleEndian: row.loadUnaligned(as: UInt64.self)),
      lastChange: Int64(littleEndian: row.loadUnaligned(fromByteOffset: 8, as: Int64.self)))
  }

  /// Returns the path of the collection with a number.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if there is no such collection, or another
  ///   ``StorageError`` if the read fails.
  package mutating func collectionPath(_ number: UInt64) throws(StorageError) -> ResourcePath {
    key.begin(.collectionPaths)
    key.append(number: number)
    guard let row = try key.withBytes({ (key) throws(StorageError) in try snapshot.value(for: key) }) else {
      throw .corruption(path: "collectionPaths", detail: "collection \(number) has no path")
    }
    return ResourcePath(uncheckedBytes: Array(row))
  }

  /// Returns the number of a field, or `nil` if no document ever had it. Cost: one lookup per segment of the path.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package mutating func fieldNumber(_ path: FieldPath) throws(StorageError) -> UInt64? {
    var number: UInt64 = 0
    for segment in path.segments {
      key.begin(.fields)
      key.append(number: number)
      key.append(raw: segment.utf8)
      guard let row = try key.withBytes({ (key) throws(StorageError) in try snapshot.value(for: key) }) else {
        return nil
      }
      guard row.count == 8 else { throw .corruption(path: "fields", detail: "a row has \(row.count) bytes, not 8") }
      number = UInt64(littleEndian: row.loadUnaligned(as: UInt64.self))
    }
    return number
  }

  /// Returns the path of the field with a number. Cost: one lookup per segment.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if there is no such field, or another ``StorageError`` if
  ///   the read fails.
  package mutating func fieldPath(_ number: UInt64) throws(StorageError) -> FieldPath {
    var segments: [String] = []
    var next = number
    while next != 0 {
      key.begin(.fieldNames)
      key.append(number: next)
      guard segments.count <= Limits.nestingDepthMax,
        var row = try key.withBytes({ (key) throws(StorageError) in try snapshot.value(for: key) }),
        let parent = OrderedCode.takeNumber(&row)
      else { throw .corruption(path: "fieldNames", detail: "field \(number) has no path") }
      segments.append(String(decoding: row, as: UTF8.self))
      next = parent
    }
    guard !segments.isEmpty else { throw .corruption(path: "fieldNames", detail: "field \(number) has no path") }
    return FieldPath(segments: segments.reversed())
  }

  /// Returns the paths of all collections with an ID, including those without documents, or `nil` if there are more
  /// than `countMax`.
  ///
  /// Cost: two lookups per collection.
  /// - Throws: ``StorageError`` if the read fails or a row is malformed.
  package mutating func collections(
    ofGroup id: [UInt8], countMax: Int = .max
  ) throws(StorageError) -> [ResourcePath]? {
    key.begin(.collectionGroups)
    key.append(segment: id)
    let rows = PrefixCursor(try snapshot.makeCursor(), prefix: key.bytes)
    try rows.seek(key)
    var paths: [ResourcePath] = []
    while var suffix = try rows.suffix() {
      guard let number = OrderedCode.takeNumber(&suffix) else {
        throw .corruption(path: "collectionGroups", detail: "a key has no collection number")
      }
      if paths.count == countMax { return nil }
      paths.append(try collectionPath(number))
      rows.consume()
    }
    return paths
  }

  /// Returns a number of ``Table/meta``, or 0 if it was never written.
  /// - Throws: ``StorageError`` if the read fails, or the number is malformed or too large.
  package mutating func meta(_ name: MetaKey) throws(StorageError) -> UInt64 {
    key.begin(name)
    guard let row = try key.withBytes({ (key) throws(StorageError) in try snapshot.value(for: key) }) else { return 0 }
    guard row.count == 8 else {
      throw .corruption(path: "meta", detail: "\(name.rawValue) has \(row.count) bytes, not 8")
    }
    let number = UInt64(littleEndian: row.loadUnaligned(as: UInt64.self))
    // Arithmetic on counts and times must not overflow, and these rows have no checksum.
    guard name == .incarnation || name == .format || number <= Self.metaMax else {
      throw .corruption(path: "meta", detail: "\(name.rawValue) is out of range: \(number)")
    }
    return number
  }

  /// The limit for times and counts in ``Table/meta``: the last moment that a timestamp can represent, in microseconds.
  private static let metaMax = 253_402_300_799_999_999 as UInt64

  /// Returns the version of the last commit in the snapshot.
  /// - Throws: ``StorageError`` if the read fails.
  package mutating func lastVersion() throws(StorageError) -> Int64 {
    Int64(bitPattern: try meta(.lastVersion))
  }

  // MARK: Documents

  /// Returns the document in the snapshot, or `nil` if it does not exist. Cost: one lookup and the checksum.
  /// - Throws: ``StorageError`` if the read fails or the document is damaged.
  package mutating func document<ID: Collection<UInt8>>(
    _ id: ID, in collection: UInt64
  ) throws(StorageError) -> StoredDocument? {
    key.begin(.documents)
    key.append(number: collection)
    key.append(lastID: id)
    return try key.withBytes { (key) throws(StorageError) in
      guard let row = try snapshot.value(for: key) else { return nil }
      return try Self.decode(row: row, key: key)
    }
  }

  /// Returns the document whose row in ``Table/documents`` has a key, or `nil` if it does not exist. Cost: one lookup
  /// and the checksum.
  /// - Throws: ``StorageError`` if the read fails or the document is damaged.
  package mutating func document(_ rowKey: StorageKey) throws(StorageError) -> StoredDocument? {
    try rowKey.withBytes { (key) throws(StorageError) in
      guard let row = try snapshot.value(for: key) else { return nil }
      return try Self.decode(row: row, key: key)
    }
  }

  /// Returns the document with a key, or `nil` if it does not exist. Cost: two lookups and the checksum.
  /// - Throws: ``StorageError`` if the read fails or the document is damaged.
  package mutating func document(_ documentKey: DocumentKey) throws(StorageError) -> StoredDocument? {
    guard let row = try collection(documentKey.collection) else { return nil }
    return try document(documentKey.id, in: row.number)
  }

  /// Returns the document as it was at a version, or `nil` if it did not exist then.
  ///
  /// The version must not be below ``MetaKey/historyFrom``. Cost: as ``document(_:in:)``, plus one seek in the history.
  /// - Throws: ``StorageError`` if the read fails or the document is damaged.
  package mutating func document<ID: Collection<UInt8>>(
    _ id: ID, in collection: UInt64, at version: Int64
  ) throws(StorageError) -> StoredDocument? {
    let current = try document(id, in: collection)
    if let current, current.updateVersion <= version { return current }
    return try beforeImage(id, in: collection, after: version)
  }

  /// Returns the document before the first commit after `version` that changed it, or `nil` if it did not exist then.
  private mutating func beforeImage<ID: Collection<UInt8>>(
    _ id: ID, in collection: UInt64, after version: Int64
  ) throws(StorageError) -> StoredDocument? {
    key.begin(.history)
    key.append(number: collection)
    key.append(segment: id)
    let prefixCount = key.bytes.count
    key.append(version: version + 1)
    let cursor = try snapshot.makeCursor()
    let found = try key.withBytes { (key) throws(StorageError) in
      guard try cursor.seek(atOrAfter: key) else { return false }
      let foundKey = cursor.key
      return foundKey.count == prefixCount + 8
        && foundKey.prefix(prefixCount).elementsEqual(key.prefix(prefixCount))
    }
    guard found else { return nil }
    let row = cursor.value
    guard !row.isEmpty else { return nil }
    // A before-image is a byte-for-byte copy of the row, whose checksum covers its key in the documents table.
    key.begin(.documents)
    key.append(number: collection)
    key.append(lastID: id)
    let image = try key.withBytes { (key) throws(StorageError) in try Self.decode(row: row, key: key) }
    // A creation leaves no before-image. If the document was created after `version`, this image is from after that.
    return image.updateVersion <= version ? image : nil
  }

  /// Decodes a row of ``Table/documents``.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if the row is damaged.
  package static func decode(
    row: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer
  ) throws(StorageError) -> StoredDocument {
    do {
      return try StoredDocument(row: row, key: key)
    } catch {
      throw .corruption(path: "documents", detail: "\(describe(documentKey: key)): \(error.reason)")
    }
  }

  private static func describe(documentKey key: UnsafeRawBufferPointer) -> String {
    var rest = UnsafeRawBufferPointer(rebasing: key.dropFirst())
    let collection = OrderedCode.takeNumber(&rest) ?? 0
    var id: [UInt8] = []
    _ = OrderedCode.decode(lastID: rest, into: &id)
    return "document \"\(String(decoding: id, as: UTF8.self))\" of collection \(collection)"
  }
}
