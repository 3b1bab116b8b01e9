import Foundation
import Synchronization
import TestSupport

/// Clients that increment counters at random nodes of a cluster, and read them at others.
///
/// A read that begins after an increment was acknowledged, or after another read ended, shows at least their value: whatever
/// nodes they used. So the reads of all nodes together are those of one database.
struct ClusterReads: Sendable {
  private static let counterCount = 4
  private static let clientCount = 4

  private let ports: [UInt16]
  /// The greatest value of each counter that was acknowledged or read.
  private let known = Observed(Array(repeating: 0, count: counterCount))
  /// The numbers of reads that were answered, by node.
  let reads: Observed<[Int]>
  private let isStopped = Observed(false)

  init(_ ports: [UInt16]) {
    self.ports = ports
    reads = Observed(Array(repeating: 0, count: ports.count))
  }

  /// Starts the clients. The returned function waits until all have ended, and returns what was wrong.
  func start() -> () -> [String] {
    let wait = startThreads(Self.clientCount) { run($0) }
    return { wait().flatMap { $0 } }
  }

  /// Ends the clients.
  func stop() { isStopped.update { $0 = true } }

  private func run(_ client: Int) -> [String] {
    var random = SplitMix(seed: UInt64(client))
    var problems: [String] = []
    var connections = ports.map { TestHTTPClient(port: $0, timeoutSeconds: 30) }
    while !isStopped.value, problems.count < 10 {
      let counter = Int.random(in: 0..<Self.counterCount, using: &random)
      let node = ports.indices.randomElement(using: &random) ?? 0
      let before = known.value[counter]
      do {
        let value: Int?
        let isRead = Int.random(in: 0..<4, using: &random) > 0
        if isRead {
          value = try read(counter, connections[node], byQuery: random.chance(oneIn: 2))
          if value != nil { reads.update { $0[node] += 1 } }
        } else {
          value = try increment(counter, connections[node])
        }
        guard let value else { continue }
        if value < before { problems.append("node \(node + 1) shows \(value) after \(before) (read: \(isRead))") }
        known.update { $0[counter] = max($0[counter], value) }
      } catch {
        // Its node was killed.
        connections[node] = TestHTTPClient(port: ports[node], timeoutSeconds: 30)
      }
    }
    return problems
  }

  /// Returns the value after an increment, or `nil` if it was not acknowledged.
  private func increment(_ counter: Int, _ connection: TestHTTPClient) throws -> Int? {
    let root = String(ServedCluster.documents.dropFirst("/v1/".count))
    let request: JSONNode = [
      "writes": [
        [
          "transform": [
            "document": .string("\(root)/shared/\(counter)"),
            "fieldTransforms": [["fieldPath": "n", "increment": ["integerValue": "1"]]],
          ]
        ]
      ]
    ]
    let response = try connection.send(
      "POST", "\(ServedCluster.documents):commit", headers: [("Content-Type", "application/json")],
      body: Array(request.text.utf8))
    guard response.status == 200 else { return nil }
    let result = try JSONNode(parsing: response.body)["writeResults"]?.elements.first?["transformResults"]
    return result?.elements.first?["integerValue"]?.stringValue.flatMap { Int($0) }
  }

  /// Returns the value of a counter, or `nil` if the read failed.
  private func read(_ counter: Int, _ connection: TestHTTPClient, byQuery: Bool) throws -> Int? {
    let fields: JSONNode?
    if byQuery {
      let query: JSONNode = ["structuredQuery": ["from": [["collectionId": "shared"]]]]
      let response = try connection.send(
        "POST", "\(ServedCluster.documents):runQuery", headers: [("Content-Type", "application/json")],
        body: Array(query.text.utf8))
      guard response.status == 200 else { return nil }
      let found = try JSONNode(parsing: response.body).elements.compactMap { $0["document"] }
      fields = found.first { $0["name"]?.stringValue?.hasSuffix("/\(counter)") ?? false }?["fields"]
    } else {
      let response = try connection.send("GET", "\(ServedCluster.documents)/shared/\(counter)")
      guard response.status == 200 || response.status == 404 else { return nil }
      fields = try JSONNode(parsing: response.body)["fields"]
    }
    return fields?["n"]?["integerValue"]?.stringValue.flatMap { Int($0) } ?? 0
  }
}
