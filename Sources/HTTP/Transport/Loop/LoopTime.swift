/// The time that the parts of one turn of a loop may take, in microseconds of the loop's thread.
///
/// A turn first serves the sockets that are ready. Requests and responses beyond their time wait, and get their own
/// time at the end of the turn. So a new connection waits for a few turns, however much work has piled up. An item of
/// work that is already running is never interrupted.
enum LoopTime {
  /// New requests of the sockets that are ready. Requests beyond it wait for the end of the turn.
  static let requestsMicrosecondsMax = 10_000
  /// The time since the sockets were polled after which responses wait for the end of the turn.
  static let responsesMicrosecondsMax = 5_000
  /// TLS handshakes of the sockets that are ready, and again as much for those that wait.
  static let handshakesMicrosecondsMax = 2_000
  /// Requests that wait, and again as much for responses and other work that wait.
  static let waitingMicrosecondsMax = 5_000
  /// One connection's requests or response, when it has its turn. At least one request or one slice is served.
  static let itemMicrosecondsMax = 1_000
}
