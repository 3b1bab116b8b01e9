import DocumentModel
import Gateway
import GatewayCore
import Replication
import Transport

/// The requests that a node handles itself while another one owns the cluster: they read documents.
///
/// A request waits until the replica has every commit that the owner had acknowledged when the request arrived. If that
/// cannot be found out, or the request names something that only the owner has, the relay passes it to the owner.
final class FreshReads: RequestHandler {
  private let followed: FollowedProject
  private let gate: LogFollower
  private let relay: Relay
  private let project: String
  private let replica: Replica
  private let lines: LoopParts<IndexLine>
  private let waiting = LoopParts<WaitingReads>()

  /// Creates a handler. `lines` are the ways to the owner, which outlast it.
  init(
    _ followed: FollowedProject, _ gate: LogFollower, _ relay: Relay, _ lines: LoopParts<IndexLine>, project: String,
    _ replica: Replica
  ) {
    self.followed = followed
    self.gate = gate
    self.relay = relay
    self.lines = lines
    self.project = project
    self.replica = replica
  }

  /// The handler of requests for channels that are open at this node.
  var channels: (any RequestHandler)? { followed.requests }

  /// Returns the handler of a request, or `nil` if the owner must handle it.
  func handler(of request: borrowing HTTPRequest) -> (any RequestHandler)? {
    switch HTTPGateway.anyNodeRequests.form(of: request) {
    case nil: nil
    case .whole: self
    // The targets of a stream wait one by one.
    case .stream: isReadable(request) ? followed.requests : nil
    }
  }

  /// Whether the request reads a database that the replica has.
  private func isReadable(_ request: borrowing HTTPRequest) -> Bool {
    guard let database = HTTPGateway.databaseRead(by: request, of: project) else { return false }
    let name = database == DatabaseID.defaultDatabase ? Self.usual : StoreName(database: database)
    return name.map { replica.loggedStore($0) != nil } ?? false
  }

  /// The store that most requests read.
  private static let usual = StoreName(database: DatabaseID.defaultDatabase)

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    guard isReadable(request), let held = HeldRequest(request, exchange) else {
      exchange.chosen = relay
      return relay.handle(request, exchange)
    }
    waitingReads(of: exchange.loop).append(held)
  }

  private func waitingReads(of loop: EventLoop) -> WaitingReads {
    if let found = waiting[loop] { return found }
    let line = lines[loop] ?? IndexLine(relay, on: loop)
    lines[loop] = line
    let made = WaitingReads(gate, line, on: loop) { [followed, relay] isNewest in
      // The stack of this moment has the configuration that the owner had when it answered.
      guard isNewest, let requests = followed.requests else { return relay }
      return requests
    }
    waiting[loop] = made
    return made
  }
}
