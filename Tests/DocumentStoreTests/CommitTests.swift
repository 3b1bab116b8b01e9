import Dispatch
import DocumentModel
import DocumentStore
import KeyValue
import LMDBEngine
import Synchronization
import Testing
import TestSupport
import WireFormat

@Suite struct CommitTests {
  // MARK: Preconditions

  /// Checks each operation with each precondition, on an existing and on a missing document.
  @Test func everyPreconditionIsChecked() throws {
    let operations: [(String, (Precondition) -> Write)] = [
      ("set", { .set("c/x", ("a", 2), if: $0) }), ("merge", { .merge("c/x", ["a"], ("a", 2), if: $0) }),
      ("transform", { .merge("c/x", [], transforms: [.increment("a", 1)], if: $0) }),
      ("delete", { .delete("c/x", if: $0) }),
      ("verify", { .verify("c/x", if: $0) }),
    ]
    for (name, make) in operations {
      for exists in [true, false] {
        let db = try TestDatabase()
        var stored: Int64 = 0
        if exists { stored = try db.commit(.set("c/x", ("a", 1))).version.microseconds }
        let other: Int64 = 77
        // The mismatch comes first, because the later cases change the stored version.
        let cases: [(Precondition, CommitError?)] = [
          (
            .updateTime(Timestamp(uncheckedMicroseconds: other)),
            .versionMismatch(document("c/x"), stored: stored, required: other)
          ),
          (.none, nil),
          (.exists(true), exists ? nil : .documentMissing(document("c/x"))),
          (.exists(false), exists ? .documentExists(document("c/x")) : nil),
        ]
        for (precondition, error) in cases {
          let before = try db.get("c/x")
          if let error {
            #expect(throws: error, "\(name) \(precondition) \(exists)") { try db.commit(make(precondition)) }
            #expect(try db.get("c/x") == before)
            continue
          }
          try db.commit(make(precondition))
          // Restore the state under test.
          if exists { stored = try db.commit(.set("c/x", ("a", 1))).version.microseconds }
          if !exists { try db.commit(.delete("c/x")) }
        }
        if exists {
          let version = try #require(try db.get("c/x")).update
          try db.commit(make(.updateTime(Timestamp(uncheckedMicroseconds: version))))
        }
      }
    }
  }

  // MARK: Results and times

  @Test func everyWriteReportsItsResult() throws {
    let db = try TestDatabase()
    let created = try db.commit(.set("c/x", ("a", 1)))
    #expect(created.results == [WriteResult(updateTime: created.version)])
    db.time.advance(seconds: 1)
    let unchanged = try db.commit(
      .set("c/x", ("a", 1)), .merge("c/x", ["a"], ("a", 1)), .verify("c/x"),
      .merge("c/x", [], transforms: [.increment("a", 0)]))
    #expect(unchanged.version > created.version)
    #expect(unchanged.results.map(\.updateTime) == Array(repeating: created.version, count: 4))
    #expect(unchanged.results[3].transformResults == [1])
    #expect(try db.get("c/x")?.update == created.version.microseconds)
    db.time.advance(seconds: 1)
    // If a commit writes a document several times, all results report its final state.
    let several = try db.commit(
      .set("c/x", ("a", 2)), .merge("c/x", [], transforms: [.increment("a", 3)]), .delete("c/gone"), .set("c/y"))
    #expect(several.results.map(\.updateTime) == [several.version, several.version, nil, several.version])
    #expect(several.results.map(\.transformResults) == [[], [5], [], []])
    let x = try #require(try db.get("c/x"))
    #expect(x.create == created.version.microseconds)
    #expect(x.update == several.version.microseconds)
    // A document that is changed and changed back is unchanged.
    let back = try db.commit(.set("c/x", ("a", 9)), .set("c/x", ("a", 5)))
    #expect(back.results.map(\.updateTime) == [several.version, several.version])
    let deleted = try db.commit(.set("c/x", ("a", 9)), .delete("c/x"))
    #expect(deleted.results.map(\.updateTime) == [nil, nil])
    #expect(try db.get("c/x") == nil)
  }

  @Test func deletionAndCreationMakeANewDocument() throws {
    let db = try TestDatabase()
    let first = try db.commit(.set("c/x", ("a", 1))).version.microseconds
    db.time.advance(seconds: 1)
    let again = try db.commit(.delete("c/x"), .set("c/x", ("a", 1))).version.microseconds
    var x = try #require(try db.get("c/x"))
    #expect(again > first)
    #expect(x.create == again && x.update == again)
    try db.commit(.delete("c/x"))
    let third = try db.commit(.merge("c/x", ["a"], ("a", 1))).version.microseconds
    x = try #require(try db.get("c/x"))
    #expect(x.create == third && x.update == third)
    #expect(try db.get("c/x", at: first)?.create == first)
  }

  @Test func laterWritesSeeEarlierOnes() throws {
    let db = try TestDatabase()
    try db.commit(
      .set("c/x", ("a", 1), if: .exists(false)), .merge("c/x", ["b"], ("b", 2), if: .exists(true)), .delete("c/x"),
      .set("c/x", ("z", 1), if: .exists(false)))
    #expect(try db.get("c/x")?.fields == MapValue([("z", 1)]))
    #expect(throws: CommitError.existsAfterDelete(document("c/x"))) {
      try db.commit(.delete("c/x"), .set("c/x", if: .exists(true)))
    }
    #expect(throws: CommitError.createAfterWrite(document("c/x"))) {
      try db.commit(.set("c/x"), .set("c/x", if: .exists(false)))
    }
    #expect(try db.get("c/x")?.fields == MapValue([("z", 1)]))
  }

  @Test func versionsRiseWhateverTheClockDoes() throws {
    let db = try TestDatabase()
    var last = try db.meta(.lastVersion)
    var current = db
    for (index, step) in [1, 0, 0, -3600, 0, 5, -1, 0, 7200, 0, -100_000, 0].enumerated() {
      db.time.advance(seconds: step)
      if index.isMultiple(of: 4) {
        current = try current.reopened()
        // A commit that changes nothing is not stored, so the reopened database does not know its version.
        last = try current.meta(.lastVersion)
      }
      let version = try current.commit(.set("c/x", ("i", .integer(Int64(index))))).version.microseconds
      #expect(version > last)
      #expect(version >= db.time.now)
      last = version
      // A commit that changes nothing has a distinct time, too.
      let empty = try current.commit(.set("c/x", ("i", .integer(Int64(index))))).version.microseconds
      #expect(empty > last)
      last = empty
    }
  }

  @Test func aCommitWithoutWritesSucceeds() throws {
    let db = try TestDatabase()
    let outcome = try db.commit(CommitRequest([]))
    #expect(outcome.results.isEmpty)
    #expect(outcome.version.microseconds > (try db.meta(.created)) - 1)
  }

  @Test func aMarkIsStoredOnlyWithItsCommit() throws {
    let db = try TestDatabase()
    func commit(_ mark: UInt64?, _ writes: Write...) throws {
      var request = CommitRequest(writes)
      request.mark = mark
      try db.commit(request)
    }
    #expect(try db.meta(.lastMark) == 0)
    try commit(7, .set("c/x", ("a", 1)))
    #expect(throws: CommitError.documentMissing(document("c/no"))) { try commit(8, .set("c/no", if: .exists(true))) }
    try commit(nil, .set("c/x", ("a", 2)))
    #expect(try db.meta(.lastMark) == 7)
    // The mark is stored even if the commit changes no document.
    try commit(9, .set("c/x", ("a", 2)))
    #expect(try db.meta(.lastMark) == 9)
  }

  // MARK: All or nothing

  @Test func aFailingWriteUndoesTheWholeCommit() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("a", 1)))
    let before = try StoreDump(db)
    #expect(throws: CommitError.documentMissing(document("c/no"))) {
      try db.commit(.set("c/x", ("a", 2)), .set("new/doc"), .set("c/no", if: .exists(true)))
    }
    #expect(throws: CommitError.model(.documentTooLarge)) {
      try db.commit(
        .set("c/x", ("a", 2)),
        .set(
          "c/big", ("b", .bytes(Array(repeating: 0, count: Limits.valueBytesMax))),
          ("c", .bytes(Array(repeating: 0, count: 200)))))
    }
    #expect(try StoreDump(db) == before)
  }

  @Test func writesOfABatchAreIndependent() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("a", 1)))
    let results = db.commitEach([
      .set("c/a"), .set("c/x", if: .exists(false)), .delete("c/no", if: .exists(true)), .set("c/b"),
      .set("c/big", ("b", .bytes(Array(repeating: 0, count: Limits.documentBytesMax)))),
    ])
    #expect(results.map { (try? $0.get()) != nil } == [true, false, false, true, false])
    #expect(results[1] == .failure(.documentExists(document("c/x"))))
    #expect(results[2] == .failure(.documentMissing(document("c/no"))))
    #expect(results[4] == .failure(.model(.documentTooLarge)))
    #expect(try db.get("c/a") != nil && db.get("c/b") != nil)
    #expect(db.commitEach([]).isEmpty)
  }

  // MARK: Many at once

  @Test func aHotCounterCountsEveryCommit() throws {
    let db = try TestDatabase()
    let versions = Mutex<[Int64]>([])
    let failures = Mutex(0)
    onThreads(8) { thread in
      for round in 0..<100 {
        let write = Write.merge("c/hot", [], transforms: [.increment("n", 1)])
        // Commits that cannot succeed run between the others and must not affect them.
        let bad = Write.set("c/hot", if: .exists(false))
        if round % 3 == 2, (try? db.commit(bad, .set("c/never"))) == nil { failures.withLock { $0 += 1 } }
        if let outcome = try? db.commit(write, .set("own/t\(thread)-\(round)")) {
          versions.withLock { $0.append(outcome.version.microseconds) }
        }
      }
    }
    #expect(try db.get("c/hot")?.fields["n"] == 800)
    #expect(try db.get("c/never") == nil || db.get("c/never")!.create <= versions.withLock { $0.min() ?? 0 })
    #expect(versions.withLock { Set($0).count } == 800)
    #expect(failures.withLock { $0 } >= 263)
  }

  @Test func oneThreadSubmitsManyCommitsAtOnce() throws {
    let db = try TestDatabase()
    let group = DispatchGroup()
    let results = Mutex<[Int: Result<CommitOutcome, CommitError>]>([:])
    for index in 0..<3000 {
      group.enter()
      let write: Write =
        index.isMultiple(of: 10)
        ? .set("c/x\(index)", if: .exists(true)) : .merge("c/sum", [], transforms: [.increment("n", 1)])
      db.database.commit(CommitRequest([write])) { result in
        results.withLock { $0[index] = result }
        group.leave()
      }
    }
    group.wait()
    results.withLock { results in
      #expect(results.count == 3000)
      for (index, result) in results {
        if index.isMultiple(of: 10) {
          #expect(result == .failure(.documentMissing(document("c/x\(index)"))))
        } else {
          #expect((try? result.get()) != nil)
        }
      }
    }
    #expect(try db.get("c/sum")?.fields["n"] == 2700)
  }

  @Test func aFullStoreFailsOnlyCommitsThatDoNotFit() throws {
    // Two huge documents fit, and leave room for the small ones even while an old snapshot keeps freed pages.
    let mapBytes = 708 << 12
    let db = try TestDatabase(LMDBStore.open(.inMemory(mapBytes: mapBytes)))
    try db.commit(.set("c/before", ("a", 1)))
    let group = DispatchGroup()
    let results = Mutex<[Int: Result<CommitOutcome, CommitError>]>([:])
    let huge = Value.bytes(Array(repeating: 7, count: 1_000_000))
    for index in 0..<40 {
      group.enter()
      let write: Write = index % 8 == 3 ? .set("c/huge\(index)", ("b", huge)) : .set("c/small\(index)", ("a", 1))
      db.database.commit(CommitRequest([write])) { result in
        results.withLock { $0[index] = result }
        group.leave()
      }
    }
    group.wait()
    var failed = 0
    try results.withLock { results in
      for index in 0..<40 {
        let result = try #require(results[index])
        if index % 8 != 3 {
          #expect((try? result.get()) != nil, "small \(index): \(result)")
          #expect(try db.get("c/small\(index)") != nil)
        } else if case .failure(let error) = result {
          failed += 1
          #expect(error == .storage(.storageFull(limitBytes: mapBytes)))
          #expect(try db.get("c/huge\(index)") == nil)
        } else {
          #expect(try db.get("c/huge\(index)") != nil)
        }
      }
    }
    #expect(failed >= 3)
    try db.commit(.set("c/after", ("b", 2)), .set("other/after", ("never seen", 2)))
    #expect(try db.get("c/before") != nil)
    try IndexCheck.check(db)
  }

  // MARK: Limits

  @Test func documentsAreLimitedInSize() throws {
    let db = try TestDatabase()
    // The name takes 16 + 2 + 2 bytes (c, x), the field names 2, and each document 32 more.
    let room = Limits.documentBytesMax - 20 - 2 - 32
    let half = room / 2
    func fill(_ extra: Int) -> Write {
      .set(
        "c/x", ("a", .bytes(Array(repeating: 1, count: half))),
        ("b", .bytes(Array(repeating: 1, count: room - half - 2 + extra))))
    }
    try db.commit(fill(0))
    #expect(throws: CommitError.model(.documentTooLarge)) { try db.commit(fill(1)) }
    #expect(throws: CommitError.model(.documentTooLarge)) {
      try db.commit(.merge("c/x", [], transforms: [FieldTransform(field("z"), .appendMissingElements(["zzzz"]))]))
    }
    #expect(try db.get("c/x")?.fields["z"] == nil)
  }

  @Test func documentsAreLimitedInIndexEntries() throws {
    let db = try TestDatabase()
    func many(_ count: Int) -> Write { .set("c/x", ("a", .array((0..<count).map { .integer(Int64($0 % 100)) }))) }
    try db.commit(many(39_999))
    #expect(throws: CommitError.model(.tooManyIndexEntries)) { try db.commit(many(40_000)) }
    try IndexCheck.check(db)
  }

  @Test func documentsAreLimitedInDepth() throws {
    let db = try TestDatabase()
    func nested(_ levels: Int) -> Value { (0..<levels).reduce(1) { value, _ in map(("m", value)) } }
    try db.commit(.set("c/x", ("m", nested(20))))
    try IndexCheck.check(db)
    #expect(throws: CommitError.self) { try db.commit(.set("c/y", ("m", nested(21)))) }
    // A transform can make a document too deep.
    let path = Array(repeating: "m", count: 22).joined(separator: ".")
    #expect(throws: CommitError.self) { try db.commit(.merge("c/x", [], transforms: [.increment(path, 1)])) }
    #expect(try db.get("c/y") == nil)
  }
}
