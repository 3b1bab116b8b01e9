import Digests
import FixtureTree

/// A reader for the files of a zip archive, by its directory at the end, with 64-bit sizes. Files are stored or
/// deflated.
///
/// Source: APPNOTE.TXT 6.3.9 of PKWARE, sections 4.3 to 4.5.
struct ZipReader {
  let archive: ArchiveFile

  /// An entry of the directory.
  private struct Entry {
    var name = ""
    var method = 0
    var flags = 0
    var sum: UInt32 = 0
    var packed = 0
    var size = 0
    var offset = 0
  }

  static func isArchive(_ head: [UInt8]) -> Bool { head.starts(with: [0x50, 0x4B, 3, 4]) }

  /// Passes each file to `body`: its path, its size, and a function that returns its content piece by piece. Checks the
  /// checksum of content that is read to its end.
  /// - Throws: ``FixtureTreeError`` if the archive is damaged, or the error of `body`.
  func forEach(
    _ body: (String, Int, @escaping ByteStream.Next) throws(FixtureTreeError) -> Void
  ) throws(FixtureTreeError) {
    let (start, byteCount, count) = try directory()
    guard count <= ArchiveLimits.entriesMax else {
      throw failure("the archive has more than \(ArchiveLimits.entriesMax) entries")
    }
    let stream = ByteStream(archive.source(start..<start + byteCount))
    for _ in 0..<count {
      let entry = try entry(stream)
      guard !entry.name.utf8.isEmpty, entry.name.utf8.last != UInt8(ascii: "/") else { continue }
      guard entry.flags & 1 == 0 else { throw failure("\(entry.name) is encrypted; unpack the archive first") }
      try body(entry.name, entry.size, try content(entry))
    }
  }

  // MARK: The directory

  private static let endBytes = 22
  private static let commentBytesMax = 65_535

  /// Returns the offset and the size of the directory, and the number of its entries.
  private func directory() throws(FixtureTreeError) -> (Int, Int, Int) {
    let tailStart = max(0, archive.size - Self.endBytes - Self.commentBytesMax)
    let tail = try archive.bytes(at: tailStart, count: archive.size - tailStart)
    var position = tail.count - Self.endBytes
    while position >= 0, !tail[position...].starts(with: [0x50, 0x4B, 5, 6]) { position -= 1 }
    guard position >= 0 else { throw failure("the archive is incomplete; copy or download it again") }
    var count = Self.number(tail, position + 10, 2)
    var size = Self.number(tail, position + 12, 4)
    var start = Self.number(tail, position + 16, 4)
    if count == 0xFFFF || size == 0xFFFF_FFFF || start == 0xFFFF_FFFF {
      let locator = try archive.bytes(at: max(0, tailStart + position - 20), count: 20)
      guard locator.starts(with: [0x50, 0x4B, 6, 7]) else { throw damage }
      let end = try archive.bytes(at: Self.number(locator, 8, 8), count: 56)
      guard end.count == 56, end.starts(with: [0x50, 0x4B, 6, 6]) else { throw damage }
      (count, size, start) = (Self.number(end, 32, 8), Self.number(end, 40, 8), Self.number(end, 48, 8))
    }
    guard start <= archive.size, size <= archive.size - start else { throw damage }
    return (start, size, count)
  }

  private func entry(_ stream: ByteStream) throws(FixtureTreeError) -> Entry {
    let head = try stream.take(46)
    guard head.count == 46, head.starts(with: [0x50, 0x4B, 1, 2]) else { throw damage }
    var entry = Entry()
    entry.flags = Self.number(head, 8, 2)
    entry.method = Self.number(head, 10, 2)
    entry.sum = UInt32(truncatingIfNeeded: Self.number(head, 16, 4))
    entry.packed = Self.number(head, 20, 4)
    entry.size = Self.number(head, 24, 4)
    entry.offset = Self.number(head, 42, 4)
    let (nameCount, extraCount) = (Self.number(head, 28, 2), Self.number(head, 30, 2))
    let rest = try stream.take(nameCount + extraCount + Self.number(head, 32, 2))
    guard rest.count >= nameCount + extraCount else { throw damage }
    entry.name = String(decoding: rest[..<nameCount], as: UTF8.self)
    Self.widen(&entry, Array(rest[nameCount..<nameCount + extraCount]))
    return entry
  }

  /// Replaces sizes and offsets that do not fit 32 bits by those of the extra field 1.
  private static func widen(_ entry: inout Entry, _ extra: [UInt8]) {
    var position = 0
    while position + 4 <= extra.count {
      let (id, count) = (number(extra, position, 2), number(extra, position + 2, 2))
      var field = position + 4
      let end = min(extra.count, field + count)
      func take(_ value: inout Int) {
        guard value == 0xFFFF_FFFF, field + 8 <= end else { return }
        value = number(extra, field, 8)
        field += 8
      }
      if id == 1 {
        take(&entry.size)
        take(&entry.packed)
        take(&entry.offset)
      }
      position = end
    }
  }

  // MARK: Content

  private func content(_ entry: Entry) throws(FixtureTreeError) -> ByteStream.Next {
    guard entry.offset <= archive.size - 30 else { throw damage }
    let head = try archive.bytes(at: entry.offset, count: 30)
    guard head.count == 30, head.starts(with: [0x50, 0x4B, 3, 4]) else { throw damage }
    let start = entry.offset + 30 + Self.number(head, 26, 2) + Self.number(head, 28, 2)
    guard start <= archive.size, entry.packed <= archive.size - start else { throw damage }
    let packed = archive.source(start..<start + entry.packed, name: "\(archive.path): \(entry.name)")
    let unpacked: ByteSource
    switch entry.method {
    case 0: unpacked = packed
    case 8: unpacked = try packed.inflated()
    default:
      throw failure("\(entry.name) has an unknown compression (\(entry.method)); unpack the archive first")
    }
    let next = ByteStream.pieces(unpacked)
    let check = Check()
    let damage = FixtureTreeError(
      file: packed.name, message: "the content is damaged; copy or download the archive again")
    return { () throws(FixtureTreeError) in
      let piece = try next()
      check.sum = piece.withUnsafeBytes { Crc32.extend(check.sum, $0) }
      check.count += piece.count
      if piece.isEmpty, check.sum != entry.sum || check.count != entry.size { throw damage }
      return piece
    }
  }

  /// The checksum and the size of the content that was read.
  private final class Check {
    var sum: UInt32 = 0
    var count = 0
  }

  private func failure(_ message: String) -> FixtureTreeError { FixtureTreeError(file: archive.path, message: message) }

  private var damage: FixtureTreeError { failure("the archive is damaged; copy or download it again") }

  /// Returns a little-endian number. One that exceeds 62 bits becomes the largest such number.
  private static func number(_ bytes: [UInt8], _ offset: Int, _ count: Int) -> Int {
    var number: UInt64 = 0
    for index in (0..<count).reversed() { number = number << 8 | UInt64(bytes[offset + index]) }
    return Int(min(number, 1 << 62))
  }
}
