import KeyValue
import LMDBEngine
import LogEngine
import Testing
import TestSupport

/// Compares random operations with a sorted array. Keys share prefixes across the offsets at which long keys are split.
@Suite struct ModelTests {
  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func storeAgreesWithASortedArray(seed: UInt64) throws {
    let store = try LMDBStore.open(.inMemory())
    play(seed, store) { try store.verify() }
  }

  /// With tables of 1 byte, each commit is flushed; with larger ones, tables and ranges of several commits lie over the
  /// data file, and a flush runs beside the reads.
  @Test(arguments: [11, 12, 13, 14] as [UInt64], [1, 200_000, 1 << 30])
  func storeWithALogAgreesWithASortedArray(seed: UInt64, memtableBytesMax: Int) throws {
    let directory = try TemporaryDirectory()
    var settings = LoggedStoreSettings()
    settings.memtableBytesMax = memtableBytesMax
    settings.flushOperationsMax = 50
    settings.singleRemovalsMax = 3
    let base = try LMDBStore.open(LMDBOptions(path: directory.file("data.mdb")))
    let store = try LoggedStore.open(base, folder: DiskFolder(path: directory.file("log")), settings: settings)
    play(seed, store) {
      try store.flush()
      return try base.verify()
    }
  }

  private func play(_ seed: UInt64, _ store: any KeyValueStore, verify: @escaping () throws -> VerifyReport) {
    var run = ModelRun(seed: seed, store: store, verify: verify)
    do {
      try run.play(rounds: 120)
    } catch {
      Issue.record("seed \(seed), step \(run.step): \(error)")
    }
  }
}

private struct Disagreement: Error {
  var description: String
}

private struct ModelRun {
  private var random: SplitMix
  private let store: any KeyValueStore
  private let verify: () throws -> VerifyReport
  private var model: [Entry] = []
  private(set) var step = 0

  init(seed: UInt64, store: any KeyValueStore, verify: @escaping () throws -> VerifyReport) {
    random = SplitMix(seed: seed)
    self.store = store
    self.verify = verify
  }

  mutating func play(rounds: Int) throws {
    for _ in 0..<rounds {
      try writeSome()
      let snapshot = try store.snapshot()
      defer { snapshot.end() }
      try walk(snapshot, model)
    }
    let snapshot = try store.snapshot()
    try expect(snapshot.entries(), model, "all entries")
    try expect(snapshot.entriesBackwards(), model.reversed(), "all entries backwards")
    var report = try verify()
    try expect(report.entries, model.count, "verified entries")
    try expect(report.longEntries, model.count { $0.key.count > 510 }, "verified long entries")
    try expect(store.statistics().entries, model.count, "counted entries")

    try store.write { transaction throws(StorageError) in
      for entry in model { try transaction.remove(entry.key) }
    }
    report = try verify()
    try expect(report, VerifyReport(), "after removing everything")
  }

  private mutating func writeSome() throws {
    let before = model
    let givesUp = random.next() % 5 == 0
    do {
      var failure: (any Error)?
      try store.write { transaction throws(StorageError) in
        do {
          for _ in 0..<20 { try change(transaction) }
          if random.next() % 4 == 0 { try walk(transaction, model) }
        } catch {
          failure = error
        }
        if givesUp || failure != nil { throw .rolledBack }
      }
    } catch StorageError.rolledBack {
      if givesUp { model = before }
    }
  }

  private mutating func change(_ transaction: any KeyValueTransaction) throws {
    step += 1
    let key = someKey()
    let index = firstIndex(atOrAfter: key, model)
    let isThere = index < model.count && model[index].key == key
    try expect(transaction.get(key), isThere ? model[index].value : nil, "get")
    switch random.next() % 10 {
    case 0..<6:
      let value = Bytes(repeating: UInt8(step & 0xFF), count: Int(random.next() % (step % 50 == 0 ? 9000 : 30)))
      try transaction.put(key, value)
      if isThere { model[index].value = value } else { model.insert(Entry(key, value), at: index) }
    case 6..<9:
      // Usually a key that exists.
      let any = model.randomElement(using: &random)?.key ?? key
      let target = random.next() % 4 == 0 ? key : any
      let index = firstIndex(atOrAfter: target, model)
      let isThere = index < model.count && model[index].key == target
      try expect(transaction.remove(target), isThere, "remove")
      if isThere { model.remove(at: index) }
    default:
      let upper = model.isEmpty || step % 3 == 0 ? someKey() : model[min(model.count - 1, index + step % 5)].key
      let end = max(index, firstIndex(atOrAfter: upper, model))
      guard end - index < 25 else { return }
      try expect(transaction.removeRange(from: key, to: upper), end - index, "removeRange")
      model.removeSubrange(index..<end)
    }
  }

  /// Moves a cursor randomly and tracks its position in the array.
  private mutating func walk(_ snapshot: any KeyValueSnapshot, _ model: [Entry]) throws {
    let cursor = try snapshot.makeCursor()
    var position: Int?
    for _ in 0..<40 {
      step += 1
      let found: Bool
      let what: String
      switch random.next() % 8 {
      case 0:
        let key = someKey()
        (what, found) = ("seek(atOrAfter:)", try cursor.seek(atOrAfter: key))
        position = firstIndex(atOrAfter: key, model)
      case 1:
        let key = someKey()
        (what, found) = ("seek(before:)", try cursor.seek(before: key))
        position = firstIndex(atOrAfter: key, model) - 1
      case 2..<5:
        (what, found) = ("next", try cursor.next())
        position = position.map { $0 + 1 }
      default:
        (what, found) = ("previous", try cursor.previous())
        position = position.map { $0 - 1 }
      }
      if let index = position, !model.indices.contains(index) { position = nil }
      try expect(found ? cursor.entry : nil, position.map { model[$0] }, what)
    }
  }

  private func firstIndex(atOrAfter key: Bytes, _ model: [Entry]) -> Int {
    var range = 0..<model.count
    while !range.isEmpty {
      let middle = (range.lowerBound + range.upperBound) / 2
      range =
        model[middle].key.lexicographicallyPrecedes(key)
        ? middle + 1..<range.upperBound : range.lowerBound..<middle
    }
    return range.lowerBound
  }

  /// Returns a run of one byte with at most two other bytes, with lengths and changes near the ends of chunks.
  private mutating func someKey() -> Bytes {
    let edges = [1, 2, 510, 1012, 1514, 2016]
    let edge = edges[Int(random.next() % UInt64(edges.count))]
    let length = max(1, edge + Int(random.next() % 5) - 2)
    let alphabet: [UInt8] = random.next() % 8 == 0 ? [0x61, 0x00] : [0x61, 0x62]
    var key = Bytes(repeating: alphabet[0], count: length)
    for _ in 0..<(random.next() % 3) {
      let place = [0, 509, 510, 511, 1011, 1012, length - 1][Int(random.next() % 7)]
      if place < length { key[place] = random.next() % 6 == 0 ? 0xFF : alphabet[1] }
    }
    return key
  }

  private func expect<T: Equatable>(_ found: @autoclosure () throws -> T, _ wanted: T, _ what: String) throws {
    let found = try found()
    if found != wanted { throw Disagreement(description: "\(what): \(found), expected \(wanted)") }
  }
}
