import TestSupport

/// Clients that commit continuously and record the acknowledged commits, for tests that stop the server meanwhile.
///
/// Half of the clients write one document per commit, the others five documents that must appear together. Each also
/// rewrites the same two documents in every commit, so that a mixture of states is noticed.
struct WriteLoad: Sendable {
  static let clientCount = 6
  static let groupSize = 5

  /// The state of one client after its connection ended.
  struct Log: Sendable {
    /// Commit times by number of the commit.
    var acknowledged: [Int: String] = [:]
    /// The commit without a response. It may or may not be stored.
    var inFlight: Int?
    /// Responses that a client should not get.
    var problems: [String] = []
  }

  let database: TestDatabase
  let round: Int
  /// The number of acknowledged commits.
  let acknowledged = Observed(0)

  private static func isGroup(_ client: Int) -> Bool { client.isMultiple(of: 2) }

  /// The documents that commit `number` creates.
  func paths(client: Int, number: Int) -> [String] {
    let id = "\(round)-\(client)-\(number)"
    return Self.isGroup(client) ? (0..<Self.groupSize).map { "group/\(id)-\($0)" } : ["single/\(id)"]
  }

  /// The two documents that every commit of a client rewrites.
  func counters(client: Int) -> [String] { ["counter/\(client)", "counter/\(client)/copy/x"] }

  private func fields(_ number: Int) -> JSONNode {
    ["round": ["integerValue": .string("\(round)")], "number": ["integerValue": .string("\(number)")]]
  }

  /// Starts the clients. The returned function waits until all have lost their connection or received an error.
  func start(port: UInt16) -> () -> [Log] {
    startThreads(Self.clientCount) { client in
      let session = RESTSession(port: port, database: database)
      var log = Log()
      for number in 0..<100_000 {
        let paths = paths(client: client, number: number) + counters(client: client)
        log.inFlight = number
        do {
          let reply = try session.commit(paths.map { session.update($0, fields(number)) })
          guard reply.status == 200, let time = reply.json["commitTime"]?.stringValue else {
            // A server that is stopping may respond with UNAVAILABLE.
            if reply.errorStatus != "UNAVAILABLE" { log.problems.append("\(reply.status) \(reply.json.text)") }
            return log
          }
          log.acknowledged[number] = time
          acknowledged.update { $0 += 1 }
          log.inFlight = nil
        } catch {
          return log
        }
      }
      return log
    }
  }

  /// Compares the server's documents with the clients' logs. Returns all differences.
  func verify(_ logs: [Log], port: UInt16) throws -> [String] {
    let session = RESTSession(port: port, database: database)
    var problems: [String] = []
    var documents: [String: JSONNode] = [:]
    for document in try session.list("single") + session.list("group") {
      let name = document["name"]?.stringValue ?? ""
      documents[String(name.dropFirst(database.root.count + 1))] = document
    }
    var explained = 0
    for (client, log) in logs.enumerated() {
      problems += log.problems
      for (number, time) in log.acknowledged {
        for path in paths(client: client, number: number) {
          explained += 1
          guard let document = documents[path] else {
            problems.append("the acknowledged document \(path) is missing")
            continue
          }
          if document["fields"]?.isSame(as: fields(number)) != true { problems.append("\(path) has other fields") }
          if document["updateTime"]?.stringValue != time { problems.append("\(path) has another update time") }
        }
      }
      var last = log.acknowledged.keys.max()
      if let number = log.inFlight {
        let paths = paths(client: client, number: number)
        let present = paths.count { documents[$0] != nil }
        explained += present
        if present != 0, present != paths.count { problems.append("commit \(number) of \(client) is incomplete") }
        if present != 0 { last = number }
      }
      guard let last else { continue }
      let counters = try session.batchGet(counters(client: client))
      for (path, document) in counters where document?["fields"]?.isSame(as: fields(last)) != true {
        problems.append("\(path) should have \(last), but has \(document?["fields"]?.text ?? "missing")")
      }
    }
    let ofThisRound = documents.keys.count { $0.contains("/\(round)-") }
    if ofThisRound != explained { problems.append("found \(ofThisRound) documents, expected \(explained)") }
    return problems
  }
}
