import Basics

/// The TLS handshakes of one loop.
///
/// A handshake costs about half a millisecond and 40 KiB until it is complete, and any stranger can begin one. So
/// handshakes have a limited time in each turn of the loop, and a limited number is under way. Further connections
/// wait. The newest is served first, because the clients of the oldest have probably given up.
final class Handshakes {
  private unowned let server: LoopServer
  private let underWayMax: Int
  /// The number of connections whose handshake is under way.
  private var underWay = 0
  /// These connections in the order in which they began. Some may have ended.
  private var begun = JobQueue<Begun>()
  private var oldest: Begun?
  /// Those of them that have sent their next message.
  private var continuing = JobQueue<Connection>()
  /// The connections that have sent their first message.
  private var arriving: [Connection] = []
  /// The time that handshakes have taken in this turn.
  private var microseconds = 0
  private var isAdvancing = false

  /// A connection that is freed as soon as it is closed, although an older handshake takes long.
  private struct Begun {
    weak var connection: Connection?
  }

  init(_ server: LoopServer) {
    self.server = server
    underWayMax = max(1, server.configuration.handshakesMax / server.configuration.loops)
  }

  /// Continues the handshake of a connection that has received a message, now or later.
  func received(_ connection: Connection) {
    if connection.handshakeMilliseconds == nil {
      arriving.append(connection)
    } else {
      continuing.append(connection)
    }
    advance()
  }

  /// Removes a connection whose handshake is complete or that is closed.
  func ended(_ connection: Connection) {
    guard connection.handshakeMilliseconds != nil else { return }
    connection.handshakeMilliseconds = nil
    underWay -= 1
  }

  /// Continues handshakes that found no time during the turn.
  func turnEnded() {
    microseconds = 0
    advance()
    microseconds = 0
    // Without work for the next turn, the loop would wait for a socket.
    if canAdvance { server.loop.atNextTurn {} }
  }

  /// Forgets connections that have ended, and begins handshakes of others.
  func sweep() {
    arriving.removeAll { !$0.isOpen }
    advance()
  }

  private var canAdvance: Bool { !continuing.isEmpty || (!arriving.isEmpty && hasPlace) }

  /// Whether another handshake may begin. If too many are under way, ends the oldest one if it takes long.
  private var hasPlace: Bool {
    if oldest?.connection?.handshakeMilliseconds == nil {
      repeat { oldest = begun.popFirst() } while oldest.map { $0.connection?.handshakeMilliseconds == nil } ?? false
    }
    guard underWay >= underWayMax, let first = oldest?.connection, let since = first.handshakeMilliseconds else {
      return true
    }
    guard server.loop.nowMilliseconds - since > server.configuration.handshakeMillisecondsMin else { return false }
    first.close()
    return true
  }

  private func advance() {
    guard !isAdvancing else { return }
    isAdvancing = true
    while microseconds < LoopTime.handshakesMicrosecondsMax, let connection = next() {
      let begun = EventLoop.microseconds()
      connection.continueHandshake()
      microseconds += EventLoop.microseconds() - begun
    }
    isAdvancing = false
  }

  private func next() -> Connection? {
    while let connection = continuing.popFirst() { if connection.isOpen { return connection } }
    while !arriving.isEmpty, hasPlace, let connection = arriving.popLast() {
      guard connection.isOpen else { continue }
      connection.handshakeMilliseconds = server.loop.nowMilliseconds
      begun.append(Begun(connection: connection))
      underWay += 1
      return connection
    }
    return nil
  }
}
