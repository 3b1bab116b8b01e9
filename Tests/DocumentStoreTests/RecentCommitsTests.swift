import Basics
import DocumentModel
import KeyValue
import LMDBEngine
import Synchronization
import Testing
import TestSupport
@testable import DocumentStore

/// Commits with an ID happen once, however often their request arrives.
@Suite struct RecentCommitsTests {
  private static let increment = [
    Write.merge("c/counter", [], transforms: [FieldTransform(field("n"), .increment(1))])
  ]

  private static func request(_ id: RequestID, _ writes: [Write] = increment) -> CommitRequest {
    var request = CommitRequest(writes)
    request.id = id
    return request
  }

  private func count(_ db: TestDatabase, _ path: String = "c/counter") throws -> Int64 {
    guard case .integer(let number)? = try db.get(path)?.fields["n"] else { return 0 }
    return number
  }

  private func rows(_ db: TestDatabase) throws -> Int { try StoreDump(db, table: .recentCommits).entries.count }

  private func problems(_ db: TestDatabase) throws -> [String] {
    try db.database.read { try DatabaseCheck.run($0.snapshot).problems }
  }

  // MARK: One after the other

  @Test func aRepeatedCommitGetsTheFirstOutcome() throws {
    let db = try TestDatabase()
    let request = Self.request(.random())
    let first = try db.commit(request)
    #expect(first.results == [WriteResult(updateTime: first.version, transformResults: [.integer(1)])])
    db.time.advance(seconds: 5)
    try db.commit(Self.request(.random()))
    #expect(try db.commit(request) == first)
    #expect(try db.reopened().commit(request) == first)
    #expect(try count(db) == 2)
    #expect(try problems(db).isEmpty)
  }

  @Test func aRepeatedCommitIgnoresPreconditionsAndRules() throws {
    let db = try TestDatabase()
    let create = Self.request(.random(), [.set("c/a", ("n", 1), if: .exists(false))])
    let outcome = try db.commit(create)
    var denied = create
    denied.authorizer = Denial()
    #expect(try db.commit(create) == outcome)
    #expect(try db.commit(denied) == outcome)
    #expect(throws: CommitError.denied("no")) {
      var denied = Self.request(.random(), [.set("c/a", ("n", 1))])
      denied.authorizer = Denial()
      try db.commit(denied)
    }
  }

  @Test func aFailedCommitIsDoneAgain() throws {
    let db = try TestDatabase()
    let update = Self.request(.random(), [.set("c/a", ("n", 2), if: .exists(true))])
    #expect(throws: CommitError.documentMissing(document("c/a"))) { try db.commit(update) }
    #expect(try rows(db) == 0)
    try db.commit(.set("c/a", ("n", 1)))
    try db.commit(update)
    #expect(try count(db, "c/a") == 2)
  }

  @Test func anIDWithOtherWritesIsRefused() throws {
    let db = try TestDatabase()
    let id = RequestID.random()
    try db.commit(Self.request(id))
    #expect(throws: CommitError.idReused) { try db.commit(Self.request(id, [.delete("c/counter")])) }
    #expect(try count(db) == 1)
  }

  @Test func onlyCommitsWithAnIDHaveARow() throws {
    let db = try TestDatabase()
    try db.commit(CommitRequest(Self.increment))
    try db.commit(Self.request(.random(), []))
    #expect(try rows(db) == 0)
    // A commit that changes nothing has one: it may have been the first try.
    let verify = Self.request(.random(), [.verify("c/counter", if: .exists(true))])
    let outcome = try db.commit(verify)
    #expect(try rows(db) == 1)
    try db.commit(.delete("c/counter"))
    #expect(try db.commit(verify) == outcome)
  }

  @Test func aRowIsSmall() throws {
    let db = try TestDatabase()
    try db.commit(Self.request(.random(), [.set("c/a", ("n", 1))]))
    try db.commit(Self.request(.random(), (0..<500).map { .set("c/\($0)", ("n", 1)) }))
    try db.commit(Self.request(.random()))
    let sizes = try StoreDump(db, table: .recentCommits).entries.map { $0.key.count + $0.value.count }
    #expect(sizes.sorted() == [41, 43, 54], "bytes of three rows: \(sizes)")
  }

  /// A restore of a moment within a group keeps the row with the changes of its commit.
  @Test func aRowBelongsToTheChangesBeforeIt() throws {
    let db = try TestDatabase()
    try db.commit(Self.request(.random()))
    let key = try #require(try StoreDump(db, table: .recentCommits).entries.keys.first)
    #expect(key.withUnsafeBytes { CommitGroup.Row(key: $0) } == .mark)
  }

  // MARK: At the same time

  @Test func manyThreadsRepeatOneAnother() throws {
    let db = try TestDatabase()
    let seed = UInt64.random(in: 0..<1 << 32)
    var random = SplitMix(seed: seed)
    let ids = (0..<40).map { _ in RequestID.random(using: &random) }
    let choices = (0..<100).map { _ in (0..<8).map { _ in ids[Int.random(in: 0..<ids.count, using: &random)] } }
    let outcomes = Mutex<[RequestID: [CommitOutcome]]>([:])
    onThreads(choices.count) { thread in
      for id in choices[thread] {
        do {
          let outcome = try db.commit(Self.request(id))
          outcomes.withLock { $0[id, default: []].append(outcome) }
        } catch { Issue.record("seed \(seed): \(error)") }
      }
    }
    let all = outcomes.withLock { $0 }
    #expect(all.values.allSatisfy { Set($0.map(\.version)).count == 1 && Set($0.map(\.results)).count == 1 })
    #expect(try count(db) == Int64(all.count), "seed \(seed)")
    #expect(try rows(db) == all.count, "seed \(seed)")
    #expect(try problems(db).isEmpty)
  }

  @Test func theWriterSeesAnEarlierMemberOfItsGroup() throws {
    let queues = SteppedQueues(seed: 1)
    let db = try TestDatabase(queues: queues.queues)
    var request = Self.request(.random())
    request.digest = CommitDigest.of(request.writes)
    var other = request
    other.digest += 1
    let results = Mutex<[Result<CommitOutcome, CommitError>]>([])
    for request in [request, request, other] {
      #expect(db.database.queue.memory.take(request.bytes))
      let member = CommitWriter.Member(
        request: request, plan: nil, checkedVersion: 0, requestTime: .earliest, arrival: db.time.now)
      db.database.queue.submit([member], completions: [{ result in results.withLock { $0.append(result) } }])
    }
    queues.runAll()
    let all = results.withLock { $0 }
    #expect(all.count == 3)
    #expect(try all[0].get() == all[1].get())
    #expect(all[2] == .failure(.idReused))
    #expect(try count(db) == 1)
  }

  /// The second try arrives after the first one closed the transaction, and before it is written.
  @Test func aTryWaitsForTheOneUnderWay() throws {
    let queues = SteppedQueues(seed: 1)
    let db = try TestDatabase(queues: queues.queues)
    let transaction = try db.begin()
    let request = Self.request(.random())
    let results = Mutex<[Result<CommitOutcome, CommitError>]>([])
    func send(_ request: CommitRequest, in transaction: TransactionID) {
      db.database.commit(
        request,
        preparing: { () throws(CommitError) in
          try db.database.transactions.close(transaction, forWrites: true, by: .administrator)
        }, completion: { result in results.withLock { $0.append(result) } })
    }
    send(request, in: transaction)
    send(request, in: transaction)
    send(Self.request(try #require(request.id), [.delete("c/counter")]), in: transaction)
    #expect(results.withLock { $0 } == [.failure(.idReused)])
    queues.runAll()
    let all = results.withLock { $0 }
    #expect(try all.count == 3 && all[1].get() == all[2].get())
    // The transaction is over, but its commit is known.
    send(request, in: transaction)
    #expect(try results.withLock { try $0[3].get() } == all[1].get())
    send(Self.request(.random()), in: transaction)
    #expect(results.withLock { $0[4] } == .failure(.transactionOver(isReadOnly: false)))
    #expect(try count(db) == 1)
  }

  @Test func everyTryGetsTheFailureOfTheOneUnderWay() throws {
    let queues = SteppedQueues(seed: 1)
    let store = WatchedStore(try LMDBStore.open(.inMemory(mapBytes: 64 << 20)))
    let db = try TestDatabase(store, queues: queues.queues)
    let failure = StorageError.notOwner(of: "p", owner: "http://b")
    store.failures.withLock { $0 = [failure] }
    let request = Self.request(.random())
    let results = Mutex<[Result<CommitOutcome, CommitError>]>([])
    for _ in 0..<2 { db.database.commit(request) { result in results.withLock { $0.append(result) } } }
    queues.runAll()
    #expect(results.withLock { $0 } == Array(repeating: .failure(.storage(failure)), count: 2))
    db.database.commit(request) { result in results.withLock { $0.append(result) } }
    queues.runAll()
    #expect(try results.withLock { try $0[2].get().results.count } == 1)
  }

  // MARK: Failures

  /// The answer of the first try is lost, and the database is opened again, as by a new owner.
  @Test(arguments: [false, true]) func anUnknownOutcomeIsKnownLater(isStored: Bool) throws {
    let store = WatchedStore(try LMDBStore.open(.inMemory(mapBytes: 64 << 20)))
    let db = try TestDatabase(store)
    let failure = StorageError.outcomeUnknown(path: "log", detail: "the answer was lost")
    if isStored { store.lostAnswers.withLock { $0 = 1 } } else { store.failures.withLock { $0 = [failure] } }
    let request = Self.request(.random())
    #expect(throws: CommitError.storage(failure)) { try db.commit(request) }
    #expect(try count(db) == (isStored ? 1 : 0))
    // A store that does not show the commit may have it nevertheless.
    if !isStored { #expect(throws: CommitError.storage(failure)) { try db.commit(request) } }
    let next = try db.reopened()
    store.forget()
    let outcome = try next.commit(request)
    #expect(outcome.results.map(\.transformResults) == [[.integer(1)]])
    #expect(store.writes == (isStored ? 0 : 1))
    #expect(try next.commit(request) == outcome)
    #expect(try count(next) == 1)
  }

  @Test func eachWriteOfABatchHappensOnce() throws {
    let queues = SteppedQueues(seed: 1)
    let store = WatchedStore(try LMDBStore.open(.inMemory(mapBytes: 64 << 20)))
    let db = try TestDatabase(store, queues: queues.queues)
    let failure = StorageError.storageFull(limitBytes: 1)
    // The group fails, then the second of its commits.
    store.failures.withLock { $0 = [failure, nil, failure] }
    let writes = (0..<3).map {
      Write.merge("c/\($0)", [], transforms: [FieldTransform(field("n"), .increment(1))])
    }
    let id = RequestID.random()
    let tries = Mutex<[[Result<CommitOutcome, CommitError>]]>([])
    for _ in 0..<2 {
      db.database.commitEach(writes, id: id) { results in tries.withLock { $0.append(results) } }
      queues.runAll()
    }
    let (first, second) = tries.withLock { ($0[0], $0[1]) }
    #expect(first[1] == .failure(.storage(failure)))
    #expect(try [0, 2].allSatisfy { try first[$0].get() == second[$0].get() })
    #expect(try second[1].get().results.count == 1)
    #expect(try (0..<3).map { try count(db, "c/\($0)") } == [1, 1, 1])
  }

  @Test func clearingKeepsTheOutcomes() throws {
    let db = try TestDatabase()
    let request = Self.request(.random())
    let outcome = try db.commit(request)
    try db.clear()
    #expect(try db.commit(request) == outcome)
    #expect(try count(db) == 0)
  }

  // MARK: Trimming

  @Test func anOutcomeIsKeptForTenMinutes() throws {
    let db = try TestDatabase()
    let request = Self.request(.random())
    let outcome = try db.commit(request)
    db.time.advance(seconds: 599)
    try db.maintain()
    #expect(try db.commit(request) == outcome)
    db.time.advance(seconds: 400)
    try db.maintain()
    #expect(try rows(db) == 0)
    // From now on the request is a new one.
    #expect(try db.commit(request).version > outcome.version)
    #expect(try count(db) == 2)
  }

  @Test func outcomesAreTrimmedInSlices() throws {
    let db = try TestDatabase()
    let ids = (0..<Trimmer.batchEntriesMax + 500).map { _ in RequestID.random() }
    for id in ids { try db.commit(Self.request(id)) }
    db.time.advance(seconds: 700)
    let last = Self.request(.random())
    try db.commit(last)
    db.time.advance(seconds: 300)
    var hasMore = false
    try db.store.write { (transaction) throws(StorageError) in
      hasMore = try RecentCommits.trim(transaction, before: db.time.now - RecentCommits.keptMicroseconds)
    }
    #expect(hasMore)
    #expect(try rows(db) == 501)
    try db.maintain()
    #expect(try rows(db) == 1)
    #expect(try problems(db).isEmpty)
  }

  /// The clock was a day ahead, so the versions are no times until it has caught up.
  @Test func outcomesAreTrimmedAfterTheClockWasAhead() throws {
    let db = try TestDatabase(retention: Retention(historySeconds: 300))
    db.time.advance(seconds: 86_400)
    let request = Self.request(.random())
    let outcome = try db.commit(request)
    db.time.advance(seconds: -86_400)
    for _ in 0..<30 {
      db.time.advance(seconds: 60)
      try db.commit(Self.request(.random()))
      try db.maintain()
      #expect(try db.commit(request) == outcome)
    }
    #expect((11...18).contains(try rows(db)), "the rows of ten to sixteen minutes, and one of the wrong time")
    #expect(try problems(db).isEmpty)
    db.time.advance(seconds: 86_400)
    try db.maintain()
    #expect(try rows(db) == 0)
  }

  // MARK: Damage

  @Test func damagedRowsAreReported() throws {
    let db = try TestDatabase()
    let request = Self.request(.random())
    try db.commit(request)
    let (key, value) = try #require(try StoreDump(db, table: .recentCommits).entries.first)
    func put(_ value: [UInt8]) throws {
      try db.store.write { (transaction) throws(StorageError) in
        var row = StorageKey()
        row.begin(raw: key)
        try transaction.put(row, value)
      }
    }
    try put(Array(value.dropLast()))
    #expect(try problems(db) == ["recentCommits: malformed row"])
    #expect(throws: CommitError.self) { try db.commit(request) }
    var moved = value
    // The highest byte of the version.
    moved[15] = 0x80
    try put(moved)
    #expect(try problems(db).count == 1)
    #expect(try count(db) == 1)
  }
}

/// Denies every commit.
private struct Denial: CommitAuthorizer {
  var bytes: Int { 0 }

  func authorize(
    _ documents: [ProposedDocument], requestTime: Timestamp, isInTransaction: Bool, isOnLoop: Bool,
    _ snapshot: any KeyValueSnapshot
  ) throws(CommitError) -> [(key: DocumentKey, version: Int64)] {
    throw .denied("no")
  }
}
