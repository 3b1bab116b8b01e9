import Gateway
import GatewayCore
import Replication
import Synchronization
import Transport

/// Passes the requests that a node of a cluster receives to the project's stack if this node owns the cluster. Otherwise the
/// node reads documents itself, and everything else goes to the owner. Health checks are answered by each node itself.
///
/// An owner whose lease is over may have been replaced without knowing it. Requests wait then, as for another node.
final class ClusterDoor: RequestHandler {
  private let relay: Relay
  private let channels: ChannelRelays
  private let operations: RequestDispatcher
  private let isDetoured: @Sendable () -> Bool
  private let parts = Mutex(Parts())

  private struct Parts {
    var owned: StackRequests?
    /// The lease without which `owned` gets no requests.
    var lease: EpochLease?

    /// The handler of requests that only the owner answers, if this node is the owner now.
    var ownedNow: StackRequests? { lease?.holds == true ? owned : nil }

    var reads: FreshReads?
    /// Serves the log to other nodes.
    var log: LogStreamHandler?
    /// Answers other nodes how far the log is.
    var index: ReadIndexHandler?
    /// Tells operators about the content of this node's replica.
    var digest: DigestHandler?
    /// Tells other nodes whether this one reaches the owner.
    var detour: DetourHandler?
    /// The number of this node.
    var node: UInt16 = 0
  }

  /// Creates a door that relays everything but `operations`: `/healthz` and `/readyz`. `isDetoured` returns whether this node does
  /// not reach the owner, and another one passes its requests on.
  init(
    _ relay: Relay, _ channels: ChannelRelays, operations: RequestDispatcher,
    isDetoured: @escaping @Sendable () -> Bool
  ) {
    self.isDetoured = isDetoured
    self.relay = relay
    self.channels = channels
    self.operations = operations
  }

  /// Sets the handler of requests while this node owns the cluster by a lease.
  func serve(_ requests: StackRequests, by lease: EpochLease?) {
    parts.withLock { ($0.owned, $0.lease) = (requests, lease) }
  }

  /// Notes that another node owns the cluster.
  func serveNothing() { parts.withLock { ($0.owned, $0.lease) = (nil, nil) } }

  /// Sets the handler of reads while another node owns the cluster, or `nil` if this node cannot read.
  func read(_ reads: FreshReads?) { parts.withLock { $0.reads = reads } }

  /// Sets the handlers of the nodes that follow the log, and the number of this node.
  func join(
    _ log: LogStreamHandler, _ index: ReadIndexHandler, _ digest: DigestHandler, _ detour: DetourHandler, node: UInt16
  ) {
    parts.withLock { ($0.log, $0.index, $0.digest, $0.detour, $0.node) = (log, index, digest, detour, node) }
  }

  /// The handler of the requests of operators, if this node is the owner now.
  var console: StackRequests? { parts.withLock { $0.ownedNow }?.console }

  /// Whether this node is the owner now, and serves requests.
  var isOwner: Bool { parts.withLock { $0.ownedNow != nil } }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    let handler = exchange.chosen ?? choose(request)
    exchange.chosen = handler
    handler.handle(request, exchange)
  }

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    let handler = choose(request)
    exchange.chosen = handler
    return handler.openBody(of: request, exchange)
  }

  private func choose(_ request: borrowing HTTPRequest) -> any RequestHandler {
    if !request.isRelayed, Self.isOperation(request) { return operations }
    let parts = parts.withLock { $0 }
    if request.isFromNode {
      if request.target.elementsEqual(ReadIndexHandler.path.utf8) { return parts.index ?? relay }
      if request.target.pathAndQuery.path.elementsEqual(DigestMessage.path.utf8) { return parts.digest ?? relay }
      if request.target.elementsEqual(DetourHandler.path.utf8) { return parts.detour ?? relay }
      return parts.log ?? relay
    }
    // The relay refuses what another node relayed to one that is not the owner.
    if request.isForConsole { return parts.ownedNow?.console ?? relay }
    if let node = HTTPGateway.nodeOfChannel(in: request) { return handler(ofChannelAt: node, request, parts) }
    if let owned = parts.ownedNow { return owned }
    // A relay refuses requests that another node relayed: their node must look for the owner again.
    guard let reads = parts.reads, !request.isRelayed else { return relay }
    return reads.handler(of: request) ?? relay
  }

  /// Returns the handler of a request for an open channel. A node without the channel responds that it is unknown.
  private func handler(
    ofChannelAt node: UInt16, _ request: borrowing HTTPRequest, _ parts: Parts
  ) -> any RequestHandler {
    if node != parts.node {
      if isDetoured() { return relay }
      if !request.isRelayed || request.mayPassOn, let relay = channels.relay(to: node) { return relay }
    }
    return parts.owned ?? parts.reads?.channels ?? relay
  }

  private static func isOperation(_ request: borrowing HTTPRequest) -> Bool {
    let path = request.target.pathAndQuery.path
    return path.elementsEqual("/healthz".utf8) || path.elementsEqual("/readyz".utf8)
  }
}
