import DocumentModel
import DocumentStore
import KeyEncoding
import Matching
import Synchronization
import Testing
import TestSupport
import WireFormat

@Suite struct TransactionTests {
  private func aborts(_ path: String) -> CommitError { .aborted(conflicting: document(path).path) }

  @Test func aCommitAbortsOnlyIfAReadChanged() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("a", 1)), .set("c/other", ("a", 1)))

    // A document that was read has changed.
    var transaction = try db.begin()
    try db.get("c/x", in: transaction)
    try db.commit(.set("c/x", ("a", 2)))
    #expect(throws: aborts("c/x")) { try db.commit(transaction, .set("c/y", ("a", 1))) }
    #expect(try db.get("c/y") == nil)

    // The document was rewritten without a change.
    transaction = try db.begin()
    try db.get("c/x", in: transaction)
    try db.commit(.set("c/x", ("a", 2)))
    try db.commit(transaction, .set("c/x", ("a", 3)))

    // A missing document was created.
    transaction = try db.begin()
    #expect(try db.get("c/missing", in: transaction) == nil)
    try db.commit(.set("c/missing"))
    #expect(throws: aborts("c/missing")) { try db.commit(transaction, .set("c/y", ("a", 1))) }

    // A document was deleted.
    transaction = try db.begin()
    try db.get("c/missing", in: transaction)
    try db.commit(.delete("c/missing"))
    #expect(throws: aborts("c/missing")) { try db.commit(transaction, .set("c/y", ("a", 1))) }

    // A document was deleted and created again with the same fields.
    transaction = try db.begin()
    try db.get("c/x", in: transaction)
    try db.commit(.delete("c/x"))
    try db.commit(.set("c/x", ("a", 3)))
    #expect(throws: aborts("c/x")) { try db.commit(transaction) }

    // Another document changed.
    transaction = try db.begin()
    try db.get("c/x", in: transaction)
    try db.commit(.set("c/other", ("a", 2)))
    try db.commit(transaction, .set("c/x", ("a", 4)))

    // The transaction writes without reading.
    transaction = try db.begin()
    try db.commit(.set("c/x", ("a", 5)))
    try db.commit(transaction, .set("c/x", ("a", 6)))
    #expect(try db.get("c/x")?.fields["a"] == 6)
  }

  @Test(arguments: [false, true]) func listingsConflictWithChangesToTheirResult(showMissing: Bool) throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("a", 1)), .set("c/x/s/y"), .set("c/gone/s/y"), .set("c/gone/s/z"))
    for (change, conflicting) in [
      (Write.set("c/new"), "c/new"), (.set("c/x", ("a", 2)), "c/x"), (.delete("c/x"), "c/x"), (.set("d/new"), nil),
      (.set("c/x/s/z"), nil), (.set("c/x", ("a", 3)), "c/x"), (.set("c/x/s/new"), nil),
      (.delete("c/nothing"), nil), (.set("c/new"), nil), (.delete("c/gone/s/y"), nil),
      (.delete("c/gone/s/z"), showMissing ? "c/gone" : nil), (.set("c/gone/s/t"), showMissing ? "c/gone" : nil),
      (.set("c/gone/s/t", ("a", 1)), nil),
    ] as [(Write, String?)] {
      let transaction = try db.begin()
      db.noteListing(of: "c", showMissing: showMissing, in: transaction)
      try db.commit(change)
      let write = Write.set("e/y", ("r", .integer(Int64.random(in: 0 ... .max))))
      if let conflicting {
        #expect(throws: aborts(conflicting), "\(change)") { try db.commit(transaction, write) }
      } else {
        try db.commit(transaction, write)
      }
    }
    // A collection that did not exist.
    let transaction = try db.begin()
    db.noteListing(of: "fresh", in: transaction)
    try db.commit(.set("fresh/x"))
    #expect(throws: aborts("fresh/x")) { try db.commit(transaction) }
  }

  /// A page ends after its last document and begins after the last document of the previous page.
  @Test func aPageConflictsOnlyWithinItsSpan() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/b"), .set("c/d"))
    for (id, conflicts) in [("a", false), ("b", false), ("c", true), ("d", true), ("e", false)] {
      let transaction = try db.begin()
      let noted = try #require(
        db.database.transactions.note(
          QueryRange(
            listing: .collection(collection("c")), orders: [Order(field("__name__"))],
            from: .after(document("c/b").path), includesMissing: false, in: db.database.id),
          limit: 1, in: transaction))
      try db.database.read { reader in
        var noted = noted
        let last = try #require(try reader.document(document("c/d")))
        try noted.returned(document("c/d"), last)
      }
      try db.commit(.set("c/" + id, ("n", .integer(db.time.now))))
      if conflicts {
        #expect(throws: aborts("c/" + id)) { try db.commit(transaction) }
      } else {
        try db.commit(transaction)
      }
      try db.commit(.delete("c/a"), .delete("c/c"), .delete("c/e"))
      db.time.now += 1
    }
  }

  @Test func clearingAbortsATransactionThatListed() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x"))
    let transaction = try db.begin()
    db.noteListing(of: "c", in: transaction)
    let request = CommitRequest(
      [.set("e/y")], after: try db.database.transactions.close(transaction, forWrites: true, by: .administrator))
    try db.clear()
    #expect(throws: CommitError.aborted(conflicting: nil)) { try db.commit(request) }
  }

  /// The history no longer shows the changes since the read, so the commit must be aborted.
  @Test func aQueryFromBeforeTheHistoryConflicts() throws {
    let db = try TestDatabase(retention: Retention(historySeconds: 300))
    try db.commit(.set("c/x"))
    var requests: [CommitRequest] = []
    for listed in [true, false] {
      let transaction = try db.begin()
      if listed { db.noteListing(of: "c", in: transaction) } else { try db.get("c/x", in: transaction) }
      requests.append(
        CommitRequest(
          [.set("e/y")], after: try db.database.transactions.close(transaction, forWrites: true, by: .administrator)))
    }
    try db.commit(.set("d/other"))
    db.time.advance(seconds: 2000)
    try db.commit(.set("d/other", ("a", 1)))
    try db.maintain()
    #expect(throws: CommitError.aborted(conflicting: nil)) { try db.commit(requests[0]) }
    // A document read by name is checked by its version alone.
    try db.commit(requests[1])
  }

  @Test func everyReadShowsTheStartOfTheTransaction() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("a", 1)))
    for mode in [TransactionTable.Mode.readOnly, .readWrite] {
      try db.commit(.set("c/x", ("a", 1)))
      let transaction = try db.begin(mode)
      try db.commit(.set("c/x", ("a", 2)))
      #expect(try db.get("c/x", in: transaction)?.fields["a"] == 1)
      try db.commit(.delete("c/x"))
      #expect(try db.get("c/x", in: transaction)?.fields["a"] == 1)
    }
  }

  @Test func readOnlyTransactionsRefuseWrites() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("a", 1)))
    let transaction = try db.begin(.readOnly)
    try db.get("c/x", in: transaction)
    #expect(throws: CommitError.transactionReadOnly) { try db.commit(transaction, .set("c/x")) }
    // The transaction is still open, and other commits do not affect it.
    try db.commit(.set("c/x", ("a", 2)))
    try db.commit(transaction)
    #expect(throws: CommitError.transactionOver(isReadOnly: true)) { try db.get("c/x", in: transaction) }
  }

  @Test func endedTransactionsDifferFromUnknownOnes() throws {
    let db = try TestDatabase()
    let table = db.database.transactions
    let committed = try db.begin()
    try db.commit(committed, .set("c/x"))
    let rolledBack = try db.begin()
    try table.rollback(rolledBack, by: .administrator)
    let readOnly = try db.begin(.readOnly)
    try table.rollback(readOnly, by: .administrator)
    for (id, isReadOnly) in [(committed, false), (rolledBack, false), (readOnly, true)] {
      #expect(throws: CommitError.transactionOver(isReadOnly: isReadOnly)) { try table.use(id, by: .administrator) }
      #expect(throws: CommitError.transactionOver(isReadOnly: isReadOnly)) { try db.commit(id, .set("c/x")) }
      try table.rollback(id, by: .administrator)
    }
    // Every other byte string is unknown.
    let good = try db.begin()
    for index in good.bytes.indices {
      var bytes = good.bytes
      bytes[index] ^= 1
      let forged = TransactionID(bytes: bytes)
      #expect(throws: CommitError.transactionUnknown, "byte \(index)") { try table.use(forged, by: .administrator) }
      #expect(throws: CommitError.transactionUnknown, "byte \(index)") {
        try table.rollback(forged, by: .administrator)
      }
    }
    for bytes in [[], [1], Array(good.bytes.dropLast()), good.bytes + [0], Array(repeating: 0, count: 24)] {
      #expect(throws: CommitError.transactionUnknown) { try table.use(TransactionID(bytes: bytes), by: .administrator) }
    }
    _ = try table.use(good, by: .administrator)
    // The ID is unknown in another database, and over in the same database after a restart.
    let other = try TestDatabase()
    #expect(throws: CommitError.transactionUnknown) { try other.database.transactions.use(good, by: .administrator) }
    #expect(throws: CommitError.transactionOver(isReadOnly: false)) {
      try db.reopened().database.transactions.use(good, by: .administrator)
    }
  }

  @Test func transactionsExpire() throws {
    let db = try TestDatabase()
    let table = db.database.transactions
    let idle = try db.begin()
    db.time.advance(seconds: 60)
    _ = try table.use(idle, by: .administrator)
    db.time.advance(seconds: 61)
    #expect(throws: CommitError.transactionOver(isReadOnly: false)) { try table.use(idle, by: .administrator) }
    let busy = try db.begin(.readOnly)
    for _ in 0..<5 {
      db.time.advance(seconds: 54)
      _ = try table.use(busy, by: .administrator)
    }
    #expect(table.count == 1)
    db.time.advance(seconds: 1)
    #expect(table.count == 0)
    #expect(throws: CommitError.transactionOver(isReadOnly: true)) { try table.use(busy, by: .administrator) }
  }

  @Test func theTableIsBounded() throws {
    let db = try TestDatabase()
    let table = db.database.transactions
    let oldest = try db.begin()
    db.time.now += 1
    let kept = try db.begin()
    db.time.now += 1
    for _ in 0..<Limits.transactionsMax - 2 { _ = table.begin(.readWrite, readVersion: 1, by: .administrator) }
    #expect(table.count == Limits.transactionsMax)
    _ = table.begin(.readWrite, readVersion: 1, by: .administrator)
    #expect(table.count == Limits.transactionsMax)
    #expect(throws: CommitError.transactionOver(isReadOnly: false)) { try table.use(oldest, by: .administrator) }
    _ = try table.use(kept, by: .administrator)
    // Expired transactions make room first.
    db.time.advance(seconds: 300)
    _ = table.begin(.readWrite, readVersion: 1, by: .administrator)
    #expect(table.count == 1)
  }

  /// A transaction that reads much keeps collections instead of documents, then only the fact that it read. No
  /// conflict is missed, and its memory is bounded.
  @Test func theMemoryOfOneTransactionIsBounded() throws {
    let db = try TestDatabase()
    let table = db.database.transactions
    func begin(collections: Int, documents: Int) throws -> TransactionID {
      let transaction = try db.begin()
      for index in 0..<documents {
        table.noteReads([(document("c\(index % collections)/d\(index)"), 0)], in: transaction)
        #expect(table.bytes < 3 << 20)
      }
      return transaction
    }
    for (collections, documents, change, conflicting) in [
      (2, 100, "c1/other", nil), (2, 100, "c1/d1", "c1/d1"), (2, 30_000, "c3/other", nil),
      (2, 30_000, "c1/other", "c1"), (2, 30_000, "c1/d1", "c1"), (20_000, 40_000, "other/x", "other"),
    ] as [(Int, Int, String, String?)] {
      let transaction = try begin(collections: collections, documents: documents)
      try db.commit(.set(change, ("n", .integer(Int64(documents)))))
      if let conflicting {
        let path = try ResourcePath(conflicting)
        #expect(throws: CommitError.aborted(conflicting: path), "\(documents)") { try db.commit(transaction) }
      } else {
        try db.commit(transaction)
      }
      try db.commit(.delete(change))
    }
    #expect(table.bytes == 0)
  }

  /// Many queries are reduced to their collections, and listings with missing documents to everything below theirs.
  @Test func manyQueriesAreReducedToTheirCollections() throws {
    let db = try TestDatabase()
    for (showMissing, change, conflicting) in [
      (false, "c/a", "c"), (false, "c/a/s/x", nil), (true, "c/a/s/x", "c/a/s"), (true, "d/a", nil),
    ] as [(Bool, String, String?)] {
      let transaction = try db.begin()
      for _ in 0..<10_000 { db.noteListing(of: "c", after: "z", showMissing: showMissing, in: transaction) }
      #expect(db.database.transactions.bytes < 1 << 20)
      try db.commit(.set(change))
      if let conflicting {
        #expect(throws: CommitError.aborted(conflicting: collection(conflicting))) { try db.commit(transaction) }
      } else {
        try db.commit(transaction)
      }
      try db.commit(.delete(change))
    }
  }

  @Test func theMemoryOfAllTransactionsIsBounded() throws {
    let db = try TestDatabase()
    let table = db.database.transactions
    let oldest = try db.begin()
    table.noteReads([(document("c/x"), 0)], in: oldest)
    var latest = oldest
    for _ in 0..<100 {
      db.time.now += 1
      latest = try db.begin()
      for index in 0..<7000 { table.noteReads([(document("c/d\(index)"), 0)], in: latest) }
    }
    #expect(table.bytes <= 64 << 20)
    #expect(table.count > 80)
    #expect(throws: CommitError.transactionOver(isReadOnly: false)) { try table.use(oldest, by: .administrator) }
    _ = try table.use(latest, by: .administrator)
    db.time.advance(seconds: 300)
    #expect(table.count == 0)
    #expect(table.bytes == 0)
  }

  /// Many transactions move money between accounts at once. The sum stays the same, and all transfers complete in
  /// the end.
  @Test func transfersKeepTheSum() throws {
    let db = try TestDatabase()
    let accounts = 5
    for index in 0..<accounts { try db.commit(.set("accounts/a\(index)", ("n", 100))) }
    let done = Mutex(0)
    onThreads(6) { thread in
      var random = SplitMix(seed: UInt64(thread))
      var left = 60
      while left > 0 {
        let (from, to) = (random.pick(Array(0..<accounts)), random.pick(Array(0..<accounts)))
        guard from != to, let transaction = try? db.begin(),
          case .integer(let a)?? = try? db.get("accounts/a\(from)", in: transaction)?.fields["n"],
          case .integer(let b)?? = try? db.get("accounts/a\(to)", in: transaction)?.fields["n"]
        else { continue }
        do {
          try db.commit(
            transaction, .set("accounts/a\(from)", ("n", .integer(a - 1))),
            .set("accounts/a\(to)", ("n", .integer(b + 1))))
          done.withLock { $0 += 1 }
          left -= 1
        } catch {
          if case CommitError.aborted = error {} else { Issue.record("unexpected \(error)") }
        }
      }
    }
    var sum: Int64 = 0
    for index in 0..<accounts {
      if case .integer(let n)? = try db.get("accounts/a\(index)")?.fields["n"] { sum += n }
    }
    #expect(sum == 500)
    #expect(done.withLock { $0 } == 360)
  }
}
