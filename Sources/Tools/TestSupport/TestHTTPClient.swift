import WebClient

/// The response to an HTTP request.
package struct HTTPResponse: Sendable {
  package let status: Int
  /// Names in lower case, in the order received.
  package let headers: [(name: String, value: String)]
  package let body: [UInt8]

  fileprivate init(_ response: HTTPClient.Response) {
    (status, headers, body) = (response.status, response.headers, response.body)
  }

  /// Returns the first header with this lower-case name, or `nil`.
  package func header(_ name: String) -> String? { headers.first { $0.name == name }?.value }

  /// The body as text. Invalid UTF-8 is replaced.
  package var text: String { String(decoding: body, as: UTF8.self) }
}

package enum TestHTTPClientError: Error, Equatable {
  /// The server did not accept a connection.
  case notConnected
  /// The server closed the connection before the response was complete.
  case closed
  /// No byte arrived within the client's time limit.
  case timedOut
  /// Another failure, such as a response that is not HTTP.
  case failed(String)

  fileprivate init(_ error: HTTPClientError) {
    switch error {
    case .notConnected: self = .notConnected
    case .closedEarly: self = .closed
    case .timedOut: self = .timedOut
    default: self = .failed(error.description)
    }
  }
}

/// The HTTP client of the command line on one connection to a loopback port or a Unix socket, kept open between requests.
///
/// It never sends a request twice. A request whose response is lost fails, so the caller knows which requests were
/// acknowledged. Use it from one thread at a time.
package final class TestHTTPClient {
  private let port: UInt16
  private let socket: String?
  private let timeoutSeconds: Int
  private lazy var client = makeClient()

  /// Creates a client of `127.0.0.1:port` that waits at most `timeoutSeconds` for each piece of a response.
  package init(port: UInt16, timeoutSeconds: Int = 30) {
    self.port = port
    socket = nil
    self.timeoutSeconds = timeoutSeconds
  }

  /// Creates a client of a Unix socket, whose requests name the host `localhost`.
  package init(unixSocket path: String, timeoutSeconds: Int = 30) {
    port = 80
    socket = path
    self.timeoutSeconds = timeoutSeconds
  }

  private func makeClient() -> HTTPClient {
    var options = HTTPClient.Options()
    options.connectMilliseconds = timeoutSeconds * 1000
    options.stallMilliseconds = timeoutSeconds * 1000
    options.bodyBytesMax = .max
    options.repeatsRequests = false
    options.unixSocket = socket.map { .init(path: $0, name: $0) }
    return HTTPClient(host: socket == nil ? "127.0.0.1" : "localhost", port: Int(port), options: options)
  }

  /// Closes the connection. The next request opens a new one.
  package func close() { client = makeClient() }

  /// Sends one request and waits for the complete response. `target` is sent unchanged, so the caller escapes it.
  ///
  /// - Throws: ``TestHTTPClientError`` if no complete response arrives. The connection is then closed.
  package func send(
    _ method: String, _ target: String, headers: [(String, String)] = [], body: [UInt8]? = nil
  ) throws(TestHTTPClientError) -> HTTPResponse {
    do { return HTTPResponse(try client.send(method, target, headers: headers, body: body)) } catch {
      throw TestHTTPClientError(error)
    }
  }

  /// Sends one request, on its own connection, whose response may be endless. ``readPiece()`` returns the body.
  ///
  /// - Throws: ``TestHTTPClientError`` if no response arrives. The connection is then closed.
  package func open(
    _ method: String, _ target: String, headers: [(String, String)] = [], body: [UInt8]? = nil
  ) throws(TestHTTPClientError) -> HTTPResponse {
    close()
    do { return HTTPResponse(try client.open(method, target, headers: headers, body: body)) } catch {
      throw TestHTTPClientError(error)
    }
  }

  /// Returns the next piece of a body that ``open(_:_:headers:body:)`` began, or `nil` at its end.
  /// - Throws: ``TestHTTPClientError`` if the response breaks off. The connection is then closed.
  package func readPiece() throws(TestHTTPClientError) -> [UInt8]? {
    do { return try client.read() } catch { throw TestHTTPClientError(error) }
  }
}
