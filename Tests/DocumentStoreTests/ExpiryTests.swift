import DocumentModel
import Testing
import TestSupport
import WireFormat
@testable import DocumentStore

/// Deletion of documents after the time in a field configured to expire.
@Suite struct ExpiryTests {
  private static func at(_ seconds: Int, of db: TestDatabase) -> Value {
    .timestamp(Timestamp(uncheckedMicroseconds: db.time.now + Int64(seconds) * 1_000_000))
  }

  /// Deletes expired documents and waits until they are deleted.
  private func expire(_ db: TestDatabase) throws {
    db.database.removeExpired()
    db.database.background.waitForExpiring()
    try db.commit(CommitRequest([]))
  }

  @Test(arguments: [true, false]) func documentsAreDeletedWhenTheyExpire(isExempt: Bool) throws {
    let field = FieldIndexing(
      collectionID: "c", path: field("m.end"), entries: isExempt ? [] : FieldIndexing.automatic, expires: true)
    let db = try TestDatabase(indexes: IndexConfiguration(fields: [field]))
    let (soon, late) = (Self.at(60, of: db), Self.at(600, of: db))
    try db.commit(
      .set("c/soon", ("m", map(("end", soon)))), .set("c/soon/s/below", ("m", map(("end", soon)))),
      .set("c/late", ("m", map(("end", late)))), .set("c/none", ("end", soon)),
      .set("d/soon", ("m", map(("end", soon)))),
      .set("x/y/c/soon", ("m", map(("end", soon)))), .set("c/number", ("m", map(("end", 0)))),
      .set("c/text", ("m", map(("end", "1970")))), .set("c/list", ("m", map(("end", [soon])))))
    let kept = ["c/soon/s/below", "c/late", "c/none", "d/soon", "c/number", "c/text", "c/list"]
    try expire(db)
    #expect(try db.get("c/soon") != nil)
    db.time.advance(seconds: 61)
    let before = try db.meta(.lastVersion)
    try expire(db)
    for path in ["c/soon", "x/y/c/soon"] {
      #expect(try db.get(path) == nil)
      // The deletion is an ordinary commit, so past reads still find the document.
      #expect(try db.get(path, at: before) != nil)
    }
    for path in kept { #expect(try db.get(path) != nil, "\(path)") }
    #expect(try StoreDump(db, table: .changeLog).entries.count == 11)
    db.time.advance(seconds: 600)
    try expire(db)
    #expect(try db.get("c/late") == nil)
    try IndexCheck.check(db)
  }

  /// More documents than one batch takes are all deleted, except those whose time was extended meanwhile.
  @Test func manyDocumentsExpireAndRefreshedOnesStay() throws {
    let db = try TestDatabase(
      indexes: IndexConfiguration(fields: [
        FieldIndexing(collectionID: "c", path: field("end"), entries: FieldIndexing.automatic, expires: true)
      ]))
    let soon = Self.at(10, of: db)
    let count = ExpiredDocuments.countMax * 2 + 50
    for start in stride(from: 0, to: count, by: 100) {
      let end = min(start + 100, count)
      try db.commit(CommitRequest((start..<end).map { .set("c/d\($0)", ("end", soon)) }))
    }
    db.time.advance(seconds: 20)
    // The document changes after it was found, so the precondition keeps it.
    let found = try db.database.read { reader in
      try ExpiredDocuments.find(try db.database.indexes(&reader), now: db.time.now, &reader)
    }
    #expect(found.count == ExpiredDocuments.countMax)
    let first = try #require(found.first)
    try db.commit(.set(first.key.path.text, ("end", Self.at(1000, of: db))))
    let stale = Write(
      .delete, key: first.key, precondition: .updateTime(Timestamp(uncheckedMicroseconds: first.updateVersion)))
    #expect(throws: CommitError.self) { try db.commit(stale) }
    try expire(db)
    #expect(try StoreDump(db, table: .documents).entries.count == 1)
    #expect(try db.get(first.key.path.text) != nil)
  }

  @Test func nothingExpiresWithoutThePolicy() throws {
    let db = try TestDatabase()
    try db.commit(.set("c/x", ("end", Self.at(-10, of: db))))
    try expire(db)
    #expect(try db.get("c/x") != nil)
  }
}
