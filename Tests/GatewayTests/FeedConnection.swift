import Testing
import TestSupport

/// A client of one feed that reads events as they arrive. Use it on one thread; every wait has a timeout.
final class FeedConnection {
  private let response: StreamedResponse

  var status: Int { response.status }
  /// The status line and the headers, in lower case.
  var head: String { response.head.lowercased() }
  /// The body so far.
  var body: String { String(decoding: response.body, as: UTF8.self) }

  /// Connects to a port of this machine and sends a request. Reads nothing yet.
  init(port: UInt16, _ method: String = "GET", _ target: String, headers: [(String, String)] = [], body: String = "")
    throws
  {
    var request = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\n"
    for (name, value) in headers { request += "\(name): \(value)\r\n" }
    if method == "POST" { request += "Content-Length: \(body.utf8.count)\r\n" }
    response = try StreamedResponse(port: port, request: Array((request + "\r\n" + body).utf8))
  }

  /// Closes the connection.
  func close() { response.close() }

  /// Reads until the body so far satisfies a condition, and returns the body. Fails if the body ends first.
  @discardableResult
  func read(until isEnough: (String) -> Bool) throws -> String {
    try response.readHead()
    while !isEnough(body) {
      try #require(!response.isComplete, "the feed ended early: \(head)\n\(body)")
      try response.receive()
    }
    return body
  }

  /// Reads until the body so far contains a text `count` times.
  @discardableResult
  func read(until text: String, count: Int = 1) throws -> String {
    try read { $0.split(separator: text, omittingEmptySubsequences: false).count > count }
  }

  /// Reads until the response is complete.
  @discardableResult
  func readToEnd() throws -> String {
    try response.readToEnd()
    return body
  }

  /// Waits until the server closes or resets the connection, discarding data that arrives before. Returns whether it
  /// did.
  func isCut() -> Bool { response.isCut() }
}
