import KeyValue

/// An iterator over the objects of a bucket in name order, optionally with their versions. The versions of a name
/// come before the object itself, the oldest first.
struct ObjectIterator {
  private let bucket: String
  private let live: MetadataCursor
  private let liveBase: [UInt8]
  private let old: MetadataCursor?
  private let oldBase: [UInt8]
  private var hasLive = false
  private var hasOld = false

  init(_ snapshot: any KeyValueSnapshot, _ bucket: String, includesVersions: Bool) throws(FilesError) {
    self.bucket = bucket
    live = try MetadataCursor(snapshot)
    liveBase = FilesKeySpace.objects(of: bucket)
    old = includesVersions ? try MetadataCursor(snapshot) : nil
    oldBase = FilesKeySpace.versions(of: bucket)
  }

  /// The length of the suffix of a version: a NUL and a generation.
  private static let suffixBytes = 9

  private var liveName: UnsafeRawBufferPointer? {
    hasLive ? UnsafeRawBufferPointer(rebasing: live.key.dropFirst(liveBase.count)) : nil
  }

  private var oldName: UnsafeRawBufferPointer? {
    guard hasOld, let old else { return nil }
    return UnsafeRawBufferPointer(rebasing: old.key.dropFirst(oldBase.count).dropLast(Self.suffixBytes))
  }

  private var isAtOld: Bool {
    guard let oldName else { return false }
    guard let liveName else { return true }
    return !liveName.lexicographicallyPrecedes(oldName)
  }

  /// The current name, or `nil` at the end. Valid until the iterator moves.
  var name: UnsafeRawBufferPointer? { isAtOld ? oldName : liveName }

  /// The stored size of the current object's metadata, in bytes.
  var byteCount: Int {
    if isAtOld, let old { return old.key.count + old.value.count }
    return hasLive ? live.key.count + live.value.count : 0
  }

  /// The position for ``seek(_:)``: a name, followed by a NUL and a generation for a version.
  var position: [UInt8] {
    if isAtOld, let old { return Array(old.key.dropFirst(oldBase.count)) }
    let name = liveName.map { Array($0) } ?? []
    // After all versions of the name.
    return old == nil ? name : name + [0] + [UInt8](repeating: 0xFF, count: 8)
  }

  /// Moves to the first name or position that is not lower than `position`.
  mutating func seek(_ position: [UInt8]) throws(FilesError) {
    hasLive = try live.seek(liveBase + position.prefix { $0 != 0 }) && live.key.starts(with: liveBase)
    if let old { hasOld = try old.seek(oldBase + position) && isOldKey(old.key) }
  }

  /// Moves to the next object.
  mutating func next() throws(FilesError) {
    if isAtOld, let old {
      hasOld = try old.next() && isOldKey(old.key)
    } else if hasLive {
      hasLive = try live.next() && live.key.starts(with: liveBase)
    }
  }

  private func isOldKey(_ key: UnsafeRawBufferPointer) -> Bool {
    key.count > oldBase.count + Self.suffixBytes && key.starts(with: oldBase)
  }

  /// Decodes the current object. ``name`` must not be `nil`.
  /// - Throws: ``FilesError/damaged(_:)`` if the record is not valid.
  func object() throws(FilesError) -> StoredObject {
    let text = name.map { String(decoding: $0, as: UTF8.self) } ?? ""
    let name = ObjectName(bucket: bucket, name: text)
    let record = isAtOld ? old?.value : live.value
    guard let record, let object = ObjectRecord.decode(record, name) else { throw .damaged(name) }
    return object
  }
}
