import Foundation
import TestSupport

/// The clients of a soak. Each function runs on a thread of its own until the soak ends.
///
/// Writer `w` commits the numbers 1, 2, 3 and so on. Each commit sets the document `counter/w` and one of its documents
/// in `slot` to the number. So each number is in the change feed once, and the stored numbers show what was lost.
struct SoakClients: Sendable {
  static let writers = 4
  /// The documents of one writer.
  static let slots = 100
  private static let slowReaders = 40
  /// One of how many commits has a large document.
  private static let largeEvery = 50
  private static let largeBytes = 200_000

  let server: SoakServer
  let report: SoakReport
  let seed: UInt64
  let database = TestDatabase(project: "soak")

  /// The numbers of a writer: the last one that it sent, and the last one that the server acknowledged.
  struct Written: Sendable {
    var sent = 0
    var acknowledged = 0
    /// The last acknowledged number of each document.
    var slots: [Int: Int] = [:]
  }

  func write(_ writer: Int) -> Written {
    var random = SplitMix(seed: seed &+ UInt64(writer))
    var written = Written()
    while let port = server.port() {
      do {
        let session = RESTSession(port: port, database: database, timeoutSeconds: 30)
        // The outcome of the last commit may be unknown.
        let stored = try number(of: "counter/\(writer)", session)
        if stored < written.acknowledged || stored > written.sent {
          report.problem("writer \(writer): \(stored) is stored, \(written.acknowledged) was acknowledged")
        }
        var next = stored + 1
        while server.pause(seconds: Double.random(in: 0.01...0.08, using: &random)) {
          written.sent = max(written.sent, next)
          let bytes =
            random.chance(oneIn: Self.largeEvery) ? Self.largeBytes : Int.random(in: 10...2000, using: &random)
          let text = String(repeating: "x", count: bytes)
          let slot = next % Self.slots
          let start = ContinuousClock.now
          let reply = try session.commit([
            session.update("counter/\(writer)", ["n": ["integerValue": .string("\(next)")]]),
            session.update(
              "slot/\(writer)-\(slot)",
              ["n": ["integerValue": .string("\(next)")], "text": ["stringValue": .string(text)]]),
          ])
          guard reply.status == 200 else {
            report.failed("commit \(reply.status)")
            break
          }
          report.took(.commit, since: start)
          written.acknowledged = next
          written.slots[slot] = next
          next += 1
        }
      } catch {
        report.failed("commit: no response")
      }
      guard server.pause(seconds: 0.1) else { break }
    }
    return written
  }

  /// Follows the change feed: every number of every writer once, in order, and rising times.
  ///
  /// - Parameter isFollowing: becomes `true` when the feed gets every further commit.
  func followChanges(_ isFollowing: Observed<Bool>) -> [Int] {
    var last = [Int](repeating: 0, count: Self.writers)
    var token: String?
    var time: Timestamp?
    while let port = server.port() {
      do {
        let query = token.map { "?resumeToken=" + $0.replacing("+", with: "%2B").replacing("=", with: "%3D") } ?? ""
        let feed = try open("GET", database.url("", verb: "changes") + query, port)
        while server.port() == port {
          for line in try feed.lines() {
            let event = try JSONNode(parsing: line)
            if let error = event["error"] { report.problem("the change feed ended with \(error.text)") }
            if let resumeToken = event["resumeToken"]?.stringValue {
              token = resumeToken
              isFollowing.value = true
            }
            guard let changes = event["changes"]?.elements else { continue }
            let commitTime = Timestamp(event["commitTime"] ?? .null)
            if let time, let commitTime, commitTime <= time { report.problem("the times of the change feed decrease") }
            time = commitTime ?? time
            for change in changes { check(change, &last) }
          }
        }
      } catch {
        report.failed("changes: connection lost")
      }
      guard server.pause(seconds: 0.05) else { break }
    }
    return last
  }

  private func check(_ change: JSONNode, _ last: inout [Int]) {
    guard let name = change["name"]?.stringValue, name.contains("/counter/"),
      let writer = name.split(separator: "/").last.flatMap({ Int($0) }), let number = Self.number(in: change["after"])
    else { return }
    if number != last[writer] + 1 { report.problem("the change feed has \(number) of \(writer) after \(last[writer])") }
    last[writer] = number
    report.numbers.update { $0.deliveredChanges += 1 }
  }

  /// Listens to the counters. No listener may see an older state after a newer one.
  func listen() -> [Int] {
    var last = [Int](repeating: 0, count: Self.writers)
    while let port = server.port() {
      do {
        let query = #"{"structuredQuery":{"from":[{"collectionId":"counter"}]}}"#
        let feed = try open("POST", database.url("", verb: "listen"), port, body: query)
        while server.port() == port {
          for line in try feed.lines() {
            let document = try JSONNode(parsing: line)["documentChange"]?["document"]
            guard let name = document?["name"]?.stringValue, let number = Self.number(in: document),
              let writer = name.split(separator: "/").last.flatMap({ Int($0) })
            else { continue }
            if number < last[writer] { report.problem("a listener got \(number) of \(writer) after \(last[writer])") }
            last[writer] = number
          }
        }
      } catch {
        report.failed("listen: connection lost")
      }
      guard server.pause(seconds: 0.05) else { break }
    }
    return last
  }

  func read(_ client: Int) {
    var random = SplitMix(seed: seed &+ 1000 &+ UInt64(client))
    let query: JSONNode = [
      "structuredQuery": ["from": [["collectionId": "counter"]], "orderBy": [["field": ["fieldPath": "n"]]]]
    ]
    while let port = server.port() {
      do {
        let session = RESTSession(port: port, database: database, timeoutSeconds: 30)
        while server.pause(seconds: 0.02) {
          let writer = Int.random(in: 0..<Self.writers, using: &random)
          let path = "slot/\(writer)-\(Int.random(in: 0..<Self.slots, using: &random))"
          var start = ContinuousClock.now
          let reply = try session.get(path)
          if [200, 404].contains(reply.status) {
            report.took(.get, since: start)
          } else {
            report.failed("get \(reply.status)")
          }
          guard random.chance(oneIn: 4) else { continue }
          start = ContinuousClock.now
          let results = try session.call("runQuery", query)
          if results.status == 200 {
            report.took(.query, since: start)
          } else {
            report.failed("query \(results.status)")
          }
        }
      } catch {
        report.failed("read: no response")
      }
      guard server.pause(seconds: 0.1) else { break }
    }
  }

  /// Clients that read a byte a second of large responses. Some are cut at random.
  func readSlowly() {
    var random = SplitMix(seed: seed &+ 2000)
    while let port = server.port() {
      let targets = [database.url("slot"), database.url("", verb: "changes"), database.url("slot") + "?pageSize=300"]
      var sockets: [LoopbackSocket] = []
      while server.port() == port {
        while sockets.count < Self.slowReaders, let socket = try? LoopbackSocket(port: port, readSeconds: 1) {
          socket.send("GET \(random.pick(targets)) HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer owner\r\n\r\n")
          sockets.append(socket)
        }
        for socket in sockets where random.chance(oneIn: 4) { _ = socket.receive(4) }
        if let index = sockets.indices.randomElement(using: &random) {
          sockets[index].reset()
          sockets.remove(at: index)
        }
        guard server.pause(seconds: 0.2) else { return }
      }
    }
  }

  /// Asks on new connections whether the server is there.
  func checkHealth() {
    while let port = server.port() {
      let start = ContinuousClock.now
      if let socket = try? LoopbackSocket(port: port) {
        socket.send("GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        if case .bytes(let bytes) = socket.receive(), bytes.starts(with: "HTTP/1.1 200".utf8) {
          report.took(.health, since: start)
        } else {
          report.failed("health: no response")
        }
      }
      guard server.pause(seconds: 0.1) else { return }
    }
  }

  /// Compares the stored numbers with those that were acknowledged.
  func verify(_ written: [Written], followed: [Int], listened: [Int]) throws {
    guard let port = server.port() else { return }
    let session = RESTSession(port: port, database: database, timeoutSeconds: 60)
    let stored = Dictionary(
      uniqueKeysWithValues: try session.list("slot").map { ($0["name"]?.stringValue ?? "", Self.number(in: $0) ?? 0) })
    for (writer, written) in written.enumerated() {
      let counter = try number(of: "counter/\(writer)", session)
      if counter < written.acknowledged || counter > written.sent {
        report.problem("counter \(writer) is \(counter), \(written.acknowledged) was acknowledged")
      }
      for (slot, number) in written.slots {
        let found = stored[database.name("slot/\(writer)-\(slot)")] ?? 0
        if found < number { report.problem("slot \(writer)-\(slot) is \(found), \(number) was acknowledged") }
      }
      if followed[writer] > counter { report.problem("the change feed is ahead: \(followed[writer])") }
      if listened[writer] > counter { report.problem("the listener is ahead: \(listened[writer])") }
    }
  }

  private func number(of path: String, _ session: RESTSession) throws -> Int {
    let reply = try session.get(path)
    if reply.status == 404 { return 0 }
    guard let number = Self.number(in: reply.json) else { throw UnexpectedResponse(reply: reply) }
    return number
  }

  private static func number(in document: JSONNode?) -> Int? {
    document?["fields"]?["n"]?["integerValue"]?.stringValue.flatMap { Int($0) }
  }

  private func open(_ method: String, _ target: String, _ port: UInt16, body: String = "") throws -> SoakFeed {
    let fields = "Host: x\r\nAuthorization: Bearer owner\r\nContent-Length: \(body.utf8.count)\r\n"
    return SoakFeed(
      try StreamedResponse(
        port: port, request: Array("\(method) \(target) HTTP/1.1\r\n\(fields)\r\n\(body)".utf8), readSeconds: 5))
  }
}

/// The lines of an endless response.
final class SoakFeed {
  private let response: StreamedResponse
  private var rest: [UInt8] = []

  init(_ response: StreamedResponse) { self.response = response }

  /// Waits for bytes. Returns the lines that are complete.
  /// - Throws: ``LoopbackError`` if nothing arrives in time, or if the connection ends.
  func lines() throws -> [[UInt8]] {
    try response.receive()
    rest += response.take(response.body.count)
    guard let end = rest.lastIndex(of: 0x0A) else {
      guard !response.isComplete else { throw LoopbackError("the response ended") }
      return []
    }
    let lines = rest[..<end].split(separator: 0x0A).map { Array($0) }
    rest.removeFirst(end + 1)
    return lines
  }
}
