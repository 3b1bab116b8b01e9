import Foundation
import Synchronization
import TestSupport

/// Clients of a cluster that commit without a pause, and what they know of the outcomes.
///
/// Half of them stay at a node while it serves, so that a silent node does not make all of them wait. The others change
/// their nodes.
/// A commit creates a document and increments a counter of its client. So the counter shows whether a commit happened twice.
struct ClusterLoad: Sendable {
  static let clientCount = 8

  /// The commits of one client.
  struct Log: Sendable {
    var acknowledged: Set<String> = []
    /// The commits whose outcome the client does not know.
    var unknown: Set<String> = []
    /// The commits that certainly did not happen.
    var refused: Set<String> = []
    /// The number of commits to which a node responded with an error.
    var failures: Int { refused.count + doubts }
    /// The number of responses that the outcome is unknown.
    var doubts = 0
    /// The longest time between two acknowledgments, in milliseconds.
    var longestPause = 0
    var problems: [String] = []
  }

  private let ports: [UInt16]
  /// The number of acknowledged commits.
  let acknowledged = Observed(0)
  private let isStopped = Observed(false)

  /// The time of the last acknowledgment of any client, and the longest time without one, in milliseconds.
  private struct Progress {
    var last: ContinuousClock.Instant?
    var longestGap = 0
  }

  private let progress = Observed(Progress())

  init(_ ports: [UInt16]) { self.ports = ports }

  /// The longest time in which no client got an acknowledgment, in milliseconds.
  var longestGap: Int { progress.value.longestGap }

  /// Returns the longest time without an acknowledgment that ended while `body` ran, in milliseconds.
  /// - Throws: the error of `body`.
  func longestGap(_ body: () throws -> Void) rethrows -> Int {
    let before = progress.update { progress in
      defer { progress.longestGap = 0 }
      return progress.longestGap
    }
    defer { progress.update { $0.longestGap = max($0.longestGap, before) } }
    try body()
    return longestGap
  }

  /// Starts the clients. The returned function waits until all have ended.
  func start() -> () -> [Log] { startThreads(Self.clientCount) { run($0) } }

  /// Ends the clients after their current commits.
  func stop() { isStopped.update { $0 = true } }

  private func run(_ client: Int) -> Log {
    var random = SplitMix(seed: UInt64(client))
    var log = Log()
    var last = ContinuousClock.now
    var connection = TestHTTPClient(port: ports[client % ports.count], timeoutSeconds: 30)
    var number = 0
    while !isStopped.value, number < 200_000 {
      number += 1
      let id = "\(client)-\(number)"
      do {
        let response = try connection.send(
          "POST", "\(ServedCluster.documents):commit", headers: [("Content-Type", "application/json")],
          body: Array(commit(id, client).text.utf8))
        switch response.status {
        case 200:
          log.acknowledged.insert(id)
          acknowledged.update { $0 += 1 }
          noteAcknowledgment()
          let pause = ContinuousClock.now - last
          last = ContinuousClock.now
          log.longestPause = max(log.longestPause, Int(pause / .milliseconds(1)))
        // UNAVAILABLE means that nothing happened, INTERNAL that the outcome is unknown.
        case 503: log.refused.insert(id)
        case 500:
          log.unknown.insert(id)
          log.doubts += 1
        default: log.problems.append("\(id): \(response.status) \(response.text)")
        }
      } catch {
        log.unknown.insert(id)
      }
      let failed = !log.acknowledged.contains(id)
      if failed || random.chance(oneIn: 50) {
        let stays = client < Self.clientCount / 2 && !failed
        let port = stays ? ports[client % ports.count] : random.pick(ports)
        connection = TestHTTPClient(port: port, timeoutSeconds: 30)
      }
    }
    return log
  }

  private func noteAcknowledgment() {
    progress.update { progress in
      let now = ContinuousClock.now
      if let last = progress.last {
        progress.longestGap = max(progress.longestGap, Int((now - last) / .milliseconds(1)))
      }
      progress.last = now
    }
  }

  private func commit(_ id: String, _ client: Int) -> JSONNode {
    let root = String(ServedCluster.documents.dropFirst("/v1/".count))
    return [
      "writes": [
        ["update": ["name": .string("\(root)/made/\(id)"), "fields": [:]], "currentDocument": ["exists": false]],
        [
          "transform": [
            "document": .string("\(root)/counters/\(client)"),
            "fieldTransforms": [["fieldPath": "n", "increment": ["integerValue": "1"]]],
          ]
        ],
      ]
    ]
  }

  /// Compares the documents that a node shows with the clients' logs. Returns all contradictions.
  func problems(_ logs: [Log], at port: UInt16) throws -> [String] {
    var problems = logs.flatMap(\.problems)
    let made = try documents("made", at: port)
    let counters = try documents("counters", at: port)
    for (client, log) in logs.enumerated() {
      let own = Set(made.keys.filter { $0.hasPrefix("\(client)-") })
      let lost = log.acknowledged.subtracting(own)
      if !lost.isEmpty { problems.append("acknowledged and lost: \(lost.sorted().prefix(5))") }
      let impossible = own.intersection(log.refused)
      if !impossible.isEmpty { problems.append("refused, but done: \(impossible.sorted().prefix(5))") }
      let strange = own.subtracting(log.acknowledged).subtracting(log.unknown).subtracting(log.refused)
      if !strange.isEmpty { problems.append("nobody sent \(strange.sorted().prefix(5))") }
      let count = Int(counters["\(client)"]?["fields"]?["n"]?["integerValue"]?.stringValue ?? "0")
      if count != own.count {
        problems.append("client \(client): \(own.count) documents, but \(count ?? -1) increments")
      }
    }
    return problems
  }

  private func documents(_ collection: String, at port: UInt16) throws -> [String: JSONNode] {
    let client = TestHTTPClient(port: port, timeoutSeconds: 30)
    var found: [String: JSONNode] = [:]
    var token: String?
    repeat {
      let next = token.flatMap { $0.addingPercentEncoding(withAllowedCharacters: .alphanumerics) }
      let query = "pageSize=300" + (next.map { "&pageToken=\($0)" } ?? "")
      let response = try client.send("GET", "\(ServedCluster.documents)/\(collection)?\(query)")
      guard response.status == 200 else {
        throw ServerProcessError(description: "\(response.status) \(response.text)")
      }
      let page = try JSONNode(parsing: response.body)
      for document in page["documents"]?.elements ?? [] {
        let name = document["name"]?.stringValue ?? ""
        found[String(name.split(separator: "/").last ?? "")] = document
      }
      token = page["nextPageToken"]?.stringValue
    } while token != nil
    return found
  }
}
