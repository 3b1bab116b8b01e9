import FixtureTree
import Testing
import TestSupport

@testable import FirebaseExport

/// The framing of export files: records of any length, damage, and the end of the file.
@Suite struct RecordLogTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func write(_ records: [[UInt8]]) throws -> [UInt8] {
    let path = directory.file("output-0")
    let log = try OutputLog(path)
    for record in records { try record.withUnsafeBytes { bytes in try Result { try log.append(bytes) }.get() } }
    try log.finish()
    #expect(log.byteCount == (try StampedFile(path)).stamp.size)
    return try TestFile.bytes(path)
  }

  /// Reads records until an error. Returns the records, and the error if one occurred.
  private static func read(_ file: [UInt8]) -> (records: [[UInt8]], error: FixtureTreeError?) {
    var offset = 0
    let reader = RecordLogReader(name: "output-0") { buffer in
      let count = min(buffer.count, file.count - offset)
      file.withUnsafeBytes { buffer.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[offset..<offset + count])) }
      offset += count
      return count
    }
    var records: [[UInt8]] = []
    do throws(FixtureTreeError) {
      while let record = try reader.next({ [UInt8]($0) }) { records.append(record) }
      return (records, nil)
    } catch { return (records, error) }
  }

  private static func record(_ count: Int, _ seed: Int) -> [UInt8] {
    (0..<count).map { UInt8(truncatingIfNeeded: ($0 &* 31) ^ ($0 >> 7) ^ seed) }
  }

  @Test func recordsOfAnyLengthAreReadAgain() throws {
    // Around the ends of blocks, of the reader's buffer and of the writer's.
    for first in [0, 1, 32_746, 32_747, 32_754, 32_755, 32_760, 32_761, 32_762, 32_768, 262_137, 262_144, 300_000] {
      let records = [Self.record(first, 1), [], Self.record(7, 2), Self.record(40_000, 3), Self.record(5, 4)]
      let (found, error) = Self.read(try write(records))
      #expect(found == records && error == nil, "\(first): \(String(describing: error))")
    }
  }

  @Test func theBytesAreThoseOfTheFormat() throws {
    // The overall metadata of the official emulator begin with this record.
    let file = try write([Array("3".utf8)])
    #expect(file == [0xB8, 0x6D, 0x44, 0x4E, 1, 0, 1, 0x33])
  }

  @Test func aManagedExportEndsWithZeros() throws {
    let records = [Self.record(100, 1), Self.record(200, 2)]
    var file = try write(records)
    file += [UInt8](repeating: 0, count: 32_768 - file.count)
    #expect(Self.read(file).records == records && Self.read(file).error == nil)
    #expect(Self.read([]).error == nil)
  }

  @Test func everyDamagedByteIsNoticed() throws {
    let records = [Self.record(30, 1), Self.record(40, 2), Self.record(50, 3)]
    let file = try write(records)
    for index in file.indices {
      for change in [UInt8(1), 0x80, 0xFF] {
        var damaged = file
        damaged[index] ^= change
        let (found, error) = Self.read(damaged)
        let text = try #require(error, "byte \(index) ^ \(change) was not noticed").description
        #expect(records.starts(with: found) && text.contains("output-0: record \(found.count + 1), at byte"), "\(text)")
      }
    }
  }

  @Test func everyTruncationIsNoticedOrLosesWholeRecords() throws {
    let records = [Self.record(20, 1), Self.record(33_000, 2), Self.record(10, 3)]
    let file = try write(records)
    let ends = [0, 27, 33_041, file.count]
    for count in [0, 1, 5, 7, 20, 27, 28, 33, 34, 100, 32_767, 32_768, 32_770, 33_000, 33_041, 33_045, file.count] {
      let (found, error) = Self.read(Array(file[..<count]))
      #expect(records.starts(with: found))
      if let index = ends.firstIndex(of: count) {
        #expect(found.count == index && error == nil, "\(count): \(String(describing: error))")
      } else {
        #expect(error?.message.contains("ends in the middle of this record") == true, "\(count): \(error as Any)")
      }
    }
  }

  @Test func aFileOfAnotherFormatIsRefused() {
    let error = Self.read(Array("SQLite format 3\0 and more text".utf8)).error
    #expect(error?.description.contains("not the record log of a Firebase export") == true, "\(error as Any)")
  }
}
