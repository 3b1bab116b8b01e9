/// The first session of a connection. Reads the first bytes, which show whether the client uses HTTP/1 or HTTP/2.
final class PrefaceSession: ConnectionSession {
  /// The first bytes of every HTTP/2 client.
  private static let preface: StaticString = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

  /// Milliseconds that a drain waits for the first request of a connection.
  private static let drainMilliseconds = 500

  private unowned let connection: Connection

  init(_ connection: Connection) {
    self.connection = connection
  }

  var expectedBytes: Int? { nil }
  var isIdle: Bool { true }

  func received() {
    guard let bytes = connection.input.bytes, !connection.input.isEmpty else { return }
    let known = min(connection.input.count, Self.preface.utf8CodeUnitCount)
    for index in 0..<known where bytes.load(fromByteOffset: index, as: UInt8.self) != Self.preface.utf8Start[index] {
      return connection.speak(.http1)
    }
    if known == Self.preface.utf8CodeUnitCount {
      connection.speak(.http2)
    } else {
      let configuration = connection.server.configuration
      connection.deadline = connection.server.loop.nowMilliseconds + configuration.headerSeconds * 1000
    }
  }

  func outputDrained() {}
  func closed() {}
  func cancelRequests(where isCanceled: (any RequestHandler) -> Bool) {}
  func inputRefused() { connection.close() }
  func deadlinePassed() { connection.close() }

  /// A client that just connected is about to send a request and does not know that the server stops. Wait for it
  /// briefly.
  func drain() {
    let moment = connection.server.loop.nowMilliseconds + Self.drainMilliseconds
    connection.deadline = min(connection.deadline, moment)
  }

  // The received bytes are too few for a request.
  func peerEnded() { connection.close() }
}
