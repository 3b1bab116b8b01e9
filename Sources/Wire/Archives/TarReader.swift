import FixtureTree

/// A reader for the regular files of a tar archive: ustar, GNU's long names, and the extended headers of POSIX.
///
/// Source: POSIX.1-2017, `pax`, section "ustar Interchange Format", and the manual of GNU tar.
struct TarReader {
  /// The size of a header, and the unit of content.
  static let blockBytes = 512

  let file: String
  let stream: ByteStream

  /// Returns whether a file begins with a header of a tar archive.
  static func isArchive(_ head: [UInt8]) -> Bool {
    head.count >= blockBytes && head[257..<262].elementsEqual("ustar".utf8)
  }

  /// Passes each regular file to `body`: its path, its size, and a function that returns its content piece by piece.
  /// Content that `body` does not read is skipped. `special` receives the path of each link, sparse file and device.
  /// - Throws: ``FixtureTreeError`` if the archive is damaged, or the error of `body` or `special`.
  func forEach(
    _ body: (String, Int, @escaping ByteStream.Next) throws(FixtureTreeError) -> Void,
    special: (String) throws(FixtureTreeError) -> Void = { _ in }
  ) throws(FixtureTreeError) {
    var longName: String?
    var longSize: Int?
    var entries = 0
    while true {
      let header = try stream.take(Self.blockBytes)
      if header.isEmpty || header.allSatisfy({ $0 == 0 }) { return }
      guard header.count == Self.blockBytes, Self.hasValidSum(header), let shortSize = Self.size(header[124..<136])
      else {
        throw failure(entries == 0 ? "is not a tar archive" : "the archive is damaged; copy or download it again")
      }
      entries += 1
      guard entries <= ArchiveLimits.entriesMax else {
        throw failure("the archive has more than \(ArchiveLimits.entriesMax) entries")
      }
      let type = header[156]
      let size = type == UInt8(ascii: "x") || type == UInt8(ascii: "g") ? shortSize : longSize ?? shortSize
      let padded = size + (Self.blockBytes - size % Self.blockBytes) % Self.blockBytes
      switch type {
      case UInt8(ascii: "L"): longName = Self.text(try content(padded).prefix(size))
      case UInt8(ascii: "x"):
        let fields = Self.fields(try content(padded).prefix(size))
        longName = fields["path"] ?? longName
        longSize = fields["size"].flatMap { Int($0) }.flatMap { (0...(1 << 50)).contains($0) ? $0 : nil }
      case UInt8(ascii: "0"), 0, UInt8(ascii: "7"):
        let entry = Remainder(left: size)
        let stream = stream
        try body(longName ?? Self.name(header), size) { () throws(FixtureTreeError) in
          let piece = try stream.takeSome(entry.left)
          entry.left -= piece.count
          return Array(piece)
        }
        try skip(entry.left + padded - size)
        (longName, longSize) = (nil, nil)
      default:
        if !Self.isNoFile(type) { try special(longName ?? Self.name(header)) }
        try skip(padded)
        if type != UInt8(ascii: "g"), type != UInt8(ascii: "K") { (longName, longSize) = (nil, nil) }
      }
    }
  }

  /// Whether a type is that of a folder, of a header about the next entry, or of a name of the volume.
  private static func isNoFile(_ type: UInt8) -> Bool { "5gKxLVD".utf8.contains(type) }

  /// The bytes of an entry that were not read.
  private final class Remainder {
    var left: Int
    init(left: Int) { self.left = left }
  }

  private func content(_ count: Int) throws(FixtureTreeError) -> [UInt8] {
    guard count <= ArchiveLimits.headerBytesMax else { throw failure("the archive has a header of \(count) bytes") }
    let bytes = try stream.take(count)
    guard bytes.count == count else { throw incomplete }
    return bytes
  }

  private func skip(_ count: Int) throws(FixtureTreeError) {
    var left = count
    while left > 0 {
      let piece = try stream.takeSome(left)
      guard !piece.isEmpty else { throw incomplete }
      left -= piece.count
    }
  }

  private func failure(_ message: String) -> FixtureTreeError { FixtureTreeError(file: file, message: message) }

  private var incomplete: FixtureTreeError { failure("the archive is incomplete; copy or download it again") }

  private static func hasValidSum(_ header: [UInt8]) -> Bool {
    guard let stored = octal(header[148..<156]) else { return false }
    var sum = 0
    for (index, byte) in header.enumerated() { sum += (148..<156).contains(index) ? 0x20 : Int(byte) }
    return sum == stored
  }

  private static func octal(_ field: ArraySlice<UInt8>) -> Int? {
    let digits = field.drop { $0 == 0x20 }.prefix { $0 != 0 && $0 != 0x20 }
    return digits.isEmpty ? 0 : Int(text(digits), radix: 8)
  }

  /// Returns a size: octal digits, or a number in base 256 if the first bit is set.
  private static func size(_ field: ArraySlice<UInt8>) -> Int? {
    guard let first = field.first, first & 0x80 != 0 else { return octal(field).flatMap { $0 >= 0 ? $0 : nil } }
    var size = first == 0x80 ? 0 : Int.max
    for byte in field.dropFirst() {
      guard size <= 1 << 42 else { return nil }
      size = size << 8 | Int(byte)
    }
    return size <= 1 << 50 ? size : nil
  }

  private static func name(_ header: [UInt8]) -> String {
    let name = text(header[..<100])
    let prefix = header[257..<263].elementsEqual("ustar\0".utf8) ? text(header[345..<500]) : ""
    return prefix.isEmpty ? name : "\(prefix)/\(name)"
  }

  private static func text(_ bytes: ArraySlice<UInt8>) -> String {
    String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
  }

  /// Parses `LENGTH NAME=VALUE` lines.
  private static func fields(_ bytes: ArraySlice<UInt8>) -> [String: String] {
    var fields: [String: String] = [:]
    var rest = bytes
    while let space = rest.firstIndex(of: 0x20), let length = Int(String(decoding: rest[..<space], as: UTF8.self)),
      length > space - rest.startIndex + 1, length <= rest.count
    {
      let line = rest[(space + 1)..<(rest.startIndex + length)].dropLast()
      if let equals = line.firstIndex(of: UInt8(ascii: "=")) {
        fields[String(decoding: line[..<equals], as: UTF8.self)] =
          String(decoding: line[(equals + 1)...], as: UTF8.self)
      }
      rest = rest.dropFirst(length)
    }
    return fields
  }
}
