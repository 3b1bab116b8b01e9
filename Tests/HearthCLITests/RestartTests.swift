import Foundation
import Glibc
import Testing
import TestSupport

/// Restarts under a substitute for systemd, which owns the socket and receives the states.
@Suite(.needs(.hearth)) struct RestartTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Does what systemd does for a service with a socket: listens, starts the program with the socket as descriptor 3,
  /// and reads its states.
  private final class StandIn {
    let port: UInt16
    private let listening: Int32
    private let notified: Int32
    private let path: String

    init(_ directory: TemporaryDirectory, address host: UInt32 = LoopbackAddress.host) throws {
      (listening, port) = try LoopbackAddress.bind(host: host)
      try #require(listen(listening, 512) == 0)
      path = directory.file("notify")
      notified = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
      var place = sockaddr_un()
      place.sun_family = sa_family_t(AF_UNIX)
      let bytes = Array(path.utf8)
      try #require(bytes.count < 100)
      withUnsafeMutableBytes(of: &place.sun_path) { $0.copyBytes(from: bytes) }
      let notified = notified
      let isBound = withUnsafePointer(to: &place) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
          bind(notified, $0, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
        }
      }
      try #require(isBound)
      var limit = timeval(tv_sec: 30, tv_usec: 0)
      setsockopt(notified, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
    }

    deinit {
      close(listening)
      close(notified)
    }

    /// Starts `hearth serve` with the socket.
    func start(_ arguments: String) throws -> ServerProcess {
      let binary = try #require(HearthBinary.path)
      return try ServerProcess(
        executable: "/bin/bash",
        arguments: [
          "-c",
          "LISTEN_PID=$$ LISTEN_FDS=1 NOTIFY_SOCKET='\(path)' WATCHDOG_USEC=200000 "
            + "exec '\(binary)' serve \(arguments)",
        ], socket: listening)
    }

    /// Waits for a datagram that begins with `state`.
    func wait(for state: String) throws {
      var buffer = [UInt8](repeating: 0, count: 4096)
      while true {
        let count = recv(notified, &buffer, buffer.count, 0)
        try #require(count > 0, "the server did not send \(state) in time")
        if String(decoding: buffer[..<count], as: UTF8.self).hasPrefix(state) { return }
      }
    }
  }

  /// A client that writes one document after the other until it is stopped.
  private final class Writer: Sendable {
    struct State: Sendable {
      var isStopping = false
      var isDone = false
      var written: [String] = []
      var failures: [String] = []
      var retries = 0
    }

    let state = Observed(State())

    init(_ name: String, port: UInt16, keepsConnection: Bool) {
      Thread { [state] in
        let client = TestHTTPClient(port: port, timeoutSeconds: 20)
        defer { client.close() }
        var isUsed = false
        for n in 0... {
          let id = "\(name)\(n)"
          let target = "/v1/projects/demo/databases/(default)/documents/items/\(id)"
          func send() throws -> Int { try client.send("PATCH", target, body: Array("{}".utf8)).status }
          do {
            var status: Int
            do { status = try send() } catch TestHTTPClientError.closed where isUsed {
              // The server may close a connection between two requests. HTTP/1.1 clients handle that.
              state.update { $0.retries += 1 }
              status = try send()
            }
            isUsed = keepsConnection
            if !keepsConnection { client.close() }
            state.update { if status == 200 { $0.written.append(id) } else { $0.failures.append("\(id): \(status)") } }
          } catch {
            isUsed = false
            state.update { $0.failures.append("\(id): \(error)") }
          }
          let state = state.value
          if state.isStopping || state.failures.count > 10 { break }
        }
        state.update { $0.isDone = true }
      }.start()
    }

    var count: Int { state.value.written.count }

    /// Waits until the client has written `count` more documents, or failed.
    func write(_ count: Int) throws {
      let goal = self.count + count
      let isThere = state.wait { $0.written.count >= goal || !$0.failures.isEmpty }
      try #require(isThere, "a writer wrote only \(self.count) of \(goal) documents")
    }

    /// Stops the client, and waits for its last response. Clients give up after 20 seconds.
    func stop() throws {
      state.update { $0.isStopping = true }
      try #require(state.wait { $0.isDone }, "a writer does not end")
    }
  }

  @Test func restartsRefuseNoClient() throws {
    let system = try StandIn(directory)
    let arguments = "--emulator --project demo --stop-grace 10 --data '\(directory.file("data"))'"
    var server = try system.start(arguments)
    defer { server.stop() }
    try system.wait(for: "READY=1")
    let address = "http://127.0.0.1:\(system.port)"
    // The readiness arrives over another socket, and may be read before the line.
    #expect(try server.waitForLine(prefix: "hearth: listening on ", timeoutSeconds: 30) == address)
    let watch = try HearthBinary.start(["watch", "items", "--server", address, "--project", "demo"])
    defer { watch.stop() }
    let writers = [
      Writer("kept", port: system.port, keepsConnection: true),
      Writer("new", port: system.port, keepsConnection: false),
    ]
    for _ in 0..<3 {
      // Each server handles some requests before the next replaces it.
      for writer in writers { try writer.write(20) }
      server.send(signal: SIGTERM)
      try system.wait(for: "STOPPING=1")
      #expect(server.waitForExit(timeoutSeconds: 30) == .code(0), "\(server.output)")
      server = try system.start(arguments)
      try system.wait(for: "READY=1")
    }
    for writer in writers { try writer.stop() }
    for writer in writers {
      #expect(writer.state.value.failures == [])
      #expect(writer.count >= 60)
      #expect(writer.state.value.retries <= 3)
    }
    // The listener was sent every document exactly once.
    let expected = Set(writers.flatMap(\.state.value.written))
    func logged(_ output: String) -> [String] {
      // The part after the last line feed is not a complete line yet.
      let lines = output.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
      return lines.filter { $0.hasPrefix("+ items/") }.map { String($0.dropFirst(8).prefix { $0 != " " }) }
    }
    try watch.waitForOutput("\(expected.count) documents", timeoutSeconds: 60) {
      Set(logged($0)).count >= expected.count
    }
    let lines = logged(watch.output)
    #expect(Set(lines) == expected)
    #expect(lines.count == expected.count, "some were sent twice")
  }

  @Test func sendsItsStates() throws {
    let system = try StandIn(directory)
    let server = try system.start("--emulator --in-memory")
    defer { server.stop() }
    try system.wait(for: "READY=1\nSTATUS=Listening on http://127.0.0.1:\(system.port)")
    try system.wait(for: "WATCHDOG=1")
    // Under a supervisor, SIGHUP does not stop the server, even if there is nothing to reload.
    server.send(signal: SIGHUP)
    try system.wait(for: "RELOADING=1\nMONOTONIC_USEC=")
    try system.wait(for: "READY=1")
    let client = TestHTTPClient(port: system.port)
    #expect(try client.send("GET", "/healthz").status == 200)
    client.close()
    server.send(signal: SIGTERM)
    try system.wait(for: "STOPPING=1")
    #expect(server.waitForExit(timeoutSeconds: 20) == .code(0))
  }

  @Test func emulatorsAcceptLoopbackSocketsOnly() throws {
    let everywhere = try StandIn(directory, address: 0)
    let refused = try everywhere.start("--emulator --in-memory")
    #expect(refused.waitForExit(timeoutSeconds: 30) == .code(1), "\(refused.output)")
    #expect(refused.output.contains("instead of 0.0.0.0"), "\(refused.output)")
    let server = try everywhere.start("--emulator --in-memory --allow-remote-emulator --port 1")
    defer { server.stop() }
    _ = try server.waitForLine(prefix: "hearth: listening on http://0.0.0.0:\(everywhere.port)", timeoutSeconds: 30)
    #expect(server.output.contains("--port are ignored"), "\(server.output)")
    // Without a terminal, SIGHUP does not stop the server.
    server.send(signal: SIGHUP)
    let client = TestHTTPClient(port: everywhere.port)
    defer { client.close() }
    #expect(try client.send("GET", "/healthz").status == 200)
  }

  @Test(arguments: [
    ("LISTEN_FDS=2 LISTEN_PID=$$", "the supervisor passed 2 sockets"),
    ("LISTEN_FDS=1 LISTEN_PID=$$", "descriptor 3 is not a listening TCP socket"),
  ])
  func refusesUnusableSockets(variables: String, message: String) throws {
    let binary = try #require(HearthBinary.path)
    let server = try ServerProcess(
      executable: "/bin/bash",
      arguments: ["-c", "\(variables) exec '\(binary)' serve --emulator --port 0 3</dev/null 4</dev/null"])
    #expect(server.waitForExit(timeoutSeconds: 30) == .code(1), "\(server.output)")
    #expect(server.output.contains(message), "\(server.output)")
  }

  /// `LISTEN_PID` may name another process.
  @Test func ignoresSocketsForOtherProcesses() throws {
    let binary = try #require(HearthBinary.path)
    let server = try ServerProcess(
      executable: "/bin/bash",
      arguments: ["-c", "LISTEN_FDS=1 LISTEN_PID=1 exec '\(binary)' serve --emulator --port 0 3</dev/null"])
    defer { server.stop() }
    _ = try server.waitForLine(prefix: "hearth: listening on http://127.0.0.1:", timeoutSeconds: 30)
  }
}
