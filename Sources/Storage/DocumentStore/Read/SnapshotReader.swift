package import DocumentModel
import KeyEncoding
package import KeyValue

/// Reads documents and catalogue rows from one snapshot, or from the write transaction of the moment.
///
/// Holds a scratch key, so make one per request and use it from one thread. Bytes it lends are valid as its snapshot's.
package struct SnapshotReader {
  /// What is read.
  package let snapshot: any KeyValueSnapshot
  private var key = StorageKey()

  /// Reads from a snapshot.
  package init(_ snapshot: any KeyValueSnapshot) {
    self.snapshot = snapshot
  }

  // MARK: Catalogue

  /// A row of a collection.
  package struct CollectionRow: Equatable, Sendable {
    /// The number its documents and entries are stored under.
    package var number: UInt64
    /// The version of its last change.
    package var lastChange: Int64
  }

  /// The row of a collection, or `nil` where nothing was ever stored. Cost: one lookup.
  package mutating func collection(_ path: ResourcePath) throws(StorageError) -> CollectionRow? {
    key.begin(.collections)
    key.append(path: path)
    guard let row = try key.withBytes({ (key) throws(StorageError) in try snapshot.value(for: key) }) else { return nil }
    return try Self.decodeCollection(row)
  }

  static func decodeCollection(_ row: UnsafeRawBufferPointer) throws(StorageError) -> CollectionRow {
    guard row.count == 16 else { throw .corruption(path: "collections", detail: "a row of \(row.count) bytes") }
    return CollectionRow(
      number: UInt64(littleEndian: row.loadUnaligned(as: UInt64.self)),
      lastChange: Int64(littleEndian: row.loadUnaligned(fromByteOffset: 8, as: Int64.self)))
  }

  /// The path of the collection with a number.
  /// - Throws: ``StorageError/corruption(path:detail:)`` when there is no such row.
  package mutating func collectionPath(_ number: UInt64) throws(StorageError) -> ResourcePath {
    key.begin(.collectionPaths)
    key.append(number: number)
    guard let row = try key.withBytes({ (key) throws(StorageError) in try snapshot.value(for: key) }) else {
      throw .corruption(path: "collectionPaths", detail: "collection \(number) has no path")
    }
    return ResourcePath(uncheckedBytes: Array(row))
  }

  /// The number of a field, or `nil` where no document ever had it. Cost: one lookup per segment of the path.
  package mutating func fieldNumber(_ path: FieldPath) throws(StorageError) -> UInt64? {
    var number: UInt64 = 0
    for segment in path.segments {
      key.begin(.fields)
      key.append(number: number)
      key.append(raw: segment.utf8)
      guard let row = try key.withBytes({ (key) throws(StorageError) in try snapshot.value(for: key) }) else {
        return nil
      }
      guard row.count == 8 else { throw .corruption(path: "fields", detail: "a row of \(row.count) bytes") }
      number = UInt64(littleEndian: row.loadUnaligned(as: UInt64.self))
    }
    return number
  }

  /// The path of the field with a number. Cost: a lookup per segment.
  /// - Throws: ``StorageError/corruption(path:detail:)`` when there is no such field.
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

  /// The paths of all collections with an id, emptied ones included; `nil` where they are more than `countMax`.
  ///
  /// Cost: two lookups a collection.
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
        throw .corruption(path: "collectionGroups", detail: "a key without a collection number")
      }
      if paths.count == countMax { return nil }
      paths.append(try collectionPath(number))
      rows.consume()
    }
    return paths
  }

  /// A number of ``Table/meta``; 0 where it was never written.
  package mutating func meta(_ name: MetaKey) throws(StorageError) -> UInt64 {
    key.begin(name)
    guard let row = try key.withBytes({ (key) throws(StorageError) in try snapshot.value(for: key) }) else { return 0 }
    guard row.count == 8 else { throw .corruption(path: "meta", detail: "\(name.rawValue) has \(row.count) bytes") }
    let number = UInt64(littleEndian: row.loadUnaligned(as: UInt64.self))
    // What is counted up or made a time must not overflow, and these rows have no checksum.
    guard name == .incarnation || name == .format || number <= Self.metaMax else {
      throw .corruption(path: "meta", detail: "\(name.rawValue) is \(number)")
    }
    return number
  }

  /// No time and no count of ``Table/meta`` is higher: the last moment that a timestamp can hold, in microseconds.
  private static let metaMax = 253_402_300_799_999_999 as UInt64

  /// The version of the last commit the snapshot shows.
  package mutating func lastVersion() throws(StorageError) -> Int64 {
    Int64(bitPattern: try meta(.lastVersion))
  }

  // MARK: Documents

  /// The document as the snapshot shows it, or `nil`. Cost: one lookup and the checksum.
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

  /// The document whose id is given as ``OrderedCode/append(lastID:to:)`` writes it, or `nil`. Cost: one lookup and the
  /// checksum.
  package mutating func document(idCode: [UInt8], in collection: UInt64) throws(StorageError) -> StoredDocument? {
    key.begin(.documents)
    key.append(number: collection)
    key.append(raw: idCode)
    return try key.withBytes { (key) throws(StorageError) in
      guard let row = try snapshot.value(for: key) else { return nil }
      return try Self.decode(row: row, key: key)
    }
  }

  /// The document a key names, or `nil`. Cost: two lookups.
  package mutating func document(_ documentKey: DocumentKey) throws(StorageError) -> StoredDocument? {
    guard let row = try collection(documentKey.collection) else { return nil }
    return try document(documentKey.id, in: row.number)
  }

  /// The document as it was at a version, or `nil`.
  ///
  /// The version must not be below ``MetaKey/historyFrom``. Cost: as ``document(_:in:)``, and one seek in the history.
  package mutating func document<ID: Collection<UInt8>>(
    _ id: ID, in collection: UInt64, at version: Int64
  ) throws(StorageError) -> StoredDocument? {
    let current = try document(id, in: collection)
    if let current, current.updateVersion <= version { return current }
    return try beforeImage(id, in: collection, after: version)
  }

  /// The document before the first commit after `version` that changed it; `nil` where it was missing then: made or
  /// loaded later, or never there.
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
    // A before-image is the old row byte for byte; its checksum covers the key it stood under.
    key.begin(.documents)
    key.append(number: collection)
    key.append(lastID: id)
    let image = try key.withBytes { (key) throws(StorageError) in try Self.decode(row: row, key: key) }
    // What was made after the version has no before-image of its making: this is one of what it became.
    return image.updateVersion <= version ? image : nil
  }

  /// The document in a row of ``Table/documents``.
  /// - Throws: ``StorageError/corruption(path:detail:)`` when it is damaged.
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
