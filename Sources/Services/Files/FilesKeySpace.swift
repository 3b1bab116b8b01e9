import ContentSharing
/// The tables of the metadata store, in key order, and their keys. The numbers are on disk: never reuse or renumber
/// one.
///
/// The store is the file `files/data.mdb` of a data directory. The content is next to it, see ``ContentDirectory``.
package enum FilesKeySpace {
  enum Table: UInt8, CaseIterable {
    case buckets = 0x10  // bucket → bucket record
    case objects = 0x20  // bucket, 0x00, name → object record
    case versions = 0x28  // bucket, 0x00, name, 0x00, generation → record of an object that was replaced or deleted
    case contents = 0x30  // digest → the number of objects that refer to the content, 8 bytes
    case uploads = 0x40  // upload ID → upload record
    case pendingCommit = 0x50  // (empty) → a commit of an object together with documents, see StagedFileCommit
    case use = 0x60  // (empty) → the bytes of all objects, also old versions, 8 bytes
    case shared = 0x70  // (empty) → the identity of the shared content, 8 bytes; 1 if the place was claimed
    case sharedSweep = 0x78  // (empty) → the time of the last sweep that removed shared content, 8 bytes
  }

  static func bucket(_ name: String) -> [UInt8] { [Table.buckets.rawValue] + name.utf8 }

  /// A bucket name contains no NUL, so the objects of one bucket are contiguous.
  static func object(_ name: ObjectName) -> [UInt8] { objects(of: name.bucket) + name.name.utf8 }

  /// Returns the key prefix of all objects of a bucket.
  static func objects(of bucket: String) -> [UInt8] { [Table.objects.rawValue] + bucket.utf8 + [0] }

  /// An object name contains no NUL, so the versions of one name are contiguous, the oldest first.
  static func version(_ name: ObjectName, _ generation: Int64) -> [UInt8] {
    versions(of: name.bucket) + name.name.utf8 + [0]
      + (0..<8).map { UInt8(truncatingIfNeeded: generation >> (56 - 8 * $0)) }
  }

  /// Returns the key prefix of all versions of a bucket.
  static func versions(of bucket: String) -> [UInt8] { [Table.versions.rawValue] + bucket.utf8 + [0] }

  static func content(_ digest: ContentDigest) -> [UInt8] { [Table.contents.rawValue] + digest.bytes }

  static func upload(_ id: String) -> [UInt8] { [Table.uploads.rawValue] + id.utf8 }

  static let pendingCommit: [UInt8] = [Table.pendingCommit.rawValue]

  static let use: [UInt8] = [Table.use.rawValue]

  static let shared: [UInt8] = [Table.shared.rawValue]

  static let sharedSweep: [UInt8] = [Table.sharedSweep.rawValue]

  /// Returns the key prefix of a table.
  static func all(_ table: Table) -> [UInt8] { [table.rawValue] }

  /// Returns the object of a key of ``Table/objects``, or `nil` if the key is not valid.
  static func objectName(_ key: UnsafeRawBufferPointer) -> ObjectName? {
    guard key.first == Table.objects.rawValue, let end = key.firstIndex(of: 0) else { return nil }
    return ObjectName(
      bucket: String(decoding: key[1..<end], as: UTF8.self), name: String(decoding: key[(end + 1)...], as: UTF8.self))
  }

  /// Returns the object of a key of ``Table/versions``, or `nil` if the key is not valid.
  static func versionName(_ key: UnsafeRawBufferPointer) -> ObjectName? {
    guard key.first == Table.versions.rawValue, key.count > 9, let end = key.firstIndex(of: 0), end < key.count - 9,
      key[key.count - 9] == 0
    else { return nil }
    return ObjectName(
      bucket: String(decoding: key[1..<end], as: UTF8.self),
      name: String(decoding: key[(end + 1)..<(key.count - 9)], as: UTF8.self))
  }

  /// Returns the lowest key after all keys that begin with `prefix`.
  static func end(of prefix: [UInt8]) -> [UInt8] {
    var end = prefix
    while let last = end.popLast() {
      if last < 0xFF {
        end.append(last + 1)
        return end
      }
    }
    return [0xFF]
  }
}
