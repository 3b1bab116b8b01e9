import Testing
import TestSupport

@testable import Transport

/// Streams a fixed number of slices and counts the requests for them.
private final class CountedSource: BodySource {
  private let slices: Int
  private let sliceBytes: Int
  private let end: BodyProgress
  private let asked: Observed<Int>

  init(slices: Int, sliceBytes: Int, end: BodyProgress = .finished, asked: Observed<Int> = Observed(0)) {
    self.slices = slices
    self.sliceBytes = sliceBytes
    self.end = end
    self.asked = asked
  }

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    let index = asked.value
    asked.update { $0 += 1 }
    guard index < slices else { return end }
    out.append(contentsOf: [UInt8](repeating: UInt8(truncatingIfNeeded: index), count: sliceBytes))
    return .more
  }
}

/// Sends the lines put into it, and waits in between.
private final class LineSource: BodySource, @unchecked Sendable {
  // Sendable: used on its exchange's loop only.
  var lines: [String] = []
  var isFinished = false
  var exchange: Exchange?

  func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    for line in lines { out.append(contentsOf: Array(line.utf8)) }
    lines = []
    return isFinished ? .finished : .waiting
  }
}

@Suite struct StreamTests {
  /// A source that works for a long time before its first byte, such as a sort, occupies the loop for one slice at a
  /// time.
  @Test func otherRequestsRunBetweenEmptySlices() throws {
    let turns = Observed([Int]())
    let server = try TestServer { _, exchange in
      let asked = Observed(0)
      func turn() {
        turns.update { $0.append(asked.value) }
        if asked.value < 50 { exchange.loop.atNextTurn(turn) }
      }
      exchange.stream(
        status: 200, headers: { _ in }, from: CountedSource(slices: 50, sliceBytes: 0, asked: asked))
      turn()
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try client.readReply().body.isEmpty)
    let counts = turns.value
    #expect(counts.count > 1 && zip(counts, counts.dropFirst()).allSatisfy { $1 - $0 <= 1 }, "\(counts)")
  }

  @Test func chunksFormOneBodyAndTheConnectionStaysOpen() throws {
    let server = try TestServer { _, exchange in
      exchange.stream(status: 200, headers: { $0.add("X-A", "b") }, from: CountedSource(slices: 40, sliceBytes: 1000))
    }
    let client = try server.connect()
    client.send(String(repeating: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", count: 3))
    for _ in 0..<3 {
      let reply = try client.readReply()
      #expect(reply.field("transfer-encoding") == "chunked" && reply.field("x-a") == "b")
      #expect(reply.body == (0..<40).flatMap { [UInt8](repeating: UInt8($0), count: 1000) })
    }
  }

  @Test func manyPipelinedStreamsDoNotPileUp() throws {
    let server = try TestServer { _, exchange in
      exchange.stream(status: 200, headers: { _ in }, from: CountedSource(slices: 1, sliceBytes: 1))
    }
    let client = try server.connect()
    client.send(String(repeating: "GET / HTTP/1.1\r\nHost: x\r\n\r\n", count: 3000))
    for _ in 0..<3000 { #expect(try client.readReply().body == [0]) }
  }

  @Test func HTTP10StreamsEndWithTheConnection() throws {
    let server = try TestServer { _, exchange in
      exchange.stream(status: 200, headers: { _ in }, from: CountedSource(slices: 3, sliceBytes: 5))
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")
    let reply = try client.readReply()
    #expect(reply.field("transfer-encoding") == nil && reply.field("connection") == "close")
    #expect(reply.body.count == 15)
  }

  @Test func headRequestsDoNotAskTheSource() throws {
    let asked = Observed(0)
    let server = try TestServer { _, exchange in
      exchange.stream(status: 200, headers: { _ in }, from: CountedSource(slices: 3, sliceBytes: 5, asked: asked))
    }
    let client = try server.connect()
    client.send("HEAD / HTTP/1.1\r\nHost: x\r\n\r\nHEAD / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(try client.readReply(to: "HEAD").status == 200)
    #expect(try client.readReply(to: "HEAD").status == 200)
    #expect(asked.value == 0)
  }

  @Test func failingSourcesCutTheResponse() throws {
    let server = try TestServer { _, exchange in
      exchange.stream(status: 200, headers: { _ in }, from: CountedSource(slices: 3, sliceBytes: 5, end: .failed))
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(throws: (any Error).self) { try client.readReply() }
  }

  @Test func clientsThatDoNotReadStopTheSource() throws {
    let asked = Observed(0)
    let slices = 2000
    let server = try TestServer { _, exchange in
      let source = CountedSource(slices: slices, sliceBytes: Exchange.sliceBytes, asked: asked)
      exchange.stream(status: 200, headers: { _ in }, from: source)
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    server.settle(asked)
    // The slices produced so far are in the kernel's buffers, except for one.
    #expect(asked.value < slices / 4)
    #expect(try client.readReply().body.count == slices * Exchange.sliceBytes)
    #expect(asked.value == slices + 1)
  }

  @Test func sourcesWaitAndResume() throws {
    let feed = LineSource()
    let server = try TestServer { _, exchange in
      feed.exchange = exchange
      exchange.stream(status: 200, headers: { _ in }, from: feed)
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n")
    let head = "Transfer-Encoding: chunked\r\n\r\n"
    var seen = ""
    while !seen.hasSuffix(head) { seen += String(decoding: try client.read(1), as: UTF8.self) }
    let exchange = try #require(server.wait { feed.exchange != nil } ? feed.exchange : nil)
    for line in ["one", "second", "3"] {
      exchange.loop.execute {
        feed.lines.append(line)
        exchange.resume()
        exchange.resume()
      }
      let expected = Array("0000000\(line.utf8.count)\r\n\(line)\r\n".utf8)
      #expect(try client.read(expected.count) == expected)
    }
    exchange.loop.execute {
      feed.isFinished = true
      exchange.resume()
    }
    #expect(try client.read(5) == Array("0\r\n\r\n".utf8))
    #expect(try client.readReply().status == 200)
  }

  @Test func disconnectIsReportedAtOnce() throws {
    let closed = Observed(0)
    let server = try TestServer { _, exchange in
      exchange.onClose { closed.update { $0 += 1 } }
      exchange.stream(status: 200, headers: { _ in }, from: LineSource())
    }
    let client = try server.connect()
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(server.wait { server.server.openConnections == 1 })
    client.endSending()
    #expect(closed.wait { $0 == 1 })
    _ = client.readToEnd()
    #expect(server.wait { server.server.openConnections == 0 })
  }
}
