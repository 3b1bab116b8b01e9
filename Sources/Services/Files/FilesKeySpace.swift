/// Every table of the metadata store, in sort order, and its keys. Numbers are on disk: never reuse or renumber one.
///
/// The store is the file `files/data.mdb` of a data directory; the content lies beside it, see ``ContentDirectory``.
package enum FilesKeySpace {
  enum Table: UInt8, CaseIterable {
    case buckets = 0x10  // bucket → bucket record
    case objects = 0x20  // bucket, 0x00, name → object record
    case versions = 0x28  // bucket, 0x00, name, 0x00, generation → record of an object that was replaced or deleted
    case contents = 0x30  // digest → how many objects hold the content, 8 bytes
    case uploads = 0x40  // upload id → upload record
    case pendingCommit = 0x50  // (nothing) → what happens with a commit of documents, see StagedFileCommit
  }

  static func bucket(_ name: String) -> [UInt8] { [Table.buckets.rawValue] + name.utf8 }

  /// No bucket's name holds a NUL, so that one bucket's objects are contiguous.
  static func object(_ name: ObjectName) -> [UInt8] { objects(of: name.bucket) + name.name.utf8 }

  /// What the keys of all objects of a bucket begin with.
  static func objects(of bucket: String) -> [UInt8] { [Table.objects.rawValue] + bucket.utf8 + [0] }

  /// No object's name holds a NUL, so that one name's versions are contiguous, the oldest first.
  static func version(_ name: ObjectName, _ generation: Int64) -> [UInt8] {
    versions(of: name.bucket) + name.name.utf8 + [0]
      + (0..<8).map { UInt8(truncatingIfNeeded: generation >> (56 - 8 * $0)) }
  }

  /// What the keys of all versions of a bucket begin with.
  static func versions(of bucket: String) -> [UInt8] { [Table.versions.rawValue] + bucket.utf8 + [0] }

  static func content(_ digest: ContentDigest) -> [UInt8] { [Table.contents.rawValue] + digest.bytes }

  static func upload(_ id: String) -> [UInt8] { [Table.uploads.rawValue] + id.utf8 }

  static let pendingCommit: [UInt8] = [Table.pendingCommit.rawValue]

  /// What the keys of a table begin with.
  static func all(_ table: Table) -> [UInt8] { [table.rawValue] }

  /// The object that a key of ``Table/objects`` names; `nil` where it is none.
  static func objectName(_ key: UnsafeRawBufferPointer) -> ObjectName? {
    guard key.first == Table.objects.rawValue, let end = key.firstIndex(of: 0) else { return nil }
    return ObjectName(
      bucket: String(decoding: key[1..<end], as: UTF8.self), name: String(decoding: key[(end + 1)...], as: UTF8.self))
  }

  /// The object whose version a key of ``Table/versions`` names; `nil` where it is none.
  static func versionName(_ key: UnsafeRawBufferPointer) -> ObjectName? {
    guard key.first == Table.versions.rawValue, key.count > 9, let end = key.firstIndex(of: 0), end < key.count - 9,
      key[key.count - 9] == 0
    else { return nil }
    return ObjectName(
      bucket: String(decoding: key[1..<end], as: UTF8.self),
      name: String(decoding: key[(end + 1)..<(key.count - 9)], as: UTF8.self))
  }

  /// The least key above all that begin with `prefix`.
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
