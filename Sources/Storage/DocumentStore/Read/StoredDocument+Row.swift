import CXXHash
import DocumentModel

/// The row of a document.
///
/// The layout is little-endian: format byte (1), create version (8), update version (8), checksum (4), fields. The
/// checksum covers the storage key, both versions and the fields, so a row under a wrong key is detected too.
extension StoredDocument {
  static let format: UInt8 = 1
  static let headerBytes = 21

  /// Reads and verifies a row.
  /// - Throws: ``CorruptDocument`` if the row is too short, has an unknown format, or fails its checksum.
  init(row: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer) throws(CorruptDocument) {
    guard row.count >= Self.headerBytes else { throw CorruptDocument(reason: "the row is too short") }
    guard row[0] == Self.format else { throw CorruptDocument(reason: "the row has unknown format \(row[0])") }
    let create = Int64(littleEndian: row.loadUnaligned(fromByteOffset: 1, as: Int64.self))
    let update = Int64(littleEndian: row.loadUnaligned(fromByteOffset: 9, as: Int64.self))
    let fields = UnsafeRawBufferPointer(rebasing: row[Self.headerBytes...])
    let stored = UInt32(littleEndian: row.loadUnaligned(fromByteOffset: 17, as: UInt32.self))
    let computed = Self.checksum(key: key, create: create, update: update, fields: fields)
    guard stored == computed else { throw CorruptDocument(reason: "its checksum does not match") }
    self.init(createVersion: create, updateVersion: update, fields: fields)
  }

  /// Encodes a row.
  static func encode(
    key: UnsafeRawBufferPointer, create: Int64, update: Int64, fields: UnsafeRawBufferPointer, into row: inout [UInt8]
  ) {
    row.removeAll(keepingCapacity: true)
    row.reserveCapacity(headerBytes + fields.count)
    row.append(format)
    withUnsafeBytes(of: create.littleEndian) { row.append(contentsOf: $0) }
    withUnsafeBytes(of: update.littleEndian) { row.append(contentsOf: $0) }
    let sum = checksum(key: key, create: create, update: update, fields: fields)
    withUnsafeBytes(of: sum.littleEndian) { row.append(contentsOf: $0) }
    row.append(raw: fields)
  }

  private static func checksum(
    key: UnsafeRawBufferPointer, create: Int64, update: Int64, fields: UnsafeRawBufferPointer
  ) -> UInt32 {
    let keyed = XXH3_64bits(key.baseAddress, key.count)
    var times = (create.littleEndian, update.littleEndian)
    let timed = XXH3_64bits_withSeed(&times, 16, keyed)
    return UInt32(truncatingIfNeeded: XXH3_64bits_withSeed(fields.baseAddress, fields.count, timed))
  }
}

/// The error for a stored document that cannot be decoded.
struct CorruptDocument: Error {
  let reason: String
}
