import CXXHash
import DocumentModel

/// A document in its stored form, read in place: a header and the encoded fields.
///
/// The layout is little-endian: format byte (1), create version (8), update version (8), checksum (4), fields. The
/// checksum covers the storage key, both versions and the fields, so a row under a wrong key is detected too.
package struct StoredDocument {
  /// The commit version that created the document.
  package let createVersion: Int64
  /// The commit version that last changed the document.
  package let updateVersion: Int64
  /// The encoded fields, valid as long as the snapshot they came from.
  package let fields: UnsafeRawBufferPointer

  static let format: UInt8 = 1
  static let headerBytes = 21

  /// Reads and verifies a row.
  /// - Throws: ``CorruptDocument`` if the row is too short, has an unknown format, or fails its checksum.
  init(row: UnsafeRawBufferPointer, key: UnsafeRawBufferPointer) throws(CorruptDocument) {
    guard row.count >= Self.headerBytes else { throw CorruptDocument(reason: "the row is too short") }
    guard row[0] == Self.format else { throw CorruptDocument(reason: "the row has unknown format \(row[0])") }
    createVersion = Int64(littleEndian: row.loadUnaligned(fromByteOffset: 1, as: Int64.self))
    updateVersion = Int64(littleEndian: row.loadUnaligned(fromByteOffset: 9, as: Int64.self))
    fields = UnsafeRawBufferPointer(rebasing: row[Self.headerBytes...])
    let stored = UInt32(littleEndian: row.loadUnaligned(fromByteOffset: 17, as: UInt32.self))
    let computed = Self.checksum(key: key, create: createVersion, update: updateVersion, fields: fields)
    guard stored == computed else { throw CorruptDocument(reason: "its checksum does not match") }
  }

  private init(_ document: StoredDocument, fields: UnsafeRawBufferPointer) {
    createVersion = document.createVersion
    updateVersion = document.updateVersion
    self.fields = fields
  }

  /// Returns the document with other fields, for a response with computed fields. Valid as long as `fields`.
  package func with(fields: UnsafeRawBufferPointer) -> StoredDocument { StoredDocument(self, fields: fields) }

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
