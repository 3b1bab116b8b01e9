import Foundation
import HearthServer
import Synchronization
import Testing
import TestSupport

@testable import HearthClient

/// Reads, writes, batches, transactions and ETags of documents.
@Suite struct DocumentTests {
  struct User: Codable, Equatable {
    @DocumentID var id: String?
    var name: String
    var age: Int?
    var address: [String: String]?
  }

  @Test func readsAndWritesDocuments() async throws {
    let hearth = try TestHearth()
    let client = try hearth.client()
    let ann = client.document("users/ann")
    #expect(try await !ann.get(as: User.self).exists)
    let result = try await ann.set(User(name: "Ann", age: 41))
    let read = try await ann.get(as: User.self)
    #expect(read.data == User(id: "ann", name: "Ann", age: 41))
    #expect(read.exists && read.updateTime == result.updateTime && read.createTime != nil && read.readTime != nil)
    try await ann.set(["age": 42 as Value, "address": ["city": "Oslo"]], merge: true)
    try await ann.set(["address": ["zip": "0150"]], merge: true)
    #expect(
      try await ann.get(as: User.self).data
        == User(id: "ann", name: "Ann", age: 42, address: ["city": "Oslo", "zip": "0150"]))
    try await ann.set(User(name: "ignored"), mergeFields: ["age"])
    #expect(try await ann.get().fields["age"] == nil)
    try await ann.set(User(name: "An"))
    #expect(try await ann.get().fields == ["name": "An"])
    try await ann.delete()
    #expect(try await !ann.get().exists)
    let added = try await client.collection("users").add(User(name: "Bob"))
    #expect(added.id.count == 20)
    let both = try await client.get([ann, added, client.document("users/å:x y/n/%")], as: User.self)
    #expect(both.map(\.exists) == [false, true, false] && both[1].data?.name == "Bob")
  }

  @Test func updatesApplyTransforms() async throws {
    let hearth = try TestHearth()
    let doc = try hearth.client().document("stats/d")
    await #expect { try await doc.update(["n": 1]) } throws: { ($0 as? HearthClientError)?.code == .notFound }
    try await doc.set(["n": 1 as Value, "m": 5, "tags": ["a", "b"], "old": true, "map": ["x": 1, "y": 2]])
    let result = try await doc.update([
      "n": .increment(2.5), "m": .maximum(9), "k": .minimum(3), "tags": .arrayUnion(["b", "c"]), "old": .delete,
      "map.x": "new", "meals.`Calorie intake`": 900, "seen": .serverTimestamp,
    ])
    let fields = try await doc.get().fields
    #expect(fields["n"] == 3.5 && fields["m"] == 9 && fields["k"] == 3 && fields["tags"] == ["a", "b", "c"])
    #expect(fields["old"] == nil && fields["map"] == ["x": "new", "y": 2])
    #expect(fields["meals.`Calorie intake`" as FieldPath] == 900)
    // Server timestamps have millisecond precision.
    let seen = try #require(result.updateTime).microseconds / 1000 * 1000
    #expect(fields["seen"] == .timestamp(Timestamp(microseconds: seen)))
    #expect(result.transformResults.count == 5)
    try await doc.update(["tags": .arrayRemove(["a", "z"])])
    #expect(try await doc.get().fields["tags"] == ["b", "c"])
  }

  @Test func aFailedPreconditionPreventsTheWrite() async throws {
    let hearth = try TestHearth()
    let client = try hearth.client()
    let doc = client.document("users/ann")
    let first = try await doc.create(User(name: "Ann"))
    await #expect { try await doc.create(User(name: "Ann")) } throws: {
      ($0 as? HearthClientError)?.code == .alreadyExists
    }
    let time = try #require(first.updateTime)
    try await doc.update(["age": 1], if: .updateTime(time))
    await #expect { try await doc.update(["age": 2], if: .updateTime(time)) } throws: {
      ($0 as? HearthClientError)?.code == .failedPrecondition
    }
    var batch = client.batch()
    batch.delete(doc)
    try batch.set(client.document("users/bob"), User(name: "Bob"), if: .exists(true))
    await #expect(throws: HearthClientError.self) { try await batch.commit() }
    #expect(try await doc.get(as: User.self).data?.age == 1)
  }

  @Test func unchangedDocumentsAreNotSentAgain() async throws {
    let hearth = try TestHearth()
    let users = try hearth.client().collection("users")
    let ann = users.document("ann")
    #expect(try await ann.get(as: User.self, unless: nil).snapshot?.exists == false)
    try await ann.set(User(name: "Ann"))
    let (first, tag) = try await ann.get(as: User.self, unless: nil)
    #expect(first?.data?.name == "Ann" && tag != nil)
    #expect(try await ann.get(as: User.self, unless: tag).snapshot == nil)
    let page = try #require(try await users.page(as: User.self))
    #expect(page.documents.map(\.id) == ["ann"] && page.nextPageToken == nil)
    #expect(try await users.page(as: User.self, unless: page.tag) == nil)
    try await users.document("bob").set(User(name: "Bob"))
    #expect(try await ann.get(as: User.self, unless: tag).snapshot == nil)
    let changed = try #require(try await users.page(as: User.self, size: 1, unless: page.tag))
    #expect(changed.documents.map(\.id) == ["ann"])
    let rest = try await users.page(as: User.self, size: 1, after: changed.nextPageToken)
    #expect(rest?.documents.map(\.id) == ["bob"])
    try await ann.set(User(name: "An"))
    let (second, newTag) = try await ann.get(as: User.self, unless: tag)
    #expect(second?.data?.name == "An" && newTag != tag)
  }

  @Test func transactionsAreSerialized() async throws {
    let hearth = try TestHearth()
    let client = try hearth.client()
    let counter = client.document("counters/c")
    try await counter.set(["n": 0])
    try await withThrowingTaskGroup(of: Int.self) { group in
      for _ in 0..<4 {
        group.addTask {
          try await client.runTransaction(attempts: 30) { transaction in
            let n = try await transaction.get(counter, as: [String: Int].self).data?["n"] ?? 0
            transaction.update(counter, ["n": n + 1])
            try transaction.create(client.document("log/\(n)"), ["n": n])
            return n
          }
        }
      }
      var seen: Set<Int> = []
      for try await n in group { seen.insert(n) }
      #expect(seen == [0, 1, 2, 3])
    }
    #expect(try await counter.get().fields["n"] == 4)
    #expect(try await client.collection("log").count() == 4)
  }

  @Test func aTransactionThatThrowsWritesNothing() async throws {
    struct SoldOut: Error {}
    let hearth = try TestHearth()
    let client = try hearth.client()
    let item = client.document("items/cup")
    try await item.set(["stock": 0])
    await #expect(throws: SoldOut.self) {
      try await client.runTransaction { transaction in
        _ = try await transaction.get(client.collection("items").where("stock", .equal, 0))
        transaction.delete(item)
        throw SoldOut()
      }
    }
    // The transaction has released the document: another write succeeds at once.
    try await item.update(["stock": .increment(1)])
    #expect(try await item.get().fields["stock"] == 1)
  }

  @Test func aTransactionFailsAfterItsAttempts() async throws {
    let hearth = try TestHearth()
    let client = try hearth.client()
    let item = client.document("items/cup")
    try await item.set(["n": 0])
    let runs = Runs()
    await #expect {
      try await client.runTransaction(attempts: 3) { _ in
        await runs.count()
        throw HearthClientError(.aborted, "again")
      }
    } throws: { ($0 as? HearthClientError)?.code == .aborted }
    #expect(await runs.number == 3)
  }

  actor Runs {
    var number = 0
    func count() { number += 1 }
  }

  @Test func anUnreachableServerIsANetworkError() async throws {
    var hearth: TestHearth? = try TestHearth()
    let client = try #require(try hearth?.client())
    try await client.document("a/b").set(["n": 1])
    hearth?.server.stop()
    hearth = nil
    await #expect { try await client.document("a/b").get() } throws: { error in
      guard let error = error as? HearthClientError else { return false }
      return error.code == .network && error.isRetryable
    }
  }

  @Test func namesAreComparedByBytes() async throws {
    let (composed, combined) = ("\u{e9}", "e\u{301}")
    #expect(FieldPath(composed) != FieldPath(combined) && FieldPath("a", "b") != FieldPath("ab"))
    #expect(Set([FieldPath(composed), FieldPath(combined), FieldPath(composed)]).count == 2)
    let hearth = try TestHearth()
    let users = try hearth.client().collection("users")
    let ann = try await users.add(["n": 0])
    try await ann.update([
      FieldPath(composed): 1, FieldPath(combined): 2, FieldPath("m", composed): 3, FieldPath("m", combined): 4,
      "m.x": 5,
    ])
    for (path, number) in [
      (FieldPath("n"), 0), (FieldPath(composed), 1), (FieldPath(combined), 2), (FieldPath("m", composed), 3),
      (FieldPath("m", combined), 4), ("m.x", 5),
    ] {
      #expect(try await users.where(path, .equal, .integer(number)).get().documents.count == 1, "\(path)")
    }
  }

  @Test func combiningMarksDoNotHideSlashes() throws {
    let client = detachedClient()
    #expect(client.target("users/\u{301}ann").hasSuffix("/documents/users/%CC%81ann"))
    let ann = client.document("users/\u{301}ann")
    #expect(Array(ann.id.utf8) == Array("\u{301}ann".utf8) && ann.parent.path == "users")
    #expect(Array(client.collection("users/ann/\u{301}notes").id.utf8) == Array("\u{301}notes".utf8))
    #expect(client.collection("users/ann/\u{301}notes").query.parent == "users/ann")
    let other = DocumentReference(name: "projects/p/databases/d/documents/\u{301}users/ann", client)
    #expect(other?.client.project == "p" && other?.client.database == "d")
  }

  @Test func aTransactionDoesNotWaitForItsRollback() async throws {
    struct Ended: Error {}
    let (rollsBack, mayRollBack, hasRolledBack) = (Observed(false), Observed(false), Observed(false))
    let transport = ScriptedTransport { request in
      if request.target.hasSuffix(":rollback") {
        rollsBack.value = true
        // This test may wait for a thread longer than any limit.
        _ = await mayRollBack.becomes(secondsMax: nil) { $0 }
        hasRolledBack.value = true
      }
      return HearthResponse(status: 200, body: Data(#"{"transaction": "dA=="}"#.utf8))
    }
    let client = Hearth(transport: transport, project: "demo")
    // A task of the usual priority, such as the rollback, would wait for a thread behind all other tests.
    let transaction = Task(priority: .high) { try await client.runTransaction { _ in throw Ended() } }
    await #expect(throws: Ended.self) { try await transaction.value }
    #expect(!hasRolledBack.value)
    #expect(await rollsBack.becomes { $0 })
    mayRollBack.value = true
  }

  @Test func alternativeTypeNamesExist() {
    // This suite has its own type User.
    #expect(HearthUser.self != User.self && HearthSession.self == Session.self)
    #expect(HearthTransaction.self == Transaction.self && HearthQuery.self == Query.self)
    #expect(HearthValue.self == Value.self)
  }
}
