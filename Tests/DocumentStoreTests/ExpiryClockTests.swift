import DocumentModel
import Testing
import TestSupport
@testable import DocumentStore

/// Deletion of expired documents while the clock of the machine jumps, with restarts in between.
@Suite struct ExpiryClockTests {
  private static let indexes = IndexConfiguration(fields: [
    FieldIndexing(collectionID: "c", path: field("end"), entries: FieldIndexing.automatic, expires: true)
  ])
  private static let day = 86_400
  private static let year = 365 * day

  private static func at(_ seconds: Int, of db: TestDatabase) -> Value {
    .timestamp(Timestamp(uncheckedMicroseconds: db.time.now + Int64(seconds) * 1_000_000))
  }

  /// Deletes expired documents and waits until they are deleted.
  private static func expire(_ db: TestDatabase) throws {
    db.database.removeExpired()
    db.database.background.waitForExpiring()
    try db.commit(CommitRequest([]))
  }

  /// Which of the documents exist, after expired ones were deleted. Further attempts must commit nothing.
  private static func left(_ db: TestDatabase, _ paths: [String]) throws -> [String] {
    try expire(db)
    let version = try db.meta(.lastVersion)
    for _ in 0..<20 { try expire(db) }
    #expect(try db.meta(.lastVersion) == version, "the search for expired documents committed again")
    return try paths.filter { try db.get($0) != nil }
  }

  /// A year forward, then to a day before the start, with or without a restart after each jump.
  @Test(arguments: [true, false]) func onlyExpiredDocumentsAreDeletedWhenTheClockJumps(restarts: Bool) throws {
    var db = try TestDatabase(indexes: Self.indexes)
    func restart() throws { if restarts { db = try db.reopened(indexes: Self.indexes) } }
    let paths = ["c/hour", "c/days", "c/years", "c/none", "c/number", "c/text", "c/below/d/x", "d/hour"]
    try db.commit(
      .set("c/hour", ("end", Self.at(3600, of: db))), .set("c/days", ("end", Self.at(100 * Self.day, of: db))),
      .set("c/years", ("end", Self.at(2 * Self.year, of: db))), .set("c/none", ("other", Self.at(1, of: db))),
      .set("c/number", ("end", 1)), .set("c/text", ("end", "2001-01-01T00:00:00Z")),
      .set("c/below/d/x", ("end", Self.at(1, of: db))), .set("d/hour", ("end", Self.at(3600, of: db))))
    #expect(try Self.left(db, paths) == paths)
    let kept = paths.filter { !["c/hour", "c/days"].contains($0) }
    let start = db.time.now
    db.time.advance(seconds: Self.year)
    try restart()
    #expect(try Self.left(db, paths) == kept)
    // By the wrong clock, this document expires next year.
    try db.commit(.set("c/later", ("end", Self.at(60, of: db))))
    db.time.now = start
    db.time.advance(seconds: -Self.day)
    try restart()
    #expect(try Self.left(db, paths + ["c/later"]) == kept + ["c/later"])
    // The clock is behind all commits so far. New documents expire nevertheless.
    let fresh = (0..<3).map { "c/fresh\($0)" }
    try db.commit(
      .set(fresh[0], ("end", Self.at(30, of: db))), .set(fresh[1], ("end", Self.at(90, of: db))),
      .set(fresh[2], ("end", Self.at(-30, of: db))))
    #expect(try Self.left(db, fresh) == [fresh[0], fresh[1]])
    db.time.advance(seconds: 31)
    try restart()
    #expect(try Self.left(db, fresh) == [fresh[1]])
    try db.commit(.set(fresh[1], ("end", Self.at(600, of: db))))
    db.time.advance(seconds: 61)
    #expect(try Self.left(db, fresh) == [fresh[1]])
    db.time.now = start
    db.time.advance(seconds: Self.year + 61)
    try restart()
    #expect(try Self.left(db, paths + fresh + ["c/later"]) == kept)
    try IndexCheck.check(db)
  }

  /// A document whose time is extended, and whose old time expires, stays at every time of the clock.
  @Test func extendedDocumentsStay() throws {
    let db = try TestDatabase(indexes: Self.indexes)
    try db.commit(.set("c/x", ("end", Self.at(60, of: db))))
    try db.commit(.set("c/x", ("end", Self.at(3 * Self.year, of: db))))
    for jump in [Self.year, -Self.year - Self.day, 2 * Self.year, -Self.day] {
      db.time.advance(seconds: jump)
      #expect(try Self.left(db, ["c/x"]) == ["c/x"])
    }
  }

  /// A jump forward expires many documents at once. They are deleted in batches, and the jump back stops that.
  @Test func manyDocumentsExpireInAJump() throws {
    let db = try TestDatabase(indexes: Self.indexes)
    let count = ExpiredDocuments.countMax * 2 + 50
    for start in stride(from: 0, to: count, by: 100) {
      let end = min(start + 100, count)
      try db.commit(
        CommitRequest(
          (start..<end).map {
            .set("c/d\($0)", ("end", Self.at($0.isMultiple(of: 2) ? Self.day : 2 * Self.year, of: db)))
          }))
    }
    db.time.advance(seconds: Self.year)
    let kept = try Self.left(db, (0..<count).map { "c/d\($0)" })
    #expect(kept == (0..<count).filter { !$0.isMultiple(of: 2) }.map { "c/d\($0)" })
    db.time.advance(seconds: -Self.year)
    #expect(try Self.left(db, kept) == kept)
  }
}
