import DocumentModel
import Testing
import TestSupport
@testable import FixtureTree

@Suite struct StreamingTests {
  /// A tree of `count` documents of 10 KB, generated while it is read so that it is never in memory as a whole.
  private final class Generated {
    private var pending = Array("{\"$collections\": [\"c\"], \"c\": {".utf8)
    private var offset = 0
    private var index = 0
    private(set) var bytesRead = 0
    let count: Int

    init(count: Int) { self.count = count }

    func read(into buffer: UnsafeMutableRawBufferPointer) -> Int {
      if offset == pending.count {
        offset = 0
        if index < count {
          let note = String(repeating: "é \\n", count: 2000)
          pending = Array(
            """
            \(index == 0 ? "" : ",")
              "doc-\(index)": {"name": "Name \(index)", "x": \(index).5, "ok": true, "note": "\(note)"}
            """.utf8)
        } else {
          pending = index == count ? Array("\n}}\n".utf8) : []
        }
        index += 1
      }
      let piece = min(buffer.count, pending.count - offset)
      buffer.copyBytes(from: pending[offset..<offset + piece])
      offset += piece
      bytesRead += piece
      return piece
    }
  }

  /// Reads a generated tree. Returns its length and the largest size of the reader's buffers, both in bytes.
  private func readGenerated(_ count: Int) throws -> (bytes: Int, buffered: Int) {
    let generated = Generated(count: count)
    let source = ByteSource(name: "generated") { generated.read(into: $0) }
    var reader = FixtureTreeReader(source, database: demo, bufferBytes: 4096)
    var buffered = 0
    var documents = 0
    while try reader.next() != nil {
      documents += 1
      buffered = max(buffered, reader.bufferedBytes)
    }
    #expect(documents == count)
    return (generated.bytesRead, buffered)
  }

  @Test func memoryIsIndependentOfTheFileSize() throws {
    let small = try readGenerated(20)
    let large = try readGenerated(2100)
    #expect(large.bytes > 20_000_000)
    // Only the table of IDs grows: 16 bytes per ID plus spare room, up to a limit.
    #expect(large.buffered - small.buffered <= 4096 * 16)
    #expect(small.buffered < 128 << 10)
  }

  @Test func limitsTheRecordedIDs() throws {
    var table = KeyTable()
    table.open()
    for index in 0..<(KeyTable.keysMax + 1000) {
      let earlier = withUnsafeBytes(of: index) { table.insert($0, line: index) }
      #expect(earlier == nil)
    }
    #expect((16 << 20...17 << 20).contains(table.bufferedBytes))
    #expect(withUnsafeBytes(of: 17) { table.insert($0, line: 1) } == nil, "a full table must accept repeated keys")
  }

  @Test func nestedObjectsHaveSeparateKeys() {
    var table = KeyTable()
    func insert(_ key: String, line: Int) -> Int? { Array(key.utf8).withUnsafeBytes { table.insert($0, line: line) } }
    table.open()
    #expect(insert("a", line: 1) == nil)
    for _ in 0..<3 {
      table.open()
      #expect(insert("a", line: 2) == nil)
      #expect(insert("a", line: 3) == 2)
      table.close()
    }
    #expect(insert("a", line: 4) == 1)
    for index in 0..<1000 { #expect(insert("key \(index)", line: index) == nil) }
    for index in 0..<1000 { #expect(insert("key \(index)", line: 0) == index) }
  }

  @Test func documentsDoNotDependOnThePieces() throws {
    for system in FixtureFilesTests.counts.map(\.system) {
      let whole = try FixtureFilesTests.read(system)
      let bytes = Array(try export(whole).utf8)
      let expected = try documents(bytes)
      for chunk in [1, 7, 4096] {
        #expect(try documents(bytes, chunkBytesMax: chunk) == expected, "\(system) \(chunk)")
      }
    }
  }

  static let seeds = [
    "{\"$collections\": [\"a\", \"a/*/b\"], \"a\": {\"x\": {\"f\": {\"$timestamp\": \"2025-01-01T00:00:00Z\"}, "
      + "\"b\": {\"y\": {\"$fields\": {\"b\": [1.5e3, {\"$geo\": [1, 2]}]}, "
      + "\"$missing\": true}}, \"g\": {\"$vector\": [1]}}}}",
    "{\"__collections__\": {\"a\": {\"x\": {\"t\": {\"__datatype__\": \"timestamp\", \"value\": {\"_seconds\": 1}}, "
      + "\"__collections__\": {\"b\": {\"y\": {\"s\": \"\\ud83d\\ude00\"}}}}}}}",
    "{\"path\": \"a/b\", \"fields\": {\"f\": {\"$ref\": \"a/b\"}}}\n"
      + "{\"name\": \"projects/p/databases/d/documents/a/b\", "
      + "\"fields\": {\"m\": {\"mapValue\": {\"fields\": {\"n\": {\"nullValue\": null}}}}}}",
  ]

  @Test(arguments: 0..<60)
  func readersDoNotCrashOnAnyBytes(seed: Int) {
    var random = SplitMix(seed: UInt64(seed))
    var bytes = Array(Self.seeds[seed % Self.seeds.count].utf8)
    let alphabet = Array("{}[]\",:$\\ue019-. \n\u{0}é".utf8)
    for _ in 0..<40 {
      if bytes.isEmpty { break }
      let at = Int.random(in: 0..<bytes.count, using: &random)
      switch Int.random(in: 0..<5, using: &random) {
      case 0: bytes.remove(at: at)
      case 1: bytes.insert(random.pick(alphabet), at: at)
      case 2: bytes[at] = UInt8.random(in: 0...255, using: &random)
      case 3: bytes.insert(contentsOf: bytes[at..<min(bytes.count, at + 20)], at: at)
      default: bytes[at] = random.pick(alphabet)
      }
      bytes.withUnsafeBytes { FixtureFuzz.run($0) }
    }
    let noise = (0..<500).map { _ in UInt8.random(in: 0...255, using: &random) }
    noise.withUnsafeBytes { FixtureFuzz.run($0) }
  }
}
