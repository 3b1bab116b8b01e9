import Basics
import Foundation
import HearthServer
import Testing
import TestSupport

/// A server in this process on a free port, and the requests that a test sends to it.
final class TestServer: Sendable {
  /// `/v1/projects/p/databases/(default)/documents`
  static let root = "/v1/" + name
  /// The name of the documents root.
  static let name = "projects/p/databases/(default)/documents"

  /// The prefixes of paths that are not below the documents root.
  private static let ownPaths = ["/v0/", "/storage/", "/upload/", "/download/", "/internal/"]

  let server: Server
  let port: UInt16

  init(_ mode: HearthConfiguration.Mode = .emulator, change: (inout HearthConfiguration) -> Void = { _ in }) throws {
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.port = 0
    configuration.mode = mode
    configuration.project = "p"
    configuration.mapBytes = 1 << 30
    configuration.stopGraceSeconds = 1
    // Otherwise the queries of tests that run at the same time would use the memory of this one.
    configuration.scratchBudget = ScratchBudget(ScratchBudget.Limits())
    change(&configuration)
    server = try Server(configuration)
    let url = try server.start()
    port = try #require(UInt16(url.drop { $0 != ":" }.dropFirst().drop { $0 != ":" }.dropFirst()))
  }

  deinit { server.stop() }

  struct Response {
    var status = 0
    var headers: [(name: String, value: String)] = []
    var body: [UInt8] = []

    func header(_ name: String) -> String? { headers.first { $0.name == name.lowercased() }?.value }
    var text: String { String(decoding: body, as: UTF8.self) }
    var json: Any {
      (try? JSONSerialization.jsonObject(with: Data(body), options: .fragmentsAllowed)) ?? "no JSON: \(text)"
    }
    func json<T>(_ path: Any..., as type: T.Type = String.self) -> T? {
      var current: Any? = json
      for step in path {
        current =
          (step as? String).map { (current as? [String: Any])?[$0] as Any }
          ?? {
            guard let index = step as? Int, let array = current as? [Any], array.indices.contains(index) else {
              return nil
            }
            return array[index]
          }()
      }
      return current as? T
    }
    var message: String { json("error", "message") ?? json(0, "error", "message") ?? "no error: \(text.prefix(300))" }
  }

  /// Sends one request on a connection of its own. A path that does not start with `/v1` or another known prefix is
  /// relative to the documents root.
  func call(
    _ method: String, _ path: String, _ body: String? = nil, headers: [(String, String)] = []
  ) throws -> Response {
    let target =
      path.hasPrefix("/v1") || path.hasPrefix("/emulator") || path.hasPrefix("/hearth") || path == "/healthz"
        || Self.ownPaths.contains(where: path.hasPrefix) || path == "/" || path.hasPrefix("/?")
        || path.contains(".googleapis.com/")
      ? path : Self.root + path
    return try request(method, target, body, headers: headers)
  }

  /// Sends one request for a target, unchanged.
  func request(
    _ method: String, _ target: String, _ body: String? = nil, headers: [(String, String)] = [], port: UInt16? = nil
  ) throws -> Response {
    try request(method, target, bytes: body.map { Array($0.utf8) }, headers: headers, port: port)
  }

  /// Sends one request for a target, unchanged, with a body of any bytes. `port` is another port of the server.
  func request(
    _ method: String, _ target: String, bytes body: [UInt8]?, headers: [(String, String)] = [], port: UInt16? = nil
  ) throws -> Response {
    let host = headers.contains { $0.0 == "Host" } ? "" : "Host: localhost\r\n"
    var head = "\(method) \(target) HTTP/1.1\r\n\(host)Connection: close\r\n"
    for (name, value) in headers { head += "\(name): \(value)\r\n" }
    if let body { head += "Content-Length: \(body.count)\r\n" }
    let response = try StreamedResponse(
      port: port ?? self.port, request: Array((head + "\r\n").utf8) + (body ?? []), hasBody: method != "HEAD")
    try response.readToEnd()
    let reply = Response(
      status: response.status, headers: response.headers, body: response.body + response.readRest())
    if method != "HEAD", reply.status != 304, let length = reply.header("content-length") {
      #expect(reply.body.count == Int(length))
    }
    return reply
  }
}

/// Whether a response matches expected JSON: `"*"` matches anything, everything else must be equal.
func matches(_ expected: String, _ reply: TestServer.Response) -> Bool {
  guard let expected = try? JSONSerialization.jsonObject(with: Data(expected.utf8), options: .fragmentsAllowed) else {
    Issue.record("the expected text is not valid JSON: \(expected)")
    return false
  }
  return matches(expected, reply.json)
}

private func matches(_ expected: Any, _ found: Any) -> Bool {
  switch (expected, found) {
  case (let text as String, _) where text == "*": return true
  case (let a as [String: Any], let b as [String: Any]):
    return a.count == b.count && a.allSatisfy { key, value in b[key].map { matches(value, $0) } ?? false }
  case (let a as [Any], let b as [Any]): return a.count == b.count && zip(a, b).allSatisfy(matches)
  case (let a as String, let b as String): return a.utf8.elementsEqual(b.utf8)
  case (let a as NSNumber, let b as NSNumber): return a == b
  case (is NSNull, is NSNull): return true
  default: return false
  }
}
