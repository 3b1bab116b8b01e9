import Glibc

/// What a server listens on and every bound it keeps. The defaults suit a server that faces the open network.
package struct TransportConfiguration: Sendable {
  /// A name or a numeric address of this machine. A name with several addresses uses its first IPv4 one.
  package var host = "127.0.0.1"
  /// 0 picks a free port.
  package var port = 8080
  /// A socket that listens already, such as systemd gives one, to be used in place of `host` and `port`; `start` takes
  /// it over.
  package var listeningSocket: Int32?
  /// The certificate to speak TLS with; `nil` speaks without.
  package var tls: TLSConfiguration?
  /// Event loops, each on a thread of its own; at least 1. Default: one per core.
  package var loops = max(1, Int(sysconf(Int32(_SC_NPROCESSORS_ONLN))))
  /// Connections waiting to be accepted before the kernel refuses more.
  package var backlog = 4096

  /// Request line and header fields together; more is answered 431. At most 80 KiB, the parser's own bound.
  package var headerBytesMax = 64 * 1024
  /// Header fields of one request; more is answered 431.
  package var headerFieldsMax = 256
  /// The request target; more is answered 414.
  package var targetBytesMax = 16 * 1024
  /// One request body, decoded; more is answered 413, from `Content-Length` alone where there is one.
  package var bodyBytesMax = 11 * 1024 * 1024
  /// Bytes of all half-received large requests of the server; a request that would pass it is answered 503.
  package var bufferedBytesMax = 1024 * 1024 * 1024
  /// Open connections. Policy when full: a further one is accepted, told 503 and closed.
  package var connectionsMax = 65_536
  /// Bytes of pipelined requests kept while an earlier one is being answered; then reading pauses.
  package var pipelinedBytesMax = 64 * 1024

  /// Requests that one HTTP/2 connection may have under way; a further one is refused, and its client tries again.
  package var streamsMax = 256

  /// A connection between requests is closed after this long.
  package var idleSeconds = 75
  /// The same for HTTP/2, whose clients keep one connection for long.
  package var http2IdleSeconds = 300
  /// An HTTP/2 client that has requests under way and was silent for this long is sent a PING…
  package var pingSeconds = 60
  /// …and is disconnected if it stays silent for this much longer.
  package var pingTimeoutSeconds = 20
  /// A TLS handshake must be done within this long.
  package var handshakeSeconds = 15
  /// The whole head must arrive within this long of its first byte, else 408.
  package var headerSeconds = 15
  /// A body that makes no progress for this long is answered 408.
  package var bodySeconds = 30
  /// A client that takes no byte of a reply for this long is disconnected.
  package var writeStallSeconds = 30
  /// A client whose machine acknowledges nothing that it was sent for this long has vanished, and is disconnected.
  package var vanishedSeconds = 60
  /// The same for one stream of an HTTP/2 connection whose client reads on: it may be slow to use what it got. As long
  /// as Firestore's clients let a query take.
  package var streamStallSeconds = 300
  /// A client that ended its sending side is still given the reply of a request in flight, for this long.
  package var halfCloseSeconds = 10
  /// After the last reply, how long the client is given to close first, so that it can read that reply.
  package var lingerSeconds = 1

  /// Makes the JSON body of a reply the transport itself gives (400, 408, 413, …) from the status and a message.
  package var errorBody: @Sendable (_ status: Int, _ message: String) -> [UInt8] = defaultErrorBody

  /// Where the loops count, one set for each of `loops`; the server makes its own where there is none.
  package var counters: TransportCounters?
  /// Who is told of requests; `nil` for nobody.
  package var requestLog: RequestLog?
  /// Who is told, on the loop, of requests that failed for a fault of the server's; must not wait for anything.
  package var failureLog: (@Sendable (FailedRequest) -> Void)?

  /// Where loops take the time from; `nil` is the system's monotonic clock. Tests give a clock they can move.
  package var clock: ManualClock?

  /// Creates a configuration with the defaults above.
  package init() {}

  func validate() throws(TransportError) {
    let bounds = [
      ("loops", loops), ("backlog", backlog), ("headerBytesMax", headerBytesMax),
      ("headerFieldsMax", headerFieldsMax), ("targetBytesMax", targetBytesMax), ("bodyBytesMax", bodyBytesMax),
      ("bufferedBytesMax", bufferedBytesMax), ("connectionsMax", connectionsMax),
      ("pipelinedBytesMax", pipelinedBytesMax), ("streamsMax", streamsMax), ("idleSeconds", idleSeconds),
      ("http2IdleSeconds", http2IdleSeconds), ("pingSeconds", pingSeconds),
      ("pingTimeoutSeconds", pingTimeoutSeconds), ("handshakeSeconds", handshakeSeconds),
      ("headerSeconds", headerSeconds), ("bodySeconds", bodySeconds), ("writeStallSeconds", writeStallSeconds),
      ("vanishedSeconds", vanishedSeconds), ("streamStallSeconds", streamStallSeconds), ("halfCloseSeconds", halfCloseSeconds),
      ("lingerSeconds", lingerSeconds),
    ]
    for (name, value) in bounds where value <= 0 || value > Int(Int32.max) {
      throw .invalidConfiguration(reason: "\(name) is \(value)")
    }
    if headerBytesMax > 80 * 1024 { throw .invalidConfiguration(reason: "headerBytesMax is above 80 KiB") }
  }

  /// `{"error":{"code":…,"message":"…","status":"…"}}`, with the status name that belongs to the code.
  @Sendable package static func defaultErrorBody(status: Int, message: String) -> [UInt8] {
    let name =
      switch status {
      case 408: "DEADLINE_EXCEEDED"
      case 501, 505: "UNIMPLEMENTED"
      case 503: "UNAVAILABLE"
      default: "INVALID_ARGUMENT"
      }
    return Array(#"{"error":{"code":\#(status),"message":"\#(message)","status":"\#(name)"}}"#.utf8)
  }
}
