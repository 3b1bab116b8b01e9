import Foundation
import KeyValue
import LMDBEngine
import Testing
import TestSupport

/// Damaged files cause the right error and never a crash. Tests that could crash run in a child process.
@Suite struct DamageTests {
  private static let pageBytes = 4096

  /// Creates a file with long keys, overflow values and free pages. Returns its path and its entries.
  private static func makeFile(in directory: TemporaryDirectory) throws -> (path: String, entries: [Entry]) {
    let path = directory.file("data.mdb")
    let store = try LMDBStore.open(LMDBOptions(path: path))
    for round: UInt8 in 0..<8 {
      try store.put((0..<40).map { Entry([$0, round], Bytes(repeating: round, count: 100)) })
    }
    try store.put([Entry([200], Bytes(repeating: 1, count: 20_000)), Entry(Bytes(repeating: 0x40, count: 2000), [5])])
    try store.write { transaction throws(StorageError) in
      try transaction.removeRange(from: [3], to: [7])
    }
    return (path, try store.entries())
  }

  private static func read(_ path: String) throws -> Bytes {
    Bytes(try Data(contentsOf: URL(filePath: path)))
  }

  private static func write(_ bytes: some Collection<UInt8>, to path: String) throws {
    try Data(bytes).write(to: URL(filePath: path))
    try? FileManager.default.removeItem(atPath: path + "-lock")
  }

  private func expectCorruption(_ path: String, saying words: String, _ location: SourceLocation = #_sourceLocation) {
    #expect(sourceLocation: location) {
      _ = try LMDBStore.open(LMDBOptions(path: path)).verify()
    } throws: { error in
      guard case StorageError.corruption(path, let detail) = error else { return false }
      return detail.contains(words)
    }
  }

  @Test func refusesFilesThatAreNotDataFiles() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("data.mdb")
    try Self.write([], to: path)
    expectCorruption(path, saying: "0 bytes")
    try Self.write(Bytes(repeating: 0, count: 100), to: path)
    expectCorruption(path, saying: "100 bytes")
    try Self.write(Bytes(repeating: 0, count: 50_000), to: path)
    expectCorruption(path, saying: "not an LMDB file")
    var random = SplitMix(seed: 1)
    try Self.write((0..<50_000).map { _ in UInt8.random(in: 0...255, using: &random) }, to: path)
    expectCorruption(path, saying: "not an LMDB file")
    #expect(throws: StorageError.self) { try LMDBStore.open(LMDBOptions(path: directory.path)) }
    // None of the files was mistaken for a new store and overwritten.
    #expect(try Self.read(path).count == 50_000)
  }

  @Test func errorsNameUnsupportedFormats() throws {
    let directory = try TemporaryDirectory()
    let (path, _) = try Self.makeFile(in: directory)
    let bytes = try Self.read(path)
    var other = bytes
    for page in [0, 1] { other[page * Self.pageBytes + 20] = 2 }
    try Self.write(other, to: path)
    #expect(throws: StorageError.unsupportedFormat(path: path, found: "LMDB data version 2", supported: "1")) {
      try LMDBStore.open(LMDBOptions(path: path))
    }
    // The key and the value of the layout record.
    other = bytes
    while let layout = other.firstIndex(of: Bytes("layout".utf8) + [0, 0, 0, 1]) { other[layout + 9] = 3 }
    try Self.write(other, to: path)
    #expect(throws: StorageError.unsupportedFormat(path: path, found: "key layout 3", supported: "key layout 1")) {
      try LMDBStore.open(LMDBOptions(path: path))
    }
    other = bytes
    while let name = other.firstIndex(of: Bytes("continuations".utf8)) { other[name] = UInt8(ascii: "d") }
    try Self.write(other, to: path)
    #expect {
      try LMDBStore.open(LMDBOptions(path: path))
    } throws: { error in
      guard case StorageError.unsupportedFormat(path, let found, _) = error else { return false }
      return found.contains("another program")
    }
  }

  @Test func theErrorOfATruncatedFileNamesBothLengths() throws {
    let directory = try TemporaryDirectory()
    let (path, _) = try Self.makeFile(in: directory)
    let bytes = try Self.read(path)
    try Self.write(bytes.dropLast(Self.pageBytes * 3), to: path)
    expectCorruption(path, saying: "the file has \(bytes.count - 3 * Self.pageBytes) bytes")
    expectCorruption(path, saying: "needs \(bytes.count)")
    try Self.write(bytes, to: path)
    _ = try LMDBStore.open(LMDBOptions(path: path)).verify()
  }

  @Test func openingSurvivesEveryTruncation() async throws {
    await #expect(processExitsWith: .success) {
      let directory = try TemporaryDirectory()
      let (path, entries) = try DamageTests.makeFile(in: directory)
      let bytes = try DamageTests.read(path)
      var whole = 0
      for length in stride(from: 0, to: bytes.count, by: 512) {
        try DamageTests.write(bytes.prefix(length), to: path)
        do {
          let store = try LMDBStore.open(LMDBOptions(path: path))
          // Only free pages were truncated.
          try #require(try store.entries() == entries)
          _ = try store.verify()
          whole += 1
        } catch StorageError.corruption {
        }
      }
      try #require(whole < bytes.count / 4096)
    }
  }

  @Test func openingSurvivesEveryFlippedMetaPageBit() async throws {
    await #expect(processExitsWith: .success) {
      let directory = try TemporaryDirectory()
      let (path, _) = try DamageTests.makeFile(in: directory)
      let bytes = try DamageTests.read(path)
      var refused = 0
      for page in [0, 1] {
        for bit in 0..<152 * 8 {
          var damaged = bytes
          damaged[page * DamageTests.pageBytes + bit / 8] ^= 1 << (bit % 8)
          try DamageTests.write(damaged, to: path)
          do {
            let store = try LMDBStore.open(LMDBOptions(path: path))
            _ = try store.entries()
            _ = try store.verify()
          } catch is StorageError {
            refused += 1
          }
        }
      }
      // Some bits have no meaning, and little of the older page is read.
      try #require(refused > 400)
    }
  }

  /// A page that a transaction allocates at the end of the file and frees again is never written.
  @Test func aHealthyFileMayBeShorterThanItsMetaPageSays() throws {
    let directory = try TemporaryDirectory()
    let (path, entries) = try Self.makeFile(in: directory)
    do {
      let store = try LMDBStore.open(LMDBOptions(path: path))
      // The free pages of the earlier commits are enough for everything but the large value.
      try store.write { transaction throws(StorageError) in
        try transaction.put(entries[0].key, entries[0].value)
        try transaction.put([255], Bytes(repeating: 2, count: 1 << 20))
        try transaction.remove([255])
      }
    }
    let bytes = try Self.read(path)
    let newest = max(Self.number(bytes, 144), Self.number(bytes, Self.pageBytes + 144)) & 1
    let lastPage = Self.number(bytes, newest * Self.pageBytes + 136)
    try #require(bytes.count < (lastPage + 1) * Self.pageBytes, "the file is not shorter than its meta page says")
    do {
      let store = try LMDBStore.open(LMDBOptions(path: path))
      #expect(try store.entries() == entries)
      #expect(try store.verify().entries == entries.count)
      #expect(try LMDBStore.openInMemory(copyOf: store).entries() == entries)
    }
    do {
      let store = try LMDBStore.open(LMDBOptions(path: path))
      try store.put([Entry([254], Bytes(repeating: 3, count: 2 << 20))])
    }
    #expect(try LMDBStore.open(LMDBOptions(path: path, readOnly: true)).entries().count == entries.count + 1)
  }

  private static func number(_ bytes: Bytes, _ offset: Int) -> Int {
    bytes.withUnsafeBytes { $0.loadUnaligned(fromByteOffset: offset, as: Int.self) }
  }

  @Test func verifyFindsInconsistencies() throws {
    let directory = try TemporaryDirectory()
    let path = directory.file("data.mdb")
    do {
      let store = try LMDBStore.open(LMDBOptions(path: path))
      try store.put([Entry(Bytes("first".utf8), [1]), Entry(Bytes("second".utf8), [2])])
      try store.put([Entry(Bytes(repeating: 0x40, count: 600), [5]), Entry(Bytes(repeating: 0x41, count: 600), [5])])
    }
    let bytes = try Self.read(path)

    /// Replaces every occurrence, also in old versions of pages.
    func expectDamage(
      _ old: Bytes, _ new: Bytes, saying words: String, _ location: SourceLocation = #_sourceLocation
    ) throws {
      var damaged = bytes
      var count = 0
      while let start = damaged.firstIndex(of: old) {
        damaged.replaceSubrange(start..<start + old.count, with: new)
        count += 1
      }
      try #require(count > 0, sourceLocation: location)
      try Self.write(damaged, to: path)
      expectCorruption(path, saying: words, location)
    }
    let pointer = Bytes(repeating: 0x41, count: 510) + [0]
    let two: Bytes = [0, 0, 0, 0, 0, 0, 0, 2]
    try expectDamage(Bytes("first".utf8), Bytes("zirst".utf8), saying: "is not above the one before")
    try expectDamage(pointer + two, pointer + [0, 0, 0, 0, 0, 0, 0, 1], saying: "node 1")
    try expectDamage(pointer + two, pointer + [0, 0, 0, 0, 0, 0, 0, 0], saying: "leads to no node")
    try expectDamage(pointer + two, pointer + [0, 0, 0, 0, 0, 0, 0, 9], saying: "node 2 has no pointer")
    try expectDamage(pointer + two, pointer.dropLast() + [7] + two, saying: "leads to no node")
    let counts = Bytes("nodes".utf8) + [0, 0, 0, 0, 0, 0, 0, 3] + two
    try expectDamage(counts, counts.dropLast() + [1], saying: "count says 1")
    try expectDamage(counts, Bytes("nodes".utf8) + two + two, saying: "next number")
    try Self.write(bytes, to: path)
    #expect(try LMDBStore.open(LMDBOptions(path: path)).verify().entries == 4)
  }
}

extension Bytes {
  /// The start of the first occurrence of `part`.
  fileprivate func firstIndex(of part: Bytes) -> Int? {
    Data(self).range(of: Data(part))?.lowerBound
  }
}
