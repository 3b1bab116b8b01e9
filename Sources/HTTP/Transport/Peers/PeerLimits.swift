/// The limits for the port of other nodes, in addition to those in the configuration and in ``HTTP2Limits``.
///
/// A connection of another node has the requests of many clients, so one of them must not stop the others. That is why
/// the responses that their clients do not take are counted apart, and end one by one if there are too many.
enum PeerLimits {
  /// Bytes of bodies that another node may send on one connection before the handlers take them.
  static let windowBytes = 16 * 1024 * 1024
  /// Bytes of responses that wait for another node to take them, apart from those that wait for its clients. Above this,
  /// the server starts no further requests of the connection and produces no more of the responses that have begun.
  static let connectionBytesMax = 4 * 1024 * 1024
  /// Bytes of all responses to other nodes together that wait. It is a part of the `unsentBytesMax` of the server, and the
  /// port for clients has the rest. Above this, the server ends the responses of which nothing was taken for the longest
  /// time.
  static let unsentBytesMax = 16 * 1024 * 1024
  /// Bytes of all partly received requests of other nodes together. It is a part of the `bufferedBytesMax` of the server,
  /// and the port for clients has the rest.
  static let bufferedBytesMax = 32 * 1024 * 1024
  /// The port for other nodes takes at most one part of so many.
  private static let partCount = 2

  /// The bytes that wait for other nodes, of those that may wait in the server.
  static func unsentBytes(of bytes: Int) -> Int { min(unsentBytesMax, max(1, bytes / partCount)) }

  /// The bytes of requests of other nodes, of those that the server may buffer.
  static func bufferedBytes(of bytes: Int) -> Int { min(bufferedBytesMax, max(1, bytes / partCount)) }
}

extension TransportConfiguration {
  /// Leaves a share of the memory for requests and responses to the ``NodeServer`` that was created with these limits, so that
  /// both ports together use no more than a server alone.
  package mutating func leaveShareToPeers() {
    unsentBytesMax = max(1, unsentBytesMax - PeerLimits.unsentBytes(of: unsentBytesMax))
    bufferedBytesMax = max(1, bufferedBytesMax - PeerLimits.bufferedBytes(of: bufferedBytesMax))
  }
}
