import DocumentModel
import Matching
import TestSupport
import Testing
@testable import DocumentStore

/// The two halves of a check: the committing thread's, and the writer's of what came after it.
@Suite struct ConflictCheckTests {
  private let db: TestDatabase

  init() throws {
    db = try TestDatabase()
    for index in 0..<100 { try db.commit(.set("c/d\(index)", ("a", 1))) }
  }

  private func conflict(_ reads: ReadSet, checked: Int64?) throws -> CommitError? {
    try db.database.read { reader in
      do throws(CommitError) {
        try ConflictCheck.run(reads, on: reader.snapshot, checked: checked)
        return nil
      } catch { return error }
    }
  }

  /// What was read, as it was at the newest version: so many documents by name, and a query where asked for.
  private func readSet(documents: Int, query: Bool = false) throws -> ReadSet {
    var reads = ReadSet(at: try db.meta(.lastVersion))
    for index in 0..<documents {
      let path = "c/d\(index)"
      reads.note(document(path), version: try db.get(path)?.update ?? 0)
    }
    if query {
      let range = QueryRange(
        .collection(collection("c")),
        matching: DocumentMatcher(.field(field("a"), .equal, 2), in: db.database.id),
        orders: [Order(field("__name__"))], from: nil, to: nil)
      _ = reads.note(range)
    }
    return reads
  }

  @Test(arguments: [1, 64, 65, 100]) func theTailIsLookedAtAlone(documents: Int) throws {
    for path in ["c/d0", "c/d\(documents - 1)"] {
      let reads = try readSet(documents: documents)
      let before = try db.meta(.lastVersion)
      try db.commit(.set("c/other", ("n", .integer(before))))
      let between = try db.meta(.lastVersion)
      #expect(try conflict(reads, checked: nil) == nil)
      #expect(try conflict(reads, checked: between) == nil)
      try db.commit(.set(path, ("n", .integer(before))))
      let after = try db.meta(.lastVersion)
      let aborted = CommitError.aborted(conflicting: document(path).path)
      for checked in [nil, before, between] { #expect(try conflict(reads, checked: checked) == aborted) }
      // Long lists are looked for in the log, and there is nothing in it behind the last commit.
      #expect(try conflict(reads, checked: after) == (documents <= 64 ? aborted : nil))
    }
  }

  @Test func aQueryLooksAtTheTail() throws {
    let reads = try readSet(documents: 0, query: true)
    try db.commit(.set("c/other", ("a", 3)))
    let between = try db.meta(.lastVersion)
    #expect(try conflict(reads, checked: nil) == nil)
    try db.commit(.set("c/d1", ("a", 2)))
    let aborted = CommitError.aborted(conflicting: document("c/d1").path)
    for checked in [nil, between] { #expect(try conflict(reads, checked: checked) == aborted) }
    #expect(try conflict(reads, checked: try db.meta(.lastVersion)) == nil)
  }

  /// Clearing leaves no log: whoever was checked before it is looked at anew.
  @Test func aClearedDatabaseHasNoTail() throws {
    for documents in [1, 100] {
      let reads = try readSet(documents: documents)
      let checked = try db.meta(.lastVersion)
      try db.clear()
      guard case .aborted(conflicting: _?) = try conflict(reads, checked: checked) else {
        Issue.record("\(documents) documents that are gone were overlooked")
        return
      }
      for index in 0..<100 { try db.commit(.set("c/d\(index)", ("a", 1))) }
    }
    let reads = try readSet(documents: 0, query: true)
    let checked = try db.meta(.lastVersion)
    try db.clear()
    #expect(try conflict(reads, checked: checked) == .aborted(conflicting: nil))
    // Missing documents are still missing.
    var missing = ReadSet(at: checked)
    for index in 0..<100 { missing.note(document("c/none\(index)"), version: 0) }
    #expect(try conflict(missing, checked: checked) == nil)
  }
}
