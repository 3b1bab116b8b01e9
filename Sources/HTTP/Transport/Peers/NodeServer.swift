/// A server for the other nodes of a cluster: HTTP/2 over TLS 1.3 with the cluster's key. Runs once: `start`, then
/// `stop`.
///
/// A request arrives there as its first client's: ``HTTPRequest/remoteAddress``, ``HTTPRequest/isFromProxy``,
/// ``HTTPRequest/isFromAdminSocket`` and ``HTTPRequest/version`` are those that the other node found. A handler responds
/// with ``Exchange/refuseAsNotOwner()`` if this node cannot handle it.
package final class NodeServer: Sendable {
  private let server: HTTPServer

  /// Creates a server. It does not listen before `start`.
  ///
  /// - Parameters:
  ///   - host: a name or a numeric address of this machine.
  ///   - port: the port, or 0 for a free one.
  ///   - limits: the limits and the logs of the server for clients. Its addresses and its certificate are ignored. This
  ///     server takes a share of the memory; see ``TransportConfiguration/leaveShareToPeers()``.
  /// - Throws: ``TransportError/invalidConfiguration(reason:)`` if a limit is out of range,
  ///   ``TransportError/resourceExhausted(what:reason:)`` if memory is exhausted.
  package init(
    key: NodeKey, host: String, port: Int, limits: TransportConfiguration, handler: any RequestHandler
  ) throws(TransportError) {
    var configuration = limits
    configuration.host = host
    configuration.port = port
    configuration.furtherPorts = []
    configuration.listeningSocket = nil
    configuration.tls = nil
    configuration.counters = nil
    // Every loop of every other node has one connection, and sometimes an older one.
    configuration.connectionsMax = min(limits.connectionsMax, 1024)
    configuration.streamsMax = 16 * 1024
    configuration.unsentBytesMax = PeerLimits.unsentBytes(of: limits.unsentBytesMax)
    configuration.bufferedBytesMax = PeerLimits.bufferedBytes(of: limits.bufferedBytesMax)
    // HTTP/2 counts 32 bytes more for each field, and the envelope has some.
    configuration.headerBytesMax = min(80 * 1024, limits.headerBytesMax + 16 * 1024)
    configuration.headerFieldsMax = limits.headerFieldsMax + 8
    configuration.http2IdleSeconds = 3600
    configuration.handshakeSeconds = min(limits.handshakeSeconds, 5)
    configuration.pingSeconds = 2
    configuration.pingTimeoutSeconds = 4
    server = try HTTPServer(configuration: configuration, handler: handler, credentials: try TLSCredentials(key))
  }

  /// Binds the address, starts the loops and accepts connections.
  ///
  /// - Returns: the numeric address, with the port that the system chose if the port is 0.
  /// - Throws: ``TransportError`` if the address cannot be bound, the process is out of resources, or the server was
  ///   started before.
  package func start() throws(TransportError) -> NodeAddress {
    let (host, port) = try server.start()
    return NodeAddress(host: host, port: port)
  }

  /// Stops the server as `HTTPServer.stop` does. Blocks until this is done. Never call it on a loop.
  package func stop(graceSeconds: Int) { server.stop(graceSeconds: graceSeconds) }

  /// The number of open connections of other nodes.
  package var openConnections: Int { server.openConnections }

  /// Ends the running requests whose ``Exchange/chosen`` handler matches, as `HTTPServer.cancelRequests` does.
  package func cancelRequests(where isCanceled: @escaping @Sendable (any RequestHandler) -> Bool) {
    server.cancelRequests(where: isCanceled)
  }
}
