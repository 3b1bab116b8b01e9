import Foundation
import Glibc
import Testing
import TestSupport

/// The faults of the proxy that tests of clusters use.
@Suite struct LinkProxyTests {
  /// A server that sends back what it receives, and notes it.
  private final class Echo: Sendable {
    let port: UInt16
    let received = Observed("")
    private let listener: Int32

    init() throws {
      (listener, port) = try LoopbackAddress.bind()
      try #require(listen(listener, 16) == 0)
      Thread { [listener, received] in
        defer { close(listener) }
        while true {
          let client = accept(listener, nil, nil)
          guard client >= 0 else { return }
          Thread { Self.serve(client, received) }.start()
        }
      }.start()
    }

    deinit { shutdown(listener, Int32(SHUT_RDWR)) }

    private static func serve(_ client: Int32, _ received: Observed<String>) {
      defer { close(client) }
      var buffer = [UInt8](repeating: 0, count: 1024)
      while true {
        let count = recv(client, &buffer, buffer.count, 0)
        guard count > 0 else { return }
        received.update { $0 += String(decoding: buffer[..<count], as: UTF8.self) }
        _ = send(client, buffer, count, Int32(MSG_NOSIGNAL))
      }
    }
  }

  private static func expect(_ text: String, _ socket: LoopbackSocket) {
    #expect(socket.receive() == .bytes(Array(text.utf8)))
  }

  @Test func linksPassHoldAndCut() async throws {
    try await onDedicatedThread {
      let server = try Echo()
      let proxy = try LinkProxy(to: .port(server.port))
      let client = try LoopbackSocket(port: proxy.port, readSeconds: 20)
      client.send("a")
      Self.expect("a", client)
      // The request arrives, its answer later.
      proxy.set(.holdAnswers)
      client.send("b")
      #expect(server.received.wait(secondsMax: 20) { $0 == "ab" })
      let brief = try LoopbackSocket(port: proxy.port, readSeconds: 1)
      brief.send("c")
      #expect(server.received.wait(secondsMax: 20) { $0 == "abc" })
      #expect(brief.receive() == .timedOut)
      proxy.set(.none)
      Self.expect("b", client)
      Self.expect("c", brief)
      // A request that waits arrives although its client has gone.
      proxy.set(.hold)
      brief.send("d")
      brief.close()
      client.send("e")
      proxy.set(.none)
      Self.expect("e", client)
      #expect(server.received.wait(secondsMax: 20) { $0.contains("d") })
      proxy.set(.cut)
      #expect(client.receive() == .ended)
      let other = try LoopbackSocket(port: proxy.port)
      #expect(other.isCut())
    }
  }

  @Test func lostAnswersAreThoseOfRequestsThatArrived() async throws {
    try await onDedicatedThread {
      let server = try Echo()
      let lost = Observed(0)
      let proxy = try LinkProxy(to: .port(server.port), onLoss: { lost.update { $0 += 1 } })
      proxy.set(.loseAnswers(oneIn: 3))
      var answered = 0
      for _ in 0..<100 {
        let client = try LoopbackSocket(port: proxy.port, readSeconds: 20)
        client.send("x")
        if client.receive() == .bytes(Array("x".utf8)) { answered += 1 }
      }
      #expect(server.received.value.count == 100)
      #expect(answered + lost.value == 100 && lost.value > 10 && answered > 10, "\(answered) \(lost.value)")
    }
  }

  /// The proxy knows by its process which client has a connection.
  @Test func aFaultOfOneClientIsNotThatOfAnother() async throws {
    try await onDedicatedThread {
      let server = try Echo()
      let processes = [1, getpid()]
      let proxy = try LinkProxy(
        to: .port(server.port), identify: { ConnectionOwner.index(of: $0, to: $1, among: processes) })
      proxy.set(.cut, from: 0)
      let client = try LoopbackSocket(port: proxy.port, readSeconds: 20)
      client.send("a")
      Self.expect("a", client)
      proxy.set(.cut, from: 1)
      #expect(client.receive() == .ended)
    }
  }
}
