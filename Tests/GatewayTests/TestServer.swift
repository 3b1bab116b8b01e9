import Foundation
import Glibc
import HearthServer
import TestSupport
import Testing

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
      path.hasPrefix("/v1") || path.hasPrefix("/emulator") || path.hasPrefix("/hearth")
        || Self.ownPaths.contains(where: path.hasPrefix) || path == "/" || path.hasPrefix("/?")
        || path.contains(".googleapis.com/")
      ? path : Self.root + path
    return try request(method, target, body, headers: headers)
  }

  /// Sends one request for a target, unchanged.
  func request(
    _ method: String, _ target: String, _ body: String? = nil, headers: [(String, String)] = []
  ) throws -> Response {
    try request(method, target, bytes: body.map { Array($0.utf8) }, headers: headers)
  }

  /// Sends one request for a target, unchanged, with a body of any bytes.
  func request(
    _ method: String, _ target: String, bytes body: [UInt8]?, headers: [(String, String)] = []
  ) throws -> Response {
    var request = "\(method) \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    for (name, value) in headers { request += "\(name): \(value)\r\n" }
    var bytes = body ?? []
    if body != nil { request += "Content-Length: \(bytes.count)\r\n" }
    bytes = Array((request + "\r\n").utf8) + bytes
    return try Self.parse(try exchange(bytes), isHead: method == "HEAD")
  }

  private func exchange(_ request: [UInt8]) throws -> [UInt8] {
    let socket = Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    try #require(socket >= 0)
    defer { close(socket) }
    setTimeouts(of: socket, readSeconds: 30)
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    let status = withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
        connect(socket, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
      }
    }
    try #require(status == 0, "errno \(errno)")
    var sent = 0
    while sent < request.count {
      let count = request[sent...].withUnsafeBytes { send(socket, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      guard count > 0 else { break }
      sent += count
    }
    var reply: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 1 << 16)
    while true {
      let count = recv(socket, &buffer, buffer.count, 0)
      guard count > 0 else { break }
      reply += buffer[..<count]
    }
    return reply
  }

  private static func parse(_ bytes: [UInt8], isHead: Bool) throws -> Response {
    let end = Array("\r\n\r\n".utf8)
    let headEnd = try #require(
      bytes.indices.first { bytes[$0] == 13 && bytes[$0...].starts(with: end) }, "no response in \(bytes.count) bytes")
    var lines = String(decoding: bytes[..<headEnd], as: UTF8.self).components(separatedBy: "\r\n")
    var reply = Response()
    reply.status = Int(lines.removeFirst().split(separator: " ")[1]) ?? 0
    for line in lines {
      let colon = line.firstIndex(of: ":") ?? line.endIndex
      reply.headers.append(
        (line[..<colon].lowercased(), line[colon...].dropFirst().trimmingCharacters(in: .whitespaces)))
    }
    var rest = bytes[(headEnd + 4)...]
    guard reply.header("transfer-encoding") == "chunked" else {
      reply.body = Array(rest)
      if !isHead, reply.status != 304, let length = reply.header("content-length") {
        #expect(reply.body.count == Int(length))
      }
      return reply
    }
    while let lineEnd = rest.firstIndex(of: 13) {
      let count = try #require(Int(String(decoding: rest[..<lineEnd], as: UTF8.self), radix: 16))
      rest = rest[(lineEnd + 2)...]
      if count == 0 { return reply }
      reply.body += rest.prefix(count)
      rest = rest.dropFirst(count + 2)
    }
    Issue.record("the last chunk is missing")
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
