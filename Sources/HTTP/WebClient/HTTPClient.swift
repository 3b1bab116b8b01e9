import CCurl
import Glibc

/// A blocking HTTP client for one server, with TLS and kept connections, over libcurl. For tools and tests, not for
/// servers.
///
/// Certificates are always verified. The client follows no redirect, stores no cookie, and ignores the proxies of the
/// environment. Use it from one thread at a time.
package final class HTTPClient {
  /// The response to a request.
  package struct Response: Sendable {
    package internal(set) var status = 0
    /// The header fields in order, with lower-case names, including the trailers of the body.
    package internal(set) var headers: [(name: String, value: String)] = []
    /// The complete body, or an empty one if the body is read in pieces.
    package internal(set) var body: [UInt8] = []

    /// Returns the first value of the field with this lower-case name, or `nil` if it is missing.
    package func header(_ lowercasedName: String) -> String? { headers.first { $0.name == lowercasedName }?.value }
  }

  /// The settings of a client.
  package struct Options: Sendable {
    /// The time for the connection, including the search for the address and the TLS handshake.
    package var connectMilliseconds = 5_000
    /// The time without a byte in either direction after which a request fails.
    package var stallMilliseconds = 60_000
    /// The time after which a request fails, including the connection, or `nil` for no limit.
    package var totalMilliseconds: Int?
    /// The maximum size of a response body that is returned as a whole.
    package var bodyBytesMax = 64 << 20
    /// A PEM file with certificates of authorities to trust besides those in the system's directory.
    package var authoritiesFile: String?
    /// The Unix socket to connect to instead of the host and the port, which then only name the server.
    package var unixSocket: UnixSocket?
    /// The server as errors show it, or `nil` for its URL or the path of its socket.
    package var name: String?
    /// Whether to use HTTP/2 if the server offers it. Only with TLS.
    package var usesHTTP2 = false
    /// Whether to send a request again if the server has closed the kept connection meanwhile. Never applies to POST
    /// and to bodies in pieces.
    package var repeatsRequests = true

    /// Creates options with the defaults above.
    package init() {}
  }

  /// A Unix socket of this machine.
  package struct UnixSocket: Sendable {
    /// The path for the system, of at most 107 bytes.
    package var path: String
    /// The path for messages.
    package var name: String

    /// Creates a name for a socket.
    package init(path: String, name: String) { (self.path, self.name) = (path, name) }
  }

  /// The name of the server, its URL, or the path of its socket, as errors show it.
  package let address: String
  /// The server's URL.
  let url: String
  /// Whether the client uses TLS.
  package let isSecure: Bool
  /// Ends this client's requests from other threads.
  package let cancellation = HTTPCancellation()
  let host: String
  let options: Options
  /// libcurl's handle with the kept connections, once the first request was sent.
  private var multi: UnsafeMutableRawPointer?
  private var transfer: Transfer?

  /// Creates a client. It connects with the first request.
  package init(host: String, port: Int, isSecure: Bool = false, options: Options = Options()) {
    self.host = host
    self.isSecure = isSecure
    self.options = options
    url = "\(isSecure ? "https" : "http")://\(host.contains(":") ? "[\(host)]" : host):\(port)"
    address = options.name ?? options.unixSocket?.name ?? url
  }

  deinit {
    end()
    cancellation.watch(nil)
    if let multi { hearth_curl_multi_cleanup(multi) }
  }

  /// Sends a request and waits for the complete response.
  /// - Parameters:
  ///   - target: the path and query, already escaped.
  ///   - headers: fields besides `Host` and `Content-Length`, without line breaks in names and values.
  /// - Throws: ``HTTPClientError`` if no complete response arrives. The connection is then closed.
  package func send(
    _ method: String, _ target: String, headers: [(name: String, value: String)] = [], body: [UInt8]? = nil
  ) throws(HTTPClientError) -> Response {
    try whole(begin(Request(method: method, target: target, headers: headers, body: body.map { .bytes($0) })))
  }

  /// Sends a request whose body `next` provides in pieces, and waits for the complete response. Uses memory for one
  /// piece.
  ///
  /// `next` returns the next bytes, or none if it cannot continue. If the server responds with an error early, as it
  /// does to reject an upload, the client does not send the rest.
  /// - Throws: ``HTTPClientError`` if no complete response arrives, or if `next` ends before `bodyBytes`. The
  ///   connection is then closed.
  package func upload(
    _ method: String, _ target: String, headers: [(name: String, value: String)] = [], bodyBytes: Int,
    _ next: () -> [UInt8]
  ) throws(HTTPClientError) -> Response {
    try withoutActuallyEscaping(next) { (next) throws(HTTPClientError) in
      // The transfer refers to `next` and must not outlive this call.
      defer { end() }
      return try whole(
        begin(Request(method: method, target: target, headers: headers, body: .pieces(bodyBytes, next))))
    }
  }

  /// Sends a request and passes each piece of the response's body to `take` as it arrives, with the status. Uses
  /// memory for one piece, at most about 2 MB.
  ///
  /// `take` returns whether to continue. If it returns `false`, the client closes the connection and discards the
  /// rest of the response. `take` is not called for a response without a body.
  /// - Returns: the response without its body.
  /// - Throws: ``HTTPClientError`` if no complete response arrives. The connection is then closed.
  package func stream(
    _ method: String, _ target: String, headers: [(name: String, value: String)] = [], body: [UInt8]? = nil,
    _ take: (_ status: Int, _ piece: [UInt8]) -> Bool
  ) throws(HTTPClientError) -> Response {
    let response = try open(method, target, headers: headers, body: body)
    while let piece = try read() {
      if !take(response.status, piece) {
        end()
        break
      }
    }
    return response
  }

  /// Sends a request and waits for the head of the response. ``read()`` returns the pieces of its body.
  /// - Returns: the response without its body.
  /// - Throws: ``HTTPClientError`` if no response arrives. The connection is then closed.
  package func open(
    _ method: String, _ target: String, headers: [(name: String, value: String)] = [], body: [UInt8]? = nil
  ) throws(HTTPClientError) -> Response {
    let transfer = try begin(Request(method: method, target: target, headers: headers, body: body.map { .bytes($0) }))
    try run(transfer) { $0.hasHead }
    var head = transfer.response
    head.body = []
    return head
  }

  /// Waits for the next piece of the body that ``open(_:_:headers:body:)`` began. Returns `nil` at its end.
  /// - Throws: ``HTTPClientError`` if the response breaks off. The connection is then closed.
  package func read() throws(HTTPClientError) -> [UInt8]? {
    guard let transfer else { return nil }
    try run(transfer) { !$0.response.body.isEmpty }
    let piece = transfer.takeBody()
    if !piece.isEmpty { return piece }
    end()
    return nil
  }

  // MARK: The transfer

  private func whole(_ transfer: Transfer) throws(HTTPClientError) -> Response {
    try run(transfer) { _ in false }
    end()
    return transfer.response
  }

  /// Starts a request, and ends the previous one if it is incomplete.
  private func begin(_ request: Request) throws(HTTPClientError) -> Transfer {
    end()
    if let reason = Self.loadingProblem { throw .libraryMissing(reason: reason) }
    let multi = multi ?? hearth_curl_multi_init()
    self.multi = multi
    cancellation.watch(multi)
    guard let multi, let easy = hearth_curl_easy_init() else {
      throw .failed(address: address, reason: "not enough memory")
    }
    let transfer = Transfer(request, of: self, easy)
    self.transfer = transfer
    try transfer.configure()
    _ = hearth_curl_multi_add_handle(multi, easy)
    return transfer
  }

  /// The reason why libcurl cannot be used, or `nil`. The first access loads it.
  private static let loadingProblem = hearth_curl_load().map { String(cString: $0) }

  /// Exchanges bytes with the server until the transfer is ready or complete. Bytes that arrived before a failure make
  /// it ready too.
  private func run(_ transfer: Transfer, until isReady: (Transfer) -> Bool) throws(HTTPClientError) {
    do throws(HTTPClientError) {
      while !isReady(transfer), !transfer.isOver { try step(transfer, isReady) }
      if !isReady(transfer), let failure = transfer.failure { throw failure }
    } catch {
      end()
      throw error
    }
  }

  private func step(_ transfer: Transfer, _ isReady: (Transfer) -> Bool) throws(HTTPClientError) {
    if cancellation.isCancelled { throw .cancelled(address: address) }
    guard let multi else { return }
    _ = hearth_curl_multi_perform(multi)
    var result = CURLE_OK
    if hearth_curl_multi_take_result(multi, &result) { return transfer.end(result) }
    if isReady(transfer) { return }
    let left = try transfer.millisecondsLeft()
    // libcurl returns earlier if one of its own timers ends.
    _ = hearth_curl_multi_poll(multi, Int32(min(left, 1_000)))
  }

  /// Ends the transfer. Closes its connection if the response is incomplete.
  private func end() {
    guard let transfer else { return }
    if let multi { _ = hearth_curl_multi_remove_handle(multi, transfer.easy) }
    self.transfer = nil
  }
}

/// A request and its body.
struct Request {
  enum Body {
    case bytes([UInt8])
    /// The number of bytes, and a function that returns the next ones.
    case pieces(Int, () -> [UInt8])

    var byteCount: Int {
      switch self {
      case .bytes(let bytes): bytes.count
      case .pieces(let count, _): count
      }
    }
  }

  var method: String
  var target: String
  var headers: [(name: String, value: String)]
  var body: Body?

  init(method: String, target: String, headers: [(name: String, value: String)], body: Body?) {
    self.method = method
    self.target = target
    self.headers = headers
    // A request that usually has a body states that it has none: RFC 9110, section 8.6.
    self.body = body ?? (["POST", "PUT", "PATCH"].contains(method) ? .bytes([]) : nil)
  }

  /// Whether the same request may be sent twice.
  var isRepeatable: Bool {
    if case .pieces = body { return false }
    return method != "POST"
  }
}
