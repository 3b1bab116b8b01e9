import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Testing
import TestSupport
import Watch
import WireFormat

/// The ordered stream of changes of a whole database.
@Suite struct ChangesTests {
  private let service: SimulatedService

  init() throws { service = try SimulatedService() }

  /// A client that records the events it receives.
  final class Client {
    var events: [String] = []
    var tokens: [[UInt8]] = []
    let stream: ChangesStream
    let wakes = ListeningClient.Wakes()

    init(
      _ service: SimulatedService, since token: [UInt8]? = nil, readTime: Timestamp? = nil, as caller: Caller = .admin
    ) throws {
      stream = try ChangesStream(service.service, in: service.id, as: caller, since: token, readTime: readTime) {
        [wakes] in wakes.count()
      }
    }

    func pull(eventsMax: Int = .max) throws {
      var left = eventsMax
      while left > 0 {
        let progress = try stream.pull { event in
          left -= 1
          switch event {
          case .change(let key, _, let before, let after):
            events.append("\(key) \(try Self.text(before)) > \(try Self.text(after))")
          case .commit(let token, _):
            tokens.append(token)
            events.append("COMMIT")
          case .caughtUp(let token, _):
            tokens.append(token)
            events.append("CAUGHT UP")
          }
          return left > 0
        }
        if case .waiting = progress { return }
      }
    }

    func takeEvents() -> [String] {
      defer { events = [] }
      return events
    }

    private static func text(_ document: StoredDocument?) throws -> String {
      guard let document else { return "-" }
      return "\(try EncodedFields(canonical: Array(document.fields)).decoded()["a"] ?? "?")"
    }
  }

  @Test func everyCommitIsReportedInOrderWithItsImages() throws {
    try service.commit([.set("c/x", ("a", 1))])
    let client = try Client(service)
    try client.pull()
    #expect(client.takeEvents() == ["CAUGHT UP"])
    service.settleWatchHubs()
    _ = client.wakes.take()
    try client.pull()
    let one = try EncodedFields(MapValue([("a", 1)])).decoded()["a"].map { "\($0)" } ?? ""
    try service.commit([.set("c/x", ("a", 2)), .set("d/y", ("a", 1))])
    try service.commit([.delete("c/x")])
    try service.commit([.set("c/x", ("a", 1))])
    service.settleWatchHubs()
    #expect(client.wakes.take())
    try client.pull()
    let two = one.replacing("1", with: "2")
    #expect(
      client.takeEvents() == [
        "c/x \(one) > \(two)", "d/y - > \(one)", "COMMIT", "c/x \(two) > -", "COMMIT", "c/x - > \(one)", "COMMIT",
      ])
    service.settleWatchHubs()
    #expect(!client.wakes.take())
  }

  @Test(arguments: 1...7)
  func tokensResumeExactlyOnce(_ eventsMax: Int) throws {
    let first = try Client(service)
    try first.pull()
    var token = try #require(first.tokens.last)
    for index in 0..<10 {
      let number = Value.integer(Int64(index))
      try service.commit((0...index % 4).map { .set("c/d\($0)", ("a", number), ("n", .integer(Int64($0)))) })
    }
    try first.pull()
    let all = Array(first.events.dropFirst())
    // A client that disconnects after some events resumes after the last commit whose token it has.
    var events: [String] = []
    while events.count < all.count {
      let client = try Client(service, since: token)
      try client.pull(eventsMax: eventsMax)
      let whole = client.events.lastIndex(of: "COMMIT")
      if let whole, let last = client.tokens.prefix(client.events.count { $0 == "COMMIT" }).last {
        events += client.events[...whole]
        token = last
      } else {
        try client.pull()
        events += client.events.filter { $0 != "CAUGHT UP" }
      }
    }
    #expect(events == all)
  }

  @Test func changesAfterATimeAreReported() throws {
    let first = try Client(service)
    try first.pull()
    for number in 1...3 { try service.commit([.set("c/x", ("a", .integer(Int64(number))))]) }
    try first.pull()
    let versions = try first.tokens.dropFirst().map { try #require(ResumeToken($0)).version }
    let all = Array(first.events.dropFirst())
    #expect(all.count == 6 && versions.count == 3)
    for (index, version) in versions.enumerated() {
      // The commit at the time itself is not reported, and a moment before, it is.
      for (time, commits) in [(version, 2 - index), (version - 1, 3 - index)] {
        let client = try Client(service, readTime: Timestamp(uncheckedMicroseconds: time))
        try client.pull()
        #expect(client.events == all.suffix(2 * commits) + ["CAUGHT UP"], "\(index) \(commits)")
      }
    }
    let future = try Client(service, readTime: Timestamp(uncheckedMicroseconds: versions[2] + 1_000_000_000))
    try future.pull()
    #expect(future.events == ["CAUGHT UP"])
    #expect(code { _ = try Client(service, readTime: Timestamp(uncheckedMicroseconds: 0)) } == .outOfRange)
  }

  @Test func foreignTokensAreRefused() throws {
    let client = try Client(service)
    try client.pull()
    let token = try #require(client.tokens.last)
    #expect(throws: Status.self) { try Client(service, since: [1, 2, 3]) }
    #expect(code { _ = try Client(service, since: ResumeToken(incarnation: 7, version: 7).bytes) } == .outOfRange)
    try wait { done in try service.service.clear(service.id) { done($0) } }.get()
    #expect(code { _ = try Client(service, since: token) } == .outOfRange)
    #expect(code { try client.pull() } == .outOfRange)
  }

  @Test func aRevokedKeyEndsTheFeed() throws {
    let revocationCheck = SteppedRevocationCheck()
    let client = try Client(service, as: .administrator(revocationCheck: revocationCheck))
    try client.pull()
    revocationCheck.object("its key is revoked")
    #expect(code { try client.pull() } == .unauthenticated)
  }

  @Test func aRevokedKeyEndsAnIdleFeed() throws {
    let revocationCheck = SteppedRevocationCheck()
    let client = try Client(service, as: .administrator(revocationCheck: revocationCheck))
    repeat {
      try client.pull()
      service.settleWatchHubs()
    } while client.wakes.take()
    revocationCheck.object("its key is revoked")
    service.service.recheckStreams(of: nil)
    #expect(client.wakes.take())
    #expect(code { try client.pull() } == .unauthenticated)
  }

  @Test func aTrimmedTokenIsRefused() throws {
    let client = try Client(service)
    try client.pull()
    let token = try #require(client.tokens.last)
    try service.commit([.set("c/x", ("a", 1))])
    service.time.advance(seconds: 4000)
    try service.commit([.set("c/x", ("a", 2))])
    try service.trim()
    #expect(code { _ = try Client(service, since: token) } == .outOfRange)
  }

  private func code(_ body: () throws -> Void) -> Status.Code? {
    do { try body() } catch { return Status(error, database: nil).code }
    return nil
  }
}
