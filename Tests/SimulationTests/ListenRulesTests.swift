import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import RulesEngine
import Synchronization
import Testing
import TestSupport
import Watch

/// Security rules on listeners, from the first state to the last: a target must end, or drop documents, as soon as
/// the rules no longer allow it.
@Suite struct ListenRulesTests {
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /notes/{id} {
          allow get: if resource == null || resource.data.owner == request.auth.uid || resource.data.public == true;
          allow list: if resource.data.owner == request.auth.uid;
        }
        match /rooms/{room}/messages/{id} {
          allow read: if exists(/databases/$(database)/documents/rooms/$(room)/members/$(request.auth.uid));
        }
        match /trial/{id} { allow read: if request.time < timestamp.date(2027, 1, 15) + duration.value(9, 'h'); }
        match /open/{id} { allow read; }
      }
    }
    """

  private let service: SimulatedService

  init() throws {
    service = try SimulatedService()
    service.rules.set(try Ruleset(compiling: Self.rules), forDatabase: nil)
    try service.commit([
      .set("notes/a", ("owner", "ann")), .set("notes/b", ("owner", "ben")), .set("rooms/r/members/ann"),
      .set("rooms/r/messages/m", ("text", "hello")), .set("trial/t"), .set("open/o"),
    ])
  }

  private func client(_ uid: String? = "ann", expiry: Int64? = nil) throws -> ListeningClient {
    let auth = uid.map { RulesAuth(uid: $0, claims: MapValue([("sub", .string($0))]), expiry: expiry) }
    return try ListeningClient(service, as: .user(auth))
  }

  private static func owned(by uid: String) -> ListenTarget.Selection {
    var query = Query(collectionID: "notes")
    query.filter = .field(field("owner"), .equal, .string(uid))
    return .query(query)
  }

  private func events(_ client: ListeningClient) throws -> [String] {
    try client.settle()
    return client.takeEvents()
  }

  @Test func withoutRulesTargetsAreRefusedAndTheStreamContinues() throws {
    let locked = try SimulatedService(mode: .production)
    try locked.commit([.set("open/o")])
    let client = try ListeningClient(locked, as: .user(nil))
    for target: Int32 in [2, 4] {
      try client.add(target, .query(Query(collectionID: "open")))
      #expect(try events(client) == ["ADD \(target)", "REMOVE \(target) permissionDenied"])
    }
    locked.rules.set(try Ruleset(compiling: Self.rules), forDatabase: nil)
    try client.add(6, .query(Query(collectionID: "open")))
    #expect(try events(client) == ["ADD 6", "open/o +6", "CURRENT 6", "SNAPSHOT"])
  }

  @Test func targetsThatRulesDenyAreRefused() throws {
    let client = try client()
    try client.add(2, Self.owned(by: "ann"))
    #expect(try events(client) == ["ADD 2", "notes/a +2", "CURRENT 2", "SNAPSHOT"])
    try client.add(4, Self.owned(by: "ben"))
    #expect(try events(client) == ["ADD 4", "REMOVE 4 permissionDenied"])
    try client.add(5, .documents([document("notes/b").path]))
    #expect(try events(client) == ["ADD 5", "REMOVE 5 permissionDenied"])
    try client.add(7, .documents([document("notes/a").path]))
    #expect(try events(client) == ["ADD 7", "notes/a +7", "CURRENT 7", "SNAPSHOT"])
  }

  @Test func aDocumentWithANewOwnerIsNotShown() throws {
    let client = try client()
    try client.add(1, .documents([document("notes/a").path]))
    try client.add(2, Self.owned(by: "ann"))
    _ = try events(client)
    try service.commit([.set("notes/a", ("owner", "ben"), ("secret", 1))])
    #expect(try events(client).sorted() == ["LEAVE notes/a 2", "REMOVE 1 permissionDenied", "SNAPSHOT"])
    try service.commit([.set("notes/a", ("owner", "ann"))])
    #expect(try events(client) == ["notes/a +2", "SNAPSHOT"])
    try service.commit([.set("notes/a", ("owner", "ben"), ("public", true))])
    #expect(try events(client) == ["notes/a -2", "SNAPSHOT"])
  }

  @Test func losingMembershipEndsTheTargetFirst() throws {
    let client = try client()
    try client.add(2, .query(Query(parent: document("rooms/r").path, collectionID: "messages")))
    try client.add(3, .documents([document("rooms/r/messages/m").path]))
    _ = try events(client)
    try service.commit([.set("rooms/r/messages/m", ("text", "secret")), .delete("rooms/r/members/ann")])
    try service.commit([.set("rooms/r/messages/n", ("text", "secret"))])
    let events = try events(client).filter { $0 != "SNAPSHOT" }
    #expect(events.sorted() == ["REMOVE 2 permissionDenied", "REMOVE 3 permissionDenied"])
  }

  @Test func changingTheMembershipKeepsTheTarget() throws {
    let client = try client()
    try client.add(2, .query(Query(parent: document("rooms/r").path, collectionID: "messages")))
    _ = try events(client)
    for index in 0..<3 {
      try service.commit([.set("rooms/r/members/ann", ("n", .integer(Int64(index))))])
      #expect(try events(client).isEmpty)
    }
    try service.commit([.delete("rooms/r/members/ann")])
    #expect(try events(client) == ["REMOVE 2 permissionDenied"])
  }

  @Test func losingMembershipStopsAnUnfinishedFirstState() throws {
    for index in 0..<2000 { try service.commit([.set("rooms/r/messages/m\(index)")]) }
    let client = try client()
    try client.add(2, .query(Query(parent: document("rooms/r").path, collectionID: "messages")))
    service.settleWatchHubs()
    try client.pull(eventsMax: 100)
    service.settleWatchHubs()
    try client.pull(eventsMax: 100)
    try service.commit([.delete("rooms/r/members/ann")])
    service.settleWatchHubs()
    _ = client.takeEvents()
    #expect(try events(client).filter { $0 != "SNAPSHOT" } == ["REMOVE 2 permissionDenied"])
  }

  @Test func rulesThatUseTheTimeAreEvaluatedAgain() throws {
    let client = try client()
    try client.add(2, .query(Query(collectionID: "trial")))
    #expect(try events(client).last == "SNAPSHOT")
    service.time.advance(seconds: 3590)
    beat()
    #expect(try events(client) == ["SNAPSHOT"])
    service.time.advance(seconds: 60)
    beat()
    #expect(try events(client) == ["REMOVE 2 permissionDenied"])
  }

  @Test func aTargetDeniedByTimeGetsNoMoreChanges() throws {
    let client = try client()
    try client.add(2, .query(Query(collectionID: "trial")))
    _ = try events(client)
    service.time.advance(seconds: 3599)
    beat()
    #expect(try events(client) == ["SNAPSHOT"])
    // The rules allowed the target a second ago but no longer do, so the change must be denied.
    service.time.advance(seconds: 1)
    try service.commit([.set("trial/t", ("n", 1))])
    #expect(try events(client).filter { $0 != "SNAPSHOT" } == ["REMOVE 2 permissionDenied"])
  }

  @Test func newRulesApplyAtOnce() throws {
    let client = try client()
    try client.add(2, .query(Query(collectionID: "open")))
    try client.add(4, Self.owned(by: "ann"))
    _ = try events(client)
    _ = client.wakes.take()
    let closed = Self.rules.replacing("match /open/{id} { allow read; }", with: "")
    service.rules.set(try Ruleset(compiling: closed), forDatabase: nil)
    service.settleWatchHubs()
    #expect(client.wakes.take())
    #expect(try events(client) == ["REMOVE 2 permissionDenied"])
    try service.commit([.set("notes/a", ("owner", "ann"), ("n", 1))])
    #expect(try events(client) == ["notes/a +4", "SNAPSHOT"])
  }

  @Test func anExpiredTokenEndsTheStream() throws {
    let client = try client(expiry: service.time.now + 60_000_000)
    try client.add(2, Self.owned(by: "ann"))
    _ = try events(client)
    service.time.advance(seconds: 61)
    try service.commit([.set("notes/a", ("owner", "ann"), ("n", 1))])
    #expect(
      throws: Status(.unauthenticated, "The token of this stream has expired. Open another one with a fresh token.")
    ) {
      try client.settle()
    }
    #expect(client.takeEvents().isEmpty)
  }

  @Test func aRevokedTokenEndsTheStream() throws {
    let revocationCheck = SteppedRevocationCheck()
    let auth = RulesAuth(uid: "ann", claims: MapValue([("sub", .string("ann"))]), revocationCheck: revocationCheck)
    let client = try ListeningClient(service, as: .user(auth))
    try client.add(2, Self.owned(by: "ann"))
    _ = try events(client)
    try service.commit([.set("notes/a", ("owner", "ann"), ("n", 1))])
    #expect(try !events(client).isEmpty)
    revocationCheck.object("the token is revoked")
    try service.commit([.set("notes/a", ("owner", "ann"), ("n", 2))])
    #expect(throws: Status(.unauthenticated, "The token of this stream is no longer valid: the token is revoked.")) {
      try client.settle()
    }
    #expect(client.takeEvents().isEmpty)
  }

  @Test func aRevokedKeyEndsTheStreamOfAnAdministrator() throws {
    let revocationCheck = SteppedRevocationCheck()
    let client = try ListeningClient(service, as: .administrator(revocationCheck: revocationCheck))
    try client.add(2, .query(Query(collectionID: "notes")))
    _ = try events(client)
    service.time.advance(seconds: 7200)
    try service.commit([.set("notes/a", ("owner", "ann"), ("n", 1))])
    #expect(try !events(client).isEmpty)
    revocationCheck.object("its key is revoked")
    try service.commit([.set("notes/a", ("owner", "ann"), ("n", 2))])
    #expect(throws: Status(.unauthenticated, "The token of this stream is no longer valid: its key is revoked.")) {
      try client.settle()
    }
    #expect(client.takeEvents().isEmpty)
  }

  /// A stream that waits for changes is woken if its token was revoked, also if it has no target.
  @Test(arguments: [true, false]) func aRevokedTokenEndsAnIdleStream(hasTarget: Bool) throws {
    let revocationCheck = SteppedRevocationCheck()
    let auth = RulesAuth(uid: "ann", claims: MapValue([("sub", .string("ann"))]), revocationCheck: revocationCheck)
    let (idle, other) = (try ListeningClient(service, as: .user(auth)), try client("ben"))
    for client in [idle, other] {
      if hasTarget { try client.add(2, .query(Query(collectionID: "open"))) }
      try client.settle()
    }
    revocationCheck.object("its user is disabled")
    service.service.recheckStreams(of: ["ann", "none"])
    #expect(!other.wakes.take())
    #expect(idle.wakes.take())
    #expect(throws: Status(.unauthenticated, "The token of this stream is no longer valid: its user is disabled.")) {
      try idle.pull()
    }
    idle.stream.end()
    service.service.recheckStreams(of: nil)
    #expect(other.wakes.take() && !idle.wakes.take())
    try other.settle()
  }

  /// A client that lags behind does not receive a state that was made private since.
  @Test func aLaggingListenerDoesNotReceivePrivateDocuments() throws {
    let client = try client()
    try client.add(1, .documents([document("notes/a").path]))
    _ = try events(client)
    try service.commit([.set("notes/a", ("owner", "ann"), ("secret", 1))])
    service.settleWatchHubs()
    try service.commit([.set("notes/a", ("owner", "ben"))])
    #expect(try events(client).filter { $0 != "SNAPSHOT" } == ["REMOVE 1 permissionDenied"])
  }

  @Test func unauthenticatedCallersSeeOpenDocuments() throws {
    let client = try client(nil)
    try client.add(2, .query(Query(collectionID: "open")))
    #expect(try events(client) == ["ADD 2", "open/o +2", "CURRENT 2", "SNAPSHOT"])
  }

  private func beat() {
    for hub in service.service.hubs.all { for _ in 0..<8 { hub.beat() } }
  }
}

/// A revocation check whose result the test sets; at first, the token is valid.
final class SteppedRevocationCheck: TokenRevocationCheck {
  private let text = Mutex<String?>(nil)
  var revocationReason: String? { text.withLock { $0 } }
  func object(_ reason: String?) { text.withLock { $0 = reason } }
}
