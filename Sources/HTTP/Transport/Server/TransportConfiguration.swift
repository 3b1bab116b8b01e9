import Glibc

/// The address and the limits of a server. The defaults suit a server on the public internet.
package struct TransportConfiguration: Sendable {
  /// A name or a numeric address of this machine. A name with several addresses uses its first IPv4 one.
  package var host = "127.0.0.1"
  /// 0 picks a free port.
  package var port = 8080
  /// Ports of `host` on which the server listens besides `port`.
  package var furtherPorts: [FurtherPort] = []
  /// A socket that already listens, such as one from systemd, used instead of `host` and `port`. `start` takes
  /// ownership of it.
  package var listeningSocket: Int32?
  /// The proxies whose headers about the client are trusted.
  package var trustedProxies = TrustedProxies()
  /// The certificate for TLS, or `nil` to serve plain connections.
  package var tls: TLSConfiguration?
  /// The number of event loops, each on a thread of its own; at least 1. Default: one per core.
  package var loops = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
  /// Connections that wait to be accepted; the kernel refuses more.
  package var backlog = 4096

  /// Bytes of the request line and header fields together. Above this, the server responds 431. At most 80 KiB, the
  /// parser's own limit.
  package var headerBytesMax = 64 * 1024
  /// Header fields of one request. Above this, the server responds 431.
  package var headerFieldsMax = 256
  /// Bytes of the request target (path and query). Above this, the server responds 414.
  package var targetBytesMax = 16 * 1024
  /// Bytes of one request body after decompression. Above this, the server responds 413, for a larger `Content-Length`
  /// before it reads the body. Many requests have smaller limits of their own.
  package var bodyBytesMax = 11 * 1024 * 1024
  /// Bytes of all partly received requests together. A quarter is only for the first 16 KiB of requests, so bodies have
  /// the rest. If less is free than a request needs, the server stops reading it until others end, up to
  /// `memorySeconds`, and then responds 429; over HTTP/2 at once. If no first part fits, it closes the connections whose
  /// request heads have been incomplete for the longest time.
  package var bufferedBytesMax = 80 * 1024 * 1024
  /// Bytes of all responses together that wait for their clients to take them. Above this, the server disconnects the
  /// clients that take theirs slowest.
  package var unsentBytesMax = 48 * 1024 * 1024
  /// Open connections; fewer if the process may not open as many files. Shortly before that, the server closes
  /// connections without a running request, those first that would time out first. When full, it accepts a further
  /// connection, responds 503 and closes it.
  package var connectionsMax = 65_536
  /// Bytes of further HTTP/1.1 requests that the server buffers while it handles one. Above this, it stops reading from
  /// the connection.
  package var pipelinedBytesMax = 64 * 1024

  /// The target of health checks. These requests do not wait while a loop has many others to serve.
  package var urgentTarget = Array("/healthz".utf8)

  /// Concurrent requests on one HTTP/2 connection. The server rejects further ones, and clients retry them.
  package var streamsMax = 256

  /// Seconds without a request after which the server closes an HTTP/1.1 connection.
  package var idleSeconds = 75
  /// Seconds without a request after which the server closes an HTTP/2 connection. HTTP/2 clients keep one connection
  /// for a long time.
  package var http2IdleSeconds = 300
  /// Seconds of silence before an HTTP/2 client with running requests is sent a PING.
  package var pingSeconds = 60
  /// Seconds of silence after a PING until the server disconnects the HTTP/2 client.
  package var pingTimeoutSeconds = 20
  /// Seconds until a TLS handshake must be complete.
  package var handshakeSeconds = 15
  /// TLS handshakes under way. Each takes about 40 KiB. Further connections wait, and the newest is served first.
  package var handshakesMax = 1024
  /// Milliseconds that a TLS handshake may take even if others wait.
  package var handshakeMillisecondsMin = 500
  /// Seconds from its first byte until the head of a request must be complete. After this, the server responds 408.
  package var headerSeconds = 15
  /// Seconds without progress of a body before the server responds 408.
  package var bodySeconds = 30
  /// Seconds that a request waits for memory for more of it before the server responds 429. Less than `bodySeconds`.
  package var memorySeconds = 10
  /// Seconds until a client that takes no byte of a response is disconnected.
  package var writeStallSeconds = 30
  /// Seconds until a client whose machine acknowledges no sent byte is considered gone and is disconnected.
  package var vanishedSeconds = 60
  /// Seconds until the server ends an HTTP/2 response of which the client takes no byte, while it reads other responses
  /// on the connection. Firestore's clients allow a query as much time.
  package var streamStallSeconds = 300
  /// Seconds for which a client that ended its sending side still gets the response to a running request.
  package var halfCloseSeconds = 10
  /// Seconds after the last response for which the client may close first, so that it can read that response. They
  /// begin again with each part of a body that the client still sends, up to `bodyBytesMax` and `bodySeconds`.
  package var lingerSeconds = 1

  /// Returns the JSON body of a response by the transport itself (400, 408, 413, …) for a status and a message.
  package var errorBody: @Sendable (_ status: Int, _ message: String) -> [UInt8] = defaultErrorBody

  /// The counters, one set for each of `loops`. If `nil`, the server creates its own.
  package var counters: TransportCounters?
  /// The request log, or `nil` to log no requests.
  package var requestLog: RequestLog?
  /// Called on the loop with each request that failed because of an error of the server itself. Must not block.
  package var failureLog: (@Sendable (FailedRequest) -> Void)?

  /// The clock of the loops, or `nil` for the system's monotonic clock. Tests use a clock that they can move.
  package var clock: ManualClock?

  /// Creates a configuration with the defaults above.
  package init() {}

  /// A port on which a server listens besides its own.
  package struct FurtherPort: Sendable, Equatable {
    /// 0 picks a free port.
    package var port: Int
    /// Whether the server does not start if it cannot listen there.
    package var isRequired: Bool

    package init(_ port: Int, isRequired: Bool) {
      self.port = port
      self.isRequired = isRequired
    }
  }

  func validate() throws(TransportError) {
    let bounds = [
      ("loops", loops), ("backlog", backlog), ("headerBytesMax", headerBytesMax),
      ("headerFieldsMax", headerFieldsMax), ("targetBytesMax", targetBytesMax), ("bodyBytesMax", bodyBytesMax),
      ("bufferedBytesMax", bufferedBytesMax), ("unsentBytesMax", unsentBytesMax), ("connectionsMax", connectionsMax),
      ("pipelinedBytesMax", pipelinedBytesMax), ("streamsMax", streamsMax), ("idleSeconds", idleSeconds),
      ("http2IdleSeconds", http2IdleSeconds), ("pingSeconds", pingSeconds),
      ("pingTimeoutSeconds", pingTimeoutSeconds), ("handshakeSeconds", handshakeSeconds),
      ("handshakesMax", handshakesMax), ("handshakeMillisecondsMin", handshakeMillisecondsMin),
      ("headerSeconds", headerSeconds), ("bodySeconds", bodySeconds), ("memorySeconds", memorySeconds),
      ("writeStallSeconds", writeStallSeconds),
      ("vanishedSeconds", vanishedSeconds), ("streamStallSeconds", streamStallSeconds),
      ("halfCloseSeconds", halfCloseSeconds),
      ("lingerSeconds", lingerSeconds),
    ]
    for (name, value) in bounds where value <= 0 || value > Int(Int32.max) {
      throw .invalidConfiguration(reason: "\(name) is \(value)")
    }
    if headerBytesMax > 80 * 1024 { throw .invalidConfiguration(reason: "headerBytesMax is above 80 KiB") }
  }

  /// Returns `{"error":{"code":…,"message":"…","status":"…"}}`, with the status name that belongs to the code.
  @Sendable package static func defaultErrorBody(status: Int, message: String) -> [UInt8] {
    let name =
      switch status {
      case 500: "INTERNAL"
      case 408: "DEADLINE_EXCEEDED"
      case 429: "RESOURCE_EXHAUSTED"
      case 501, 505: "UNIMPLEMENTED"
      case 503: "UNAVAILABLE"
      default: "INVALID_ARGUMENT"
      }
    return Array(#"{"error":{"code":\#(status),"message":"\#(message)","status":"\#(name)"}}"#.utf8)
  }
}
