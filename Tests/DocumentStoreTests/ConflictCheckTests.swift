import DocumentModel
import Matching
import Testing
import TestSupport
@testable import DocumentStore

/// The two parts of a conflict check: on the committing thread, and on the writer's thread for later commits.
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

  /// Returns a read set at the newest version: a number of documents by name, and optionally a query.
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

  @Test(arguments: [1, 64, 65, 100]) func changesSinceTheReadConflict(documents: Int) throws {
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
      // Long lists of documents are checked against the log, which is empty after the last commit.
      #expect(try conflict(reads, checked: after) == (documents <= 64 ? aborted : nil))
    }
  }

  @Test func aQueryIsCheckedAgainstLaterChanges() throws {
    let reads = try readSet(documents: 0, query: true)
    try db.commit(.set("c/other", ("a", 3)))
    let between = try db.meta(.lastVersion)
    #expect(try conflict(reads, checked: nil) == nil)
    try db.commit(.set("c/d1", ("a", 2)))
    let aborted = CommitError.aborted(conflicting: document("c/d1").path)
    for checked in [nil, between] { #expect(try conflict(reads, checked: checked) == aborted) }
    #expect(try conflict(reads, checked: try db.meta(.lastVersion)) == nil)
  }

  /// Clearing removes the log, so reads checked before it are checked again in full.
  @Test func aClearedDatabaseIsCheckedInFull() throws {
    for documents in [1, 100] {
      let reads = try readSet(documents: documents)
      let checked = try db.meta(.lastVersion)
      try db.clear()
      guard case .aborted(conflicting: _?) = try conflict(reads, checked: checked) else {
        Issue.record("the removal of \(documents) documents was missed")
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
