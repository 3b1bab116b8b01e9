import DocumentModel
import DocumentStore
import Synchronization
import TestSupport
import Testing
import WireFormat

@Suite struct TransactionTests {
  private func aborts(_ path: String) -> CommitError { .aborted(conflicting: document(path).path) }

  @Test func conflicts() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("a", 1)), .set("c/other", ("a", 1)))

    // A document that was read changed.
    var transaction = try db.begin()
    try db.get("c/x", in: transaction)
    try db.commit(.set("c/x", ("a", 2)))
    #expect(throws: aborts("c/x")) { try db.commit(transaction, .set("c/y", ("a", 1))) }
    #expect(try db.get("c/y") == nil)

    // It was rewritten as it was: nothing changed.
    transaction = try db.begin()
    try db.get("c/x", in: transaction)
    try db.commit(.set("c/x", ("a", 2)))
    try db.commit(transaction, .set("c/x", ("a", 3)))

    // A missing document came into being.
    transaction = try db.begin()
    #expect(try db.get("c/missing", in: transaction) == nil)
    try db.commit(.set("c/missing"))
    #expect(throws: aborts("c/missing")) { try db.commit(transaction, .set("c/y", ("a", 1))) }

    // One went away.
    transaction = try db.begin()
    try db.get("c/missing", in: transaction)
    try db.commit(.delete("c/missing"))
    #expect(throws: aborts("c/missing")) { try db.commit(transaction, .set("c/y", ("a", 1))) }

    // One went away and came back the same.
    transaction = try db.begin()
    try db.get("c/x", in: transaction)
    try db.commit(.delete("c/x"))
    try db.commit(.set("c/x", ("a", 3)))
    #expect(throws: aborts("c/x")) { try db.commit(transaction) }

    // Something else changed.
    transaction = try db.begin()
    try db.get("c/x", in: transaction)
    try db.commit(.set("c/other", ("a", 2)))
    try db.commit(transaction, .set("c/x", ("a", 4)))

    // It writes without reading.
    transaction = try db.begin()
    try db.commit(.set("c/x", ("a", 5)))
    try db.commit(transaction, .set("c/x", ("a", 6)))
    #expect(try db.get("c/x")?.fields["a"] == 6)
  }

  @Test func listingsConflictWithChangesOfTheirCollection() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("a", 1)), .set("c/x/s/y"))
    let table = db.database.transactions

    for (change, conflicts) in [
      (Write.set("c/new"), true), (.set("c/x", ("a", 2)), true), (.delete("c/x"), true), (.set("d/new"), false),
      (.set("c/x/s/z"), false), (.delete("c/nothing"), false), (.set("c/new"), false),
    ] {
      let transaction = try db.begin()
      try table.noteListing(of: collection("c"), in: transaction)
      try db.commit(change)
      if conflicts {
        #expect(throws: CommitError.aborted(conflicting: collection("c")), "\(change)") { try db.commit(transaction, .set("e/y")) }
      } else {
        try db.commit(transaction, .set("e/y", ("r", .integer(Int64.random(in: 0 ... .max)))))
      }
    }
    // A collection that was never there.
    let transaction = try db.begin()
    try table.noteListing(of: collection("fresh"), in: transaction)
    try db.commit(.set("fresh/x"))
    #expect(throws: CommitError.aborted(conflicting: collection("fresh"))) { try db.commit(transaction) }
  }

  @Test func theStateThatWasListedMayNotBeClearedAway() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x"))
    let transaction = try db.begin()
    try db.database.transactions.noteListing(of: collection("c"), in: transaction)
    let request = CommitRequest([.set("e/y")], of: try db.database.transactions.close(transaction, forWrites: true))
    try db.clear()
    #expect(throws: CommitError.aborted(conflicting: collection("c"))) { try db.commit(request) }
  }

  @Test func everyReadShowsTheStart() throws {
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

  @Test func readOnly() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("a", 1)))
    let transaction = try db.begin(.readOnly)
    try db.get("c/x", in: transaction)
    #expect(throws: CommitError.transactionReadOnly) { try db.commit(transaction, .set("c/x")) }
    // It is still open, and what others change does not matter to it.
    try db.commit(.set("c/x", ("a", 2)))
    try db.commit(transaction)
    #expect(throws: CommitError.transactionOver(isReadOnly: true)) { try db.get("c/x", in: transaction) }
  }

  @Test func overAndUnknown() throws {
    let db = try TestDatabase()
    let table = db.database.transactions
    let committed = try db.begin()
    try db.commit(committed, .set("c/x"))
    let rolledBack = try db.begin()
    try table.rollback(rolledBack)
    let readOnly = try db.begin(.readOnly)
    try table.rollback(readOnly)
    for (id, isReadOnly) in [(committed, false), (rolledBack, false), (readOnly, true)] {
      #expect(throws: CommitError.transactionOver(isReadOnly: isReadOnly)) { try table.use(id) }
      #expect(throws: CommitError.transactionOver(isReadOnly: isReadOnly)) { try db.commit(id, .set("c/x")) }
      try table.rollback(id)
    }
    // Every other byte string is none.
    let good = try db.begin()
    for index in good.bytes.indices {
      var bytes = good.bytes
      bytes[index] ^= 1
      let forged = TransactionID(bytes: bytes)
      #expect(throws: CommitError.transactionUnknown, "byte \(index)") { try table.use(forged) }
      #expect(throws: CommitError.transactionUnknown, "byte \(index)") { try table.rollback(forged) }
    }
    for bytes in [[], [1], Array(good.bytes.dropLast()), good.bytes + [0], Array(repeating: 0, count: 24)] {
      #expect(throws: CommitError.transactionUnknown) { try table.use(TransactionID(bytes: bytes)) }
    }
    _ = try table.use(good)
    // Another database's, and a database that was opened again.
    let other = try TestDatabase()
    #expect(throws: CommitError.transactionUnknown) { try other.database.transactions.use(good) }
    #expect(throws: CommitError.transactionOver(isReadOnly: false)) {
      try db.reopened().database.transactions.use(good)
    }
  }

  @Test func time() throws {
    let db = try TestDatabase()
    let table = db.database.transactions
    let idle = try db.begin()
    db.time.advance(seconds: 60)
    _ = try table.use(idle)
    db.time.advance(seconds: 61)
    #expect(throws: CommitError.transactionOver(isReadOnly: false)) { try table.use(idle) }
    let busy = try db.begin(.readOnly)
    for _ in 0..<5 {
      db.time.advance(seconds: 54)
      _ = try table.use(busy)
    }
    #expect(table.count == 1)
    db.time.advance(seconds: 1)
    #expect(table.count == 0)
    #expect(throws: CommitError.transactionOver(isReadOnly: true)) { try table.use(busy) }
  }

  @Test func theTableIsBounded() throws {
    let db = try TestDatabase()
    let table = db.database.transactions
    let oldest = try db.begin()
    db.time.now += 1
    let kept = try db.begin()
    db.time.now += 1
    for _ in 0..<Limits.transactionsMax - 2 { _ = table.begin(.readWrite, readVersion: 1) }
    #expect(table.count == Limits.transactionsMax)
    _ = table.begin(.readWrite, readVersion: 1)
    #expect(table.count == Limits.transactionsMax)
    #expect(throws: CommitError.transactionOver(isReadOnly: false)) { try table.use(oldest) }
    _ = try table.use(kept)
    // Those that ran out of time make room first.
    db.time.advance(seconds: 300)
    _ = table.begin(.readWrite, readVersion: 1)
    #expect(table.count == 1)
  }

  @Test func readsOfOneTransactionAreBounded() throws {
    let db = try TestDatabase()
    let table = db.database.transactions
    let transaction = try db.begin()
    let reads = (0..<100_000).map { (key: document("c/d\($0)"), version: Int64(0)) }
    try table.noteReads(reads, in: transaction)
    #expect(throws: CommitError.transactionTooLarge) { try table.noteReads([(document("c/more"), 0)], in: transaction) }
  }

  /// Money moves between accounts in many transactions at once: none is lost, and somebody always gets through.
  @Test func transfersKeepTheSum() throws {
    let db = try TestDatabase()
    let accounts = 5
    for index in 0..<accounts { try db.commit(.set("accounts/a\(index)", ("n", 100))) }
    let done = Mutex(0)
    concurrently(6) { thread in
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
            transaction, .set("accounts/a\(from)", ("n", .integer(a - 1))), .set("accounts/a\(to)", ("n", .integer(b + 1))))
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
