import Foundation
import Testing
import TestSupport

/// Hearth and the official emulator give the same results for random queries and aggregations.
///
/// Environment variables, as for `DifferentialTests`: `CONFORMANCE_SEED` is the first seed, and each set of documents
/// takes the next. `CONFORMANCE_SECONDS` is how long the test runs, instead of the first 1,000 queries.
@Suite(
  .needs(.hearth.orVariable("CONFORMANCE_SUBJECT_URL").orVariable("CONFORMANCE_SUBJECT")),
  .needs(.emulator.orVariable("CONFORMANCE_ORACLE_URL")))
struct QueryDifferentialTests {
  @Test func randomQueriesGetTheSameResults() async throws {
    let environment = ProcessInfo.processInfo.environment
    let firstSeed = TestSeeds.of("CONFORMANCE_SEED", otherwise: [1])[0]
    let seconds = environment["CONFORMANCE_SECONDS"].flatMap { Double($0) }
    let servers = try await Servers.shared.value
    let run = try await onDedicatedThread { () throws -> QueryRun in
      var run = QueryRun(servers, database: TestDatabase(project: "conformance-queries"))
      let deadline = seconds.map { Date(timeIntervalSinceNow: $0) }
      var seed = firstSeed
      while deadline.map({ Date() < $0 }) ?? (run.compared < 1000), run.failures.count < 3 {
        try run.run(seed: seed, count: 200, until: deadline)
        seed += 1
      }
      return run
    }
    print(
      "queries: \(run.compared) compared, \(run.refused) of them refused by both, \(run.impossibleIndexes) by the emulator, "
        + "\(run.tooComplex) by Hearth as too complex")
    for failure in run.failures { Issue.record("the servers disagree\n\(failure)") }
    #expect(run.compared > run.refused, "the servers refused every query")
  }
}

/// The queries sent to both servers so far.
private struct QueryRun: Sendable {
  private(set) var compared = 0
  private(set) var refused = 0
  /// Aggregations of a field over an order that names `__name__` before it. The emulator requires an index and says
  /// that it cannot exist. Hearth needs none.
  private(set) var impossibleIndexes = 0
  /// Queries of more than 100 filters and orders. Production and Hearth reject them, the emulator has no limit.
  private(set) var tooComplex = 0
  private(set) var failures: [String] = []
  private let servers: Servers
  private let database: TestDatabase

  init(_ servers: Servers, database: TestDatabase) {
    self.servers = servers
    self.database = database
  }

  /// Fills both databases with new documents and sends up to `count` queries to each.
  mutating func run(seed: UInt64, count: Int, until deadline: Date?) throws {
    let (oracle, subject) = servers.sessions(database: database)
    var generator = QueryRequestGenerator(database: database, seed: seed)
    let documents = generator.documents()
    for session in [oracle, subject] {
      _ = try session.send(database.clear.method, database.clear.target)
      let reply = try session.commit(documents.map { session.update($0.path, $0.fields) })
      guard reply.status == 200 else { throw UnexpectedResponse(reply: reply) }
    }
    for round in 0..<count where (deadline.map { Date() < $0 } ?? true) && failures.count < 3 {
      let (path, verb, body) = generator.request()
      let expected = try oracle.call(verb, body, on: path)
      let found = try subject.call(verb, body, on: path)
      compared += 1
      if expected.status != 200, found.status != 200 { refused += 1 }
      if found.status == 200, expected.errorMessage?.contains("after __name__ and Firestore does not") == true {
        impossibleIndexes += 1
        continue
      }
      if expected.status == 200, found.errorMessage?.contains("filters and orders; at most") == true {
        tooComplex += 1
        continue
      }
      let digits = body["structuredQuery"]?["findNearest"] == nil ? 17 : 10
      let (left, right) = (Self.comparable(expected, digits), Self.comparable(found, digits))
      if !left.isSame(as: right) {
        failures.append(
          "CONFORMANCE_SEED=\(seed), request \(round): \(verb) on /\(path)\n\(body.text)\n"
            + "  emulator \(left.text) \(expected.errorMessage ?? "")\n  Hearth   \(right.text) \(found.errorMessage ?? "")"
        )
      }
    }
  }

  /// The part of a response that two servers must agree on: the code of an error, or the documents in order and the
  /// numbers.
  ///
  /// The last digits of distances and of sums of doubles depend on the order of the additions.
  private static func comparable(_ reply: RESTSession.Reply, _ digits: Int) -> JSONNode {
    guard reply.status == 200 else { return ["error": .string(reply.errorStatus ?? "\(reply.status)")] }
    return .array(
      reply.json.elements.compactMap { element in
        if let document = element["document"] {
          return ["name": document["name"] ?? .null, "fields": comparable(document["fields"] ?? [:], digits: digits)]
        }
        return element["result"].map { comparable($0["aggregateFields"] ?? [:], digits: 13) }
      })
  }

  /// Compares numbers by value, zeros without their sign: the emulator's JSON has no -0.
  private static func comparable(_ json: JSONNode, digits: Int) -> JSONNode {
    switch json {
    case .number(let text):
      Double(text).map { .number($0 == 0 ? "0" : String(format: "%.\(digits)g", $0)) } ?? json
    case .array(let elements): .array(elements.map { comparable($0, digits: digits) })
    case .object(let members): .object(members.map { .init($0.name, comparable($0.value, digits: digits)) })
    default: json
    }
  }
}
