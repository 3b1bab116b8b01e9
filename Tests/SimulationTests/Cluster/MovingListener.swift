import DatabaseService
import DocumentModel
import QueryEngine
import TestSupport
import Watch

/// A listener that connects to any node of a ``SimulatedCluster``, breaks off, and resumes at another one.
final class MovingListener {
  private static let target: Int32 = 2

  private let number: Int
  private unowned let cluster: SimulatedCluster
  private var client: ListeningClient?
  private var node: SimulatedNode?
  /// The service to which it is connected.
  private var services = 0
  private var life = 0
  private var isAtOwner = false
  /// The documents and the token of the last snapshot, and its version.
  private var known: (documents: [ResourcePath: Int64], token: [UInt8], version: Int64)?
  /// The newest version that a client knew when the target was added, until the first snapshot.
  private var added: Int64?
  private var onSnapshot: (Bool) -> Void = { _ in }

  init(_ number: Int, _ cluster: SimulatedCluster) {
    self.number = number
    self.cluster = cluster
  }

  /// Connects to some node that has a service, if it is not connected.
  func connect(noting onSnapshot: @escaping (Bool) -> Void) throws {
    self.onSnapshot = onSnapshot
    if let node, client != nil {
      guard node.life != life || node.services != services else { return }
      // Its server is gone, or is going to end the stream.
      breakOff()
    }
    let ready = cluster.nodes.filter { $0.service != nil && !$0.isPaused }
    guard let node = ready.randomElement(using: &cluster.random), let service = node.service else { return }
    (self.node, services, life, isAtOwner) = (node, node.services, node.life, node.owned != nil)
    let client = try ListeningClient(service)
    client.onSnapshot = { [unowned self] in try check($0) }
    added = cluster.witness.acknowledged
    if let known { client.expect(known.documents, of: Self.target) }
    do { try client.add(Self.target, selection, from: known?.token) } catch {
      return try ClusterClients.expectUnavailable(error)
    }
    self.client = client
  }

  /// The first listener follows documents, the others the collection.
  private var selection: ListenTarget.Selection {
    number == 0 ? .documents([document("c/a").path, document("c/b").path]) : .query(SimulatedCluster.query)
  }

  /// Reads events that are there.
  func pull(eventsMax: Int? = nil) throws {
    guard let client, let node, !node.isPaused, node.life == life else { return }
    do { try client.pull(eventsMax: eventsMax ?? Int.random(in: 1...20, using: &cluster.random)) } catch {
      try ClusterClients.expectUnavailable(error)
      breakOff()
    }
    // An application would give up its listener.
    if let cause = client.causes[Self.target] { throw Difference("listener \(number) lost its target: \(cause)") }
  }

  func breakOff() {
    client?.stream.end()
    client = nil
  }

  private func check(_ client: ListeningClient) throws {
    guard let snapshot = client.snapshot, let state = client.states[Self.target], state.isCurrent else { return }
    let version = snapshot.version
    if let known, version < known.version {
      throw Difference("listener \(number) has seen \(known.version), and gets a snapshot at \(version)")
    }
    if let added, version < added {
      throw Difference(
        "listener \(number) at \(isAtOwner ? "the owner" : "a follower") gets a snapshot at \(version), but \(added) "
          + "was acknowledged before: \(client.events)")
    }
    added = nil
    let expected = documents(at: version)
    guard state.documents == expected else {
      throw Difference("listener \(number) at \(version) has \(state.documents), not \(expected)")
    }
    known = (state.documents, snapshot.token, version)
    onSnapshot(isAtOwner)
  }

  private func documents(at version: Int64) -> [ResourcePath: Int64] {
    let all = cluster.witness.documents(at: version)
    guard case .documents(let paths) = selection else { return all }
    return all.filter { paths.contains($0.key) }
  }

  /// Whether the documents are those at a version.
  func isCurrent(at version: Int64) -> Bool { client != nil && known?.documents == documents(at: version) }

  var state: String { "\(known?.version ?? 0)" + (client == nil ? " (not connected)" : "") }
}
