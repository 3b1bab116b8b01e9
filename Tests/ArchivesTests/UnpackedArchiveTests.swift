import Compression
import FixtureTree
import Foundation
import Testing
import TestSupport

@testable import Archives

/// Unpacking of archives, and archives that are refused.
@Suite struct UnpackedArchiveTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Returns a header of a tar archive with its content.
  private static func entry(_ name: String, _ content: [UInt8], type: Character = "0") -> [UInt8] {
    header(name, content.count, type: type) + content
      + [UInt8](repeating: 0, count: (512 - content.count % 512) % 512)
  }

  private static func header(_ name: String, _ size: Int, type: Character = "0") -> [UInt8] {
    var header = [UInt8](repeating: 0, count: 512)
    func put(_ text: String, at offset: Int) {
      header.replaceSubrange(offset..<offset + text.utf8.count, with: text.utf8)
    }
    func octal(_ number: Int, _ digits: Int) -> String {
      let text = String(number, radix: 8)
      return String(repeating: "0", count: digits - text.count) + text
    }
    put(name, at: 0)
    put(octal(size, 11), at: 124)
    put("        ", at: 148)
    put(String(type), at: 156)
    put("ustar\0", at: 257)
    put(octal(header.reduce(0) { $0 + Int($1) }, 6) + "\0 ", at: 148)
    return header
  }

  private static let end = [UInt8](repeating: 0, count: 1024)

  private func unpack(_ bytes: [UInt8]) throws -> UnpackedArchive? {
    let path = directory.file("archive.tar.gz")
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    return try UnpackedArchive(path) { _ in true }
  }

  private func text(_ archive: UnpackedArchive?, _ path: String) throws -> String {
    let folder = try #require(archive).folder
    return String(decoding: try Data(contentsOf: URL(fileURLWithPath: "\(folder)/\(path)")), as: UTF8.self)
  }

  private func message(_ bytes: [UInt8]) throws -> String {
    try #require(throws: FixtureTreeError.self) { try unpack(bytes) }.description
  }

  /// Returns the gzip form of bytes, made with stored blocks.
  private static func gzip(_ bytes: [UInt8], _ sum: (UnsafeRawBufferPointer) -> UInt32) -> [UInt8] {
    var out: [UInt8] = [31, 139, 8, 0, 0, 0, 0, 0, 0, 3]
    var rest = bytes[...]
    repeat {
      let piece = rest.prefix(65_535)
      rest = rest.dropFirst(piece.count)
      let count = UInt16(piece.count)
      out += [rest.isEmpty ? 1 : 0, UInt8(count & 255), UInt8(count >> 8), UInt8(~count & 255), UInt8(~count >> 8)]
      out += piece
    } while !rest.isEmpty
    for number in [bytes.withUnsafeBytes(sum), UInt32(bytes.count)] {
      for shift in 0..<4 { out.append(UInt8(truncatingIfNeeded: number >> (8 * UInt32(shift)))) }
    }
    return out
  }

  private static func crc(_ bytes: UnsafeRawBufferPointer) -> UInt32 {
    ~bytes.reduce(UInt32.max) { sum, byte in
      (0..<8).reduce(sum ^ UInt32(byte)) { sum, _ in sum & 1 == 1 ? sum >> 1 ^ 0xEDB8_8320 : sum >> 1 }
    }
  }

  @Test func tarArchivesAreUnpacked() throws {
    let long = String(repeating: "long/", count: 30) + "name"
    let pax = "26 path=pax/\(String(repeating: "p", count: 13))\n"
    let tar =
      Self.entry("./a/output-0", Array("hello".utf8)) + Self.entry("a/folder", [], type: "5")
      + Self.entry("link", Array("x".utf8), type: "2")
      + Self.entry("././@LongLink", Array(long.utf8) + [0], type: "L") + Self.entry("short", Array("long".utf8))
      + Self.entry("pax", Array(pax.utf8), type: "x") + Self.entry("short", Array("pax".utf8)) + Self.end
    for bytes in [tar, Self.gzip(tar, Self.crc), try Self.compressed(tar, .gzip), try Self.compressed(tar, .zstd)] {
      let archive = try unpack(bytes)
      #expect(try text(archive, "a/output-0") == "hello")
      #expect(try text(archive, long) == "long")
      #expect(try text(archive, "pax/\(String(repeating: "p", count: 13))") == "pax")
      let folder = try #require(archive).folder
      #expect(!FileManager.default.fileExists(atPath: "\(folder)/link"))
      #expect(archive?.leftOut == "link")
    }
  }

  private static func compressed(_ bytes: [UInt8], _ format: CompressionFormat) throws -> [UInt8] {
    try Compressor(format).encode(bytes, isLast: true)
  }

  @Test func theFolderIsRemovedWithTheObject() throws {
    var archive = try unpack(Self.entry("a/b/c", [1]) + Self.end)
    let folder = try #require(archive).folder
    #expect(FileManager.default.fileExists(atPath: "\(folder)/a/b/c"))
    archive = nil
    #expect(!FileManager.default.fileExists(atPath: folder))
  }

  @Test func noPathLeavesTheFolder() throws {
    for name in ["../x", "/etc/x", "a/../../x", "..", "a/.."] {
      #expect(try message(Self.entry(name, [1]) + Self.end).contains("not safe to unpack"), "\(name)")
    }
  }

  @Test func incompleteArchivesAreRefused() throws {
    let tar = Self.entry("a", [UInt8](repeating: 7, count: 3000)) + Self.end
    #expect(try message(Array(tar[..<1000])).contains("incomplete"))
    let packed = Self.gzip(tar, Self.crc)
    #expect(try message(Array(packed[..<2000])).contains("the gzip data end too early"))
    let zstd = try Self.compressed(tar, .zstd)
    #expect(try message(Array(zstd.dropLast(3))).contains("the zstd data end too early"))
    var damaged = packed
    damaged[2000] ^= 1
    #expect(try message(damaged).contains("damaged"))
    #expect(try message(Self.entry("a", [1]) + Self.entry("a", [2]) + Self.end).contains("a cannot be unpacked"))
  }

  @Test func otherFilesAreNoArchives() throws {
    #expect(try unpack(Array("{}".utf8)) == nil)
    #expect(try unpack([]) == nil)
    #expect(try unpack(Self.gzip(Array("{}".utf8), Self.crc)) == nil)
  }

  @Test func aZipArchiveIsUnpacked() throws {
    let zip = Self.zip([("a/output-0", Array("hello".utf8))])
    #expect(try text(try unpack(zip), "a/output-0") == "hello")
    // The deflated bytes of a gzip file without extra fields are between its header and its checksum.
    let deflated = Array(try Self.compressed(Array("hello".utf8), .gzip).dropFirst(10).dropLast(8))
    let packed = Self.zip([("a/output-0", Array("hello".utf8))], deflated: deflated)
    #expect(try text(try unpack(packed), "a/output-0") == "hello")
    let cut = Self.zip([("a/output-0", Array("hello".utf8))], deflated: Array(deflated.dropLast()))
    #expect(try message(cut).contains("a/output-0: the deflate data end too early"))
    let other = Self.zip([("a/output-0", Array("hallo".utf8))], deflated: deflated)
    #expect(try message(other).contains("the content is damaged"))
    #expect(try message(Self.zip([("../x", [1])])).contains("not safe to unpack"))
    var damaged = zip
    damaged[40] ^= 1
    #expect(try message(damaged).contains("the content is damaged"))
    #expect(try message(Array(zip.dropLast(10))).contains("incomplete"))
  }

  /// Returns a zip archive of stored files, or of one file that is deflated.
  private static func zip(_ files: [(name: String, content: [UInt8])], deflated: [UInt8]? = nil) -> [UInt8] {
    func number(_ value: Int, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }
    var (out, directory): ([UInt8], [UInt8]) = ([], [])
    for (name, content) in files {
      let sum = Int(content.withUnsafeBytes(crc))
      let packed = deflated ?? content
      let fields: [UInt8] =
        [20, 0, 0, 0, deflated == nil ? 0 : 8, 0, 0, 0, 0, 0] + number(sum, 4) + number(packed.count, 4)
        + number(content.count, 4)
        + number(name.utf8.count, 2) + [0, 0]
      directory += [0x50, 0x4B, 1, 2, 20, 0] + fields + [UInt8](repeating: 0, count: 10) + number(out.count, 4)
      directory += Array(name.utf8)
      out += [0x50, 0x4B, 3, 4] + fields + Array(name.utf8) + packed
    }
    return out + directory + [0x50, 0x4B, 5, 6, 0, 0, 0, 0] + number(files.count, 2) + number(files.count, 2)
      + number(directory.count, 4) + number(out.count, 4) + [0, 0]
  }

  @Test func aBombIsRefused() throws {
    // Zeros, which gzip packs at about 1:1000: more of them than the size that is always allowed.
    let size = ArchiveLimits.anyRatioBytes + (80 << 20)
    try Data(Self.header("zeros", size)).write(to: URL(fileURLWithPath: directory.file("header")))
    let shell = Process()
    shell.executableURL = URL(fileURLWithPath: "/bin/sh")
    shell.arguments = ["-c", "cd '\(directory.path)' && (cat header; head -c \(size) /dev/zero) | gzip > bomb"]
    try shell.run()
    shell.waitUntilExit()
    let error = try #require(throws: FixtureTreeError.self) {
      try UnpackedArchive(directory.file("bomb")) { _ in true }
    }
    #expect(error.description.contains("times its size, so it may be an attack"))
  }
}
