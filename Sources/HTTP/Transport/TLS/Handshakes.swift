import Basics

/// The TLS handshakes of one loop.
///
/// A handshake costs about half a millisecond and 40 KiB until it is complete, and any stranger can begin one. So
/// handshakes have a limited time in each turn of the loop, and a limited number is under way. Further connections
/// wait. The newest is served first, because the clients of the oldest have probably given up.
final class Handshakes {
  private unowned let server: LoopServer
  private let underWayMax: Int
  /// The connections whose handshake has begun.
  private var underWay: [Connection] = []
  /// Those of them that have sent their next message.
  private var continuing = JobQueue<Connection>()
  /// The connections that have sent their first message.
  private var arriving: [Connection] = []
  /// The time that handshakes have taken in this turn.
  private var microseconds = 0
  private var isAdvancing = false

  init(_ server: LoopServer) {
    self.server = server
    underWayMax = max(1, server.configuration.handshakesMax / server.configuration.loops)
  }

  /// Continues the handshake of a connection that has received a message, now or later.
  func received(_ connection: Connection) {
    if connection.handshake == nil {
      arriving.append(connection)
    } else {
      continuing.append(connection)
    }
    advance()
  }

  /// Removes a connection whose handshake is complete or that is closed.
  func ended(_ connection: Connection) {
    guard let place = connection.handshake else { return }
    connection.handshake = nil
    let last = underWay.removeLast()
    if last !== connection {
      underWay[place.index] = last
      last.handshake?.index = place.index
    }
  }

  /// Continues handshakes that found no time during the turn.
  func turnEnded() {
    microseconds = 0
    advance()
    microseconds = 0
    // Without work for the next turn, the loop would wait for a socket.
    if canAdvance { server.loop.atNextTurn {} }
  }

  /// If connections wait, ends the handshakes that take long.
  func sweep(_ now: Int) {
    arriving.removeAll { !$0.isOpen }
    guard !arriving.isEmpty, underWay.count >= underWayMax else { return }
    let begunBefore = now - server.configuration.handshakeGraceSeconds * 1000
    for connection in underWay.filter({ ($0.handshake?.begunMilliseconds ?? now) < begunBefore }) {
      connection.close()
    }
    advance()
  }

  private var canAdvance: Bool { !continuing.isEmpty || (!arriving.isEmpty && underWay.count < underWayMax) }

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
    while underWay.count < underWayMax, let connection = arriving.popLast() {
      guard connection.isOpen else { continue }
      connection.handshake = Place(index: underWay.count, begunMilliseconds: server.loop.nowMilliseconds)
      underWay.append(connection)
      return connection
    }
    return nil
  }

  /// The place of a connection among those under way, and the time at which its handshake began.
  struct Place {
    var index: Int
    let begunMilliseconds: Int
  }
}
