import Testing
import TestSupport
@testable import Compression

@Suite struct CompressionTests {
  /// Decodes `coded` in input pieces of `piece` bytes with an output buffer of `room` bytes.
  private func decode(
    _ coded: [UInt8], _ format: CompressionFormat, piece: Int = .max, room: Int = 4096
  ) throws(CompressionError) -> (bytes: [UInt8], isComplete: Bool) {
    let decompressor = try Decompressor(format)
    var out: [UInt8] = []
    var offset = 0
    while true {
      let input = Array(coded[offset..<(offset + min(piece, coded.count - offset))])
      var position = 0
      while true {
        var space = [UInt8](repeating: 0, count: room)
        var failure: CompressionError?
        var count = 0
        input.withUnsafeBytes { input in
          space.withUnsafeMutableBytes { space in
            do throws(CompressionError) {
              count = try decompressor.decode(input, from: &position, into: space)
            } catch { failure = error }
          }
        }
        if let failure { throw failure }
        out += space[..<count]
        if position == input.count, count == 0 { break }
      }
      offset += input.count
      if offset == coded.count { return (out, decompressor.isComplete) }
    }
  }

  /// Compresses pieces into one stream.
  private func encode(_ pieces: [[UInt8]], _ format: CompressionFormat) throws -> [UInt8] {
    let compressor = try Compressor(format)
    var out: [UInt8] = []
    for piece in pieces { out += try compressor.encode(piece) }
    return out + (try compressor.encode([], isLast: true))
  }

  private static func sample(_ count: Int, seed: UInt64) -> [UInt8] {
    var random = SplitMix(seed: seed)
    // Half of it repeats, so that both literals and matches occur.
    return (0..<count).map { $0 % 64 < 32 ? UInt8.random(in: 0...255, using: &random) : UInt8($0 % 7) }
  }

  @Test(arguments: CompressionFormat.allCases, [0, 1, 5000, 1_000_000])
  func contentSurvivesCompression(format: CompressionFormat, count: Int) throws {
    let content = Self.sample(count, seed: 1)
    let half = count / 2
    let coded = try encode([Array(content[..<half]), [], Array(content[half...])], format)
    #expect(CompressionFormat(head: Array(coded.prefix(4))) == format)
    for (piece, room) in [(Int.max, 1 << 16), (7, 64), (4096, 100)] where count < 10_000 || room > 64 {
      let decoded = try decode(coded, format, piece: piece, room: room)
      #expect(decoded.bytes == content && decoded.isComplete)
    }
  }

  @Test(arguments: CompressionFormat.allCases)
  func membersAreConcatenated(format: CompressionFormat) throws {
    let one = try encode([Array("one".utf8)], format)
    let two = try encode([Array("two".utf8)], format)
    #expect(try decode(one + two, format, piece: 3).bytes == Array("onetwo".utf8))
    #expect(try decode(one + two, format).isComplete)
  }

  @Test func zeroBytesMayFollowGzip() throws {
    let coded = try encode([Array("one".utf8)], .gzip)
    let decoded = try decode(coded + [UInt8](repeating: 0, count: 512), .gzip, piece: 100)
    #expect(decoded.bytes == Array("one".utf8) && decoded.isComplete)
    #expect(throws: CompressionError.self) { try decode(coded + Array("rest".utf8), .gzip) }
  }

  @Test(arguments: CompressionFormat.allCases)
  func everyCutIsNoticed(format: CompressionFormat) throws {
    let coded = try encode([Self.sample(300, seed: 2)], format)
    for count in 1..<coded.count {
      let decoded = try decode(Array(coded[..<count]), format)
      #expect(!decoded.isComplete, "\(count) of \(coded.count) bytes")
    }
  }

  @Test(arguments: CompressionFormat.allCases)
  func damageIsNoticed(format: CompressionFormat) throws {
    let content = Self.sample(3000, seed: 3)
    let coded = try encode([content], format)
    var unnoticed = 0
    for offset in coded.indices where offset >= 10 {
      var damaged = coded
      damaged[offset] ^= 0x10
      if let decoded = try? decode(damaged, format), decoded.isComplete, decoded.bytes != content { unnoticed += 1 }
    }
    #expect(unnoticed == 0)
  }

  @Test func aWindowBeyondTheLimitIsRejected() {
    // A frame header that declares a window of 2 GiB: descriptor without content size, then the window byte.
    let frame: [UInt8] = [0x28, 0xB5, 0x2F, 0xFD, 0x00, UInt8((31 - 10) << 3), 0x01, 0x00, 0x00]
    #expect(throws: CompressionError.windowTooLarge) { try decode(frame, .zstd) }
  }

  /// Decodes a raw deflated stream in input pieces of `piece` bytes. `left` is the number of bytes after the stream.
  private func inflate(_ coded: [UInt8], piece: Int) throws -> (bytes: [UInt8], isComplete: Bool, left: Int) {
    let decompressor = try Decompressor.rawDeflate()
    var out: [UInt8] = []
    var offset = 0
    var space = [UInt8](repeating: 0, count: 100)
    while true {
      let input = Array(coded[offset..<min(coded.count, offset + piece)])
      var position = 0
      let count = try input.withUnsafeBytes { input in
        try space.withUnsafeMutableBytes { try decompressor.decode(input, from: &position, into: $0) }
      }
      out += space[..<count]
      offset += position
      if position == 0, count == 0 { return (out, decompressor.isComplete, coded.count - offset) }
    }
  }

  @Test func aRawStreamEndsWithItsLastBlock() throws {
    let content = Self.sample(3000, seed: 4)
    // The deflated bytes of a gzip member without extra fields are between its header and its checksum.
    let deflated = Array(try encode([content], .gzip).dropFirst(10).dropLast(8))
    for piece in [1, 100, Int.max / 2] {
      let decoded = try inflate(deflated + [1, 2, 3], piece: piece)
      #expect(decoded.bytes == content && decoded.isComplete && decoded.left == 3)
    }
    for count in [0, 1, deflated.count / 2, deflated.count - 1] {
      #expect(try !inflate(Array(deflated[..<count]), piece: 100).isComplete, "\(count) bytes")
    }
    #expect(throws: CompressionError.self) { try inflate([7, 1, 2, 3], piece: 100) }
  }

  @Test func namesAndHeadsShowTheFormat() {
    #expect(CompressionFormat(nameOfFile: "a.json.gz") == .gzip)
    #expect(CompressionFormat(nameOfFile: "a.zst") == .zstd)
    #expect(CompressionFormat(nameOfFile: "a.json") == nil)
    #expect(CompressionFormat(head: Array("{\"a\"".utf8)) == nil)
    #expect(CompressionFormat(head: []) == nil)
    #expect(CompressionFormat(head: [0x51, 0x2A, 0x4D, 0x18]) == .zstd)
  }
}
