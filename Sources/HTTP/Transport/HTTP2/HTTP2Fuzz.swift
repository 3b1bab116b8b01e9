import Synchronization

/// The fuzzing entry of the HTTP/2 side. Needs no socket. A broken invariant traps.
package enum HTTP2Fuzz {
  private static let preface = Array("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".utf8)

  /// Processes `bytes` as the input that a client sends after the preface, in pieces whose size the first byte sets.
  /// The server responds, streams, pauses and rejects. Costs a few passes over the bytes. Only one call runs at a
  /// time.
  package static func run(_ bytes: UnsafeRawBufferPointer) {
    server.withLock { server in
      guard let server else { return }
      server.loop.adoptThread()
      run(bytes, server)
    }
  }

  private static func run(_ bytes: UnsafeRawBufferPointer, _ server: LoopServer) {
    guard let first = bytes.first, let multiplexer = HTTP2Multiplexer(server, socket: -1) else { return }
    preface.withUnsafeBytes { multiplexer.receive($0) }
    let pieceBytes = first == 0 ? bytes.count : Int(first % 64) + 1
    var position = 1
    var sentBytes = 0
    var out: [UInt8] = []
    while position < bytes.count && multiplexer.isAlive {
      let end = min(position + pieceBytes, bytes.count)
      multiplexer.receive(UnsafeRawBufferPointer(rebasing: bytes[position..<end]))
      position = end
      send(multiplexer, &out)
      sentBytes += out.count
      // Responses are short, so the output is proportional to the input.
      precondition(sentBytes < 4096 + bytes.count * 4096, "the output is out of proportion to the input")
    }
    // Closing the connection ends streams that wait for events.
    multiplexer.close()
    precondition(
      multiplexer.streams.isEmpty && multiplexer.unsentBytes == 0, "streams or unsent bytes remain after the close")
    precondition(server.pool.isWhole, "a stream did not return its part of the budget")
  }

  private static func send(_ multiplexer: HTTP2Multiplexer, _ out: inout [UInt8]) {
    out.removeAll(keepingCapacity: true)
    for _ in 0..<64 {
      let before = out.count
      multiplexer.send(into: &out, bytesMax: before + 4096)
      if out.count == before { break }
    }
    precondition(multiplexer.streams.count <= 16, "more streams than the limit")
  }

  /// A server on a loop that never runs.
  private static let server = Mutex(makeServer())

  private static func makeServer() -> LoopServer? {
    guard let loop = try? EventLoop(name: "fuzz", clock: ManualClock()) else { return nil }
    var configuration = TransportConfiguration()
    configuration.headerBytesMax = 1024
    configuration.headerFieldsMax = 16
    configuration.targetBytesMax = 256
    configuration.bodyBytesMax = 1024
    configuration.bufferedBytesMax = 16 * 1024
    configuration.streamsMax = 16
    configuration.loops = 1
    return LoopServer(
      loop: loop, configuration: configuration, counters: LoopCounters(), credentials: nil,
      memory: ServerMemory(configuration), handler: Handler())
  }

  /// A handler whose behavior depends on the length of the target.
  private final class Handler: RequestHandler {
    func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
      touch(request)
      switch request.target.count % 4 {
      case 0: return nil
      case 1:
        let echo = Echo(exchange)
        exchange.stream(status: 200, headers: { $0.add("x", "y") }, from: echo)
        return echo
      case 2:
        exchange.respond(status: 403, headers: { _ in }, body: { $0.append(1) })
        return nil
      default:
        exchange.pauseBody()
        return Echo(exchange)
      }
    }

    func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
      touch(request)
      let body = Array(request.body)
      exchange.respond(status: 200, headers: { _ in }, body: { $0.append(contentsOf: body) }) { trailers in
        trailers.add("t", "v")
      }
    }

    /// Reads everything that a handler may read.
    private func touch(_ request: borrowing HTTPRequest) {
      precondition(request.version == .http2 && !request.target.isEmpty)
      var sum: UInt8 = 0
      for byte in request.target { sum &+= byte }
      for index in 0..<request.headerCount {
        let (name, value) = request.header(at: index)
        precondition(!name.isEmpty)
        for byte in name { sum &+= byte }
        for byte in value { sum &+= byte }
      }
      let padded = UnsafeRawBufferPointer(
        start: request.body.baseAddress, count: request.body.count + InputBuffer.paddingBytes)
      for byte in padded { sum &+= byte }
      withExtendedLifetime(sum) {}
    }
  }

  private final class Echo: BodySink, BodySource {
    private unowned let exchange: Exchange
    private var bytes: [UInt8] = []
    private var isEnded = false

    init(_ exchange: Exchange) {
      self.exchange = exchange
    }

    func received(_ piece: UnsafeRawBufferPointer) {
      precondition(!isEnded && !exchange.isClosed)
      bytes.append(contentsOf: piece)
      exchange.resumeBody()
      exchange.resume()
    }

    func ended() {
      precondition(!isEnded && !exchange.isClosed)
      isEnded = true
      exchange.resume()
    }

    func nextSlice(into out: inout [UInt8]) -> BodyProgress {
      out.append(contentsOf: bytes)
      bytes = []
      return isEnded ? .finished : .waiting
    }
  }
}
