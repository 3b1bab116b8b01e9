import Foundation
import KeyValue
import LMDBEngine
import Testing
import TestSupport

/// `hearth check` finds damage, even damage that crashes the process that reads it.
@Suite(.needs(.hearth)) struct DamageTests {
  private let directory: TemporaryDirectory

  init() throws {
    directory = try TemporaryDirectory()
    let arguments = ["--data", directory.file("d"), "--project", "demo"]
    try #require(try HearthBinary.run(["import", Fixtures.path("habitual")] + arguments).exit == .code(0))
    // A second import of one changed document creates a change log and a history.
    let change = try directory.write("c.json", #"{"$collections": ["extra"], "extra": {"1": {"tags": ["x", "y"]}}}"#)
    try #require(try HearthBinary.run(["import", change] + arguments).exit == .code(0))
    try #require(try HearthBinary.run(["check", directory.file("d")]).exit == .code(0))
  }

  private var file: String { directory.dataFile("d") }

  private func expectDamage(_ text: String) throws {
    let result = try HearthBinary.run(["check", directory.file("d"), "--json"])
    #expect(result.exit == .code(1))
    let json = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
    let databases = try #require(json["databases"] as? [[String: Any]])
    let problems = (databases.first?["problems"] as? [String]) ?? []
    #expect(json["ok"] as? Bool == false)
    #expect(problems.contains { $0.contains(text) }, "\(problems)")
  }

  /// Changes rows without the document store.
  private func edit(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws {
    try LMDBStore.open(LMDBOptions(path: file)).write(body)
  }

  /// The first key of a table.
  private func firstKey(of table: UInt8) throws -> [UInt8] {
    let store = try LMDBStore.open(LMDBOptions(path: file, readOnly: true))
    let snapshot = try store.snapshot()
    defer { snapshot.end() }
    let cursor = try snapshot.makeCursor()
    try #require(try [table].withUnsafeBytes { try cursor.seek(atOrAfter: $0) })
    return Array(cursor.key)
  }

  private func remove(_ key: [UInt8]) throws {
    try edit { (transaction) throws(StorageError) in
      var failure: StorageError?
      key.withUnsafeBytes { bytes in
        do throws(StorageError) { try transaction.remove(bytes) } catch { failure = error }
      }
      if let failure { throw failure }
    }
  }

  private func put(_ key: [UInt8], _ value: [UInt8]) throws {
    try edit { (transaction) throws(StorageError) in
      var failure: StorageError?
      key.withUnsafeBytes { key in
        value.withUnsafeBytes { value in
          do throws(StorageError) { try transaction.put(key, value) } catch { failure = error }
        }
      }
      if let failure { throw failure }
    }
  }

  @Test func findsAFlippedByteOfADocument() throws {
    var bytes = try Data(contentsOf: URL(fileURLWithPath: file))
    // A field's name with its tag and length occurs in documents only.
    var start = bytes.startIndex
    var count = 0
    while let range = bytes.range(of: Data([0x0A, 0x07]) + Data("user_id".utf8), in: start..<bytes.endIndex) {
      bytes[range.upperBound - 1] ^= 0x20
      start = range.upperBound
      count += 1
    }
    try #require(count > 0)
    try bytes.write(to: URL(fileURLWithPath: file))
    try expectDamage("checksum does not match")
  }

  @Test func findsATruncatedFile() throws {
    let size = try #require(try FileManager.default.attributesOfItem(atPath: file)[.size] as? Int)
    truncate(file, off_t(size / 2 / 4096 * 4096))
    try expectDamage("bytes")
  }

  @Test(arguments: [2, 5, 9, 17])
  func findsAPageOfNoise(page: Int) throws {
    let handle = try #require(FileHandle(forUpdatingAtPath: file))
    for number in stride(from: page, to: page + 60, by: 3) {
      try handle.seek(toOffset: UInt64(number * 4096))
      try handle.write(contentsOf: Data(repeating: 0xA7, count: 4096))
    }
    try handle.close()
    let result = try HearthBinary.run(["check", directory.file("d")])
    #expect(result.exit == .code(1))
    #expect(result.output.contains("damaged"), "\(result.output)")
  }

  @Test(arguments: [0x20, 0x21] as [UInt8])
  func findsAMissingIndexEntry(table: UInt8) throws {
    try remove(try firstKey(of: table))
    try expectDamage("no index entry for field")
  }

  @Test(arguments: [0x20, 0x21] as [UInt8])
  func findsAnExtraIndexEntry(table: UInt8) throws {
    var key = try firstKey(of: table)
    key.append(UInt8(ascii: "~"))
    try put(key, [])
    try expectDamage("an entry that no document has")
  }

  @Test(
    arguments: [
      (0x10, "an entry that no document has"), (0x11, "names another path"), (0x12, "missing in its group"),
      (0x13, "names another path"), (0x14, "has no number"), (0x15, "names another field"), (0x30, "but the log has"),
      (0x31, "missing from its collection's changes"),
    ] as [(UInt8, String)])
  func findsAMissingRow(table: UInt8, text: String) throws {
    if table == 0x11 {
      // Without this row, the collection cannot be found.
      try remove(try firstKey(of: table))
      try expectDamage("does not exist")
    } else {
      try remove(try firstKey(of: table))
      try expectDamage(text)
    }
  }

  @Test func findsARowOfAnUnknownTable() throws {
    try put([0x77, 1], [])
    try expectDamage("unknown table")
  }

  @Test(arguments: ["collectionNumber", "fieldNumber", "changeLogCount", "lastVersion"])
  func findsACounterBelowTheUsedNumbers(name: String) throws {
    try put([0x01] + Array(name.utf8), [UInt8](repeating: 0, count: 8))
    let result = try HearthBinary.run(["check", directory.file("d")])
    #expect(result.exit == .code(1), "\(result.output)")
  }
}
