import Foundation
import Glibc
import TestSupport

/// The shapes of a hostile load. Each makes the server use more than a gigabyte, or keep other clients waiting, if
/// nothing stops it.
enum HostileLoad: CaseIterable, Sendable {
  /// HTTP/2 requests whose responses may not be sent.
  case closedWindows, smallWindows
  /// Responses that nobody reads.
  case unreadLists, unreadFeeds
  /// Clients that read a byte from time to time.
  case slowReaders
  /// Partly sent requests, large commits, unread responses and unacknowledged channels at the same time.
  case everything
  /// TLS connections that send nothing, a part of the first message, or the first message only.
  case handshakes

  /// Whether the server uses TLS.
  var usesTLS: Bool { self == .handshakes }

  static let root = "/v1/projects/p/databases/(default)/documents"
  private static let query = #"{"structuredQuery":{"from":[{"collectionId":"c"}]}}"#
  private static let fields = "Host: x\r\nAuthorization: Bearer owner\r\nContent-Type: application/json\r\n"

  /// The clients of a load. They live until ``end()``.
  final class Clients: Sendable {
    private struct State: @unchecked Sendable {
      // Sendable: `state` protects the arrays. A thread of the load may use a socket while `end` resets it, which only
      // shuts the socket down; `end` closes it after those threads have ended.
      var sockets: [LoopbackSocket] = []
      var isOver = false
      /// Each waits for threads.
      var waits: [() -> [Void]] = []
    }

    private let state = Observed(State())

    var isOver: Bool { state.value.isOver }

    func keep(_ socket: LoopbackSocket) { state.update { $0.sockets.append(socket) } }

    /// Runs `work` with one number after the other on threads until the load ends.
    func repeatedly(_ count: Int, _ work: @escaping @Sendable (Int) -> Void) {
      let wait = startThreads(count) { [self] number in while !isOver { work(number) } }
      state.update { $0.waits.append(wait) }
    }

    func end() {
      state.update { $0.isOver = true }
      let ended = state.value
      for socket in ended.sockets { socket.reset() }
      for wait in ended.waits { _ = wait() }
      for socket in ended.sockets { socket.close() }
    }
  }

  /// Begins the load.
  func begin(_ port: UInt16) throws -> Clients {
    let clients = Clients()
    switch self {
    case .closedWindows, .smallWindows:
      try Self.open(8, port, Self.streams(window: self == .closedWindows ? 0 : 1), clients)
    case .unreadLists: try Self.open(200, port, Self.request("GET", "\(Self.root)/c"), clients)
    case .unreadFeeds: try Self.open(800, port, Self.request("POST", "\(Self.root):listen", Self.query), clients)
    case .slowReaders: try Self.readSlowly(port, clients)
    case .everything: try Self.sendEverything(port, clients)
    case .handshakes: try Self.beginHandshakes(port, clients)
    }
    return clients
  }

  private static func open(_ count: Int, _ port: UInt16, _ bytes: [UInt8], _ clients: Clients) throws {
    let sockets = try (0..<count).map { _ in try LoopbackSocket(port: port, readSeconds: 1, writeSeconds: 5) }
    for socket in sockets {
      clients.keep(socket)
      socket.send(bytes)
    }
  }

  private static func request(_ method: String, _ target: String, _ body: String = "") -> [UInt8] {
    Array("\(method) \(target) HTTP/1.1\r\n\(fields)Content-Length: \(body.utf8.count)\r\n\r\n\(body)".utf8)
  }

  private static func streams(window: Int) -> [UInt8] {
    let head = [
      (":method", "POST"), (":scheme", "http"), (":path", "\(root):runQuery"), (":authority", "x"),
      ("authorization", "Bearer owner"), ("content-type", "application/json"),
    ]
    var bytes = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8) + HTTP2Frame.settings([(4, window)]).bytes
    for index in 0..<200 as Range<UInt32> {
      bytes += HTTP2Frame.headers(index * 2 + 1, head, end: false).bytes
      bytes += HTTP2Frame.data(index * 2 + 1, Array(query.utf8), end: true).bytes
    }
    return bytes
  }

  private static func readSlowly(_ port: UInt16, _ clients: Clients) throws {
    let requests = [
      request("GET", "\(root)/c"), request("POST", "\(root):runQuery", query),
      request("POST", "\(root):listen", query), request("GET", "\(root):changes"),
    ]
    let sockets = Observed<[Int: [SlowSocket]]>([:])
    for (number, bytes) in requests.enumerated() {
      let opened = try (0..<400).map { _ in try LoopbackSocket(port: port, readSeconds: 1, writeSeconds: 5) }
      for socket in opened {
        clients.keep(socket)
        socket.send(bytes)
      }
      sockets.update { $0[number] = opened.map { SlowSocket(socket: $0) } }
    }
    // A few of them read, one after the other.
    clients.repeatedly(requests.count) { number in
      for slow in sockets.value[number] ?? [] where !clients.isOver { _ = slow.socket.receive(1) }
    }
    // Meanwhile others write, so that the feeds have something to send.
    let text = String(repeating: "y", count: 200_000)
    clients.repeatedly(1) { _ in
      let session = RESTSession(port: port, database: TestDatabase(project: "p"), timeoutSeconds: 30)
      for number in 0..<20 where !clients.isOver {
        _ = try? session.set("c/\(number)", ["text": ["stringValue": .string(text)]])
      }
    }
  }

  private struct SlowSocket: @unchecked Sendable {
    // Sendable: after the request was sent, only the thread of its number reads from the socket.
    let socket: LoopbackSocket
  }

  private static func sendEverything(_ port: UInt16, _ clients: Clients) throws {
    try open(200, port, request("GET", "\(root)/c"), clients)
    let begun =
      Array("POST \(root):commit HTTP/1.1\r\n\(fields)Content-Length: 4000001\r\n\r\n".utf8)
      + [UInt8](repeating: 0x20, count: 4_000_000)
    try open(60, port, begun, clients)
    // Five commits at a time of about 9 MB.
    let text = String(repeating: "z", count: 1_000_000)
    clients.repeatedly(5) { number in
      let session = RESTSession(port: port, database: TestDatabase(project: "p"), timeoutSeconds: 30)
      let writes = (0..<9).map { session.update("large/\(number)-\($0)", ["text": ["stringValue": .string(text)]]) }
      _ = try? session.commit(writes)
    }
    for _ in 0..<60 { try openChannel(port, clients) }
  }

  /// Opens a WebChannel with a listener whose messages are read and never acknowledged.
  private static func openChannel(_ port: UInt16, _ clients: Clients) throws {
    let database = "projects/p/databases/(default)"
    let target =
      #"{"database":"\#(database)","addTarget":{"targetId":2,"query":{"parent":"\#(database)/documents","#
      + #""structuredQuery":{"from":[{"collectionId":"c"}]}}}}"#
    let headers = "Content-Type:text/plain\r\nAuthorization:Bearer owner\r\n"
    let form =
      "headers=\(percentEncoded(headers.utf8))&count=1&ofs=0&req0___data__=\(percentEncoded(target.utf8))"
    let path = "/google.firestore.v1.Firestore/Listen/channel?VER=8&database=\(percentEncoded(database.utf8))"
    let client = TestHTTPClient(port: port, timeoutSeconds: 10)
    let opened = try? client.send(
      "POST", "\(path)&RID=1&CVER=22&X-HTTP-Session-Id=gsessionid&t=1",
      headers: [("Content-Type", "application/x-www-form-urlencoded")], body: Array(form.utf8))
    // A full server refuses more channels.
    guard let opened, let id = opened.text.split(separator: "\"").dropFirst(3).first else { return }
    let session = opened.header("x-http-session-id") ?? ""
    let socket = try LoopbackSocket(port: port, readSeconds: 1)
    clients.keep(socket)
    socket.send(
      request("GET", "\(path)&gsessionid=\(session)&SID=\(id)&RID=rpc&AID=0&CI=0&TYPE=xmlhttp&t=1"))
    let slow = SlowSocket(socket: socket)
    clients.repeatedly(1) { _ in _ = slow.socket.receive(1 << 20) }
  }

  private static func beginHandshakes(_ port: UInt16, _ clients: Clients) throws {
    let hello = try TLSHello.record()
    for bytes in [[], Array(hello.prefix(100)), hello] { try open(700, port, bytes, clients) }
  }
}

/// The first message of a TLS client, from OpenSSL's program.
enum TLSHello {
  /// - Throws: ``LoopbackError`` or ``ServerProcessError`` if the program sends nothing.
  static func record() throws -> [UInt8] {
    let (descriptor, port) = try LoopbackAddress.bind()
    defer { close(descriptor) }
    guard listen(descriptor, 1) == 0 else { throw LoopbackError("cannot listen: errno \(errno)") }
    let client = try ServerProcess(
      executable: "/usr/bin/openssl", arguments: ["s_client", "-connect", "127.0.0.1:\(port)"])
    defer { client.send(signal: SIGKILL) }
    let accepted = accept(descriptor, nil, nil)
    defer { close(accepted) }
    var bytes = [UInt8](repeating: 0, count: 4096)
    let count = recv(accepted, &bytes, bytes.count, 0)
    guard count > 0 else { throw LoopbackError("no client hello") }
    return Array(bytes[..<count])
  }
}
