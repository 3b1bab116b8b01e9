import TestSupport

@testable import Transport

/// A handler with one path for each kind of exchange.
final class RelayHandler: RequestHandler {
  /// The requests that began, and the exchanges whose clients left.
  let begun = Observed(0)
  let left = Observed(0)
  /// The bytes of bodies that arrived, and those that were produced.
  let receivedBytes = Observed(0)
  let producedBytes = Observed(0)
  /// The exchange that the path `/held` keeps without a response.
  let held = Observed<Exchange?>(nil)

  static let slicesBytes = 400_000
  /// More than the bytes that may wait for another node.
  static let largeBytes = 6 << 20
  static let text = [UInt8]((0..<40_000).map { UInt8(ascii: "a") + UInt8($0 % 7) })

  func openBody(of request: borrowing HTTPRequest, _ exchange: Exchange) -> (any BodySink)? {
    switch Self.path(request) {
    case "/count": return Counter(exchange, self)
    case "/paused":
      exchange.pauseBody()
      held.value = exchange
      return Counter(exchange, self)
    case "/echo-stream":
      let echo = Echo(exchange)
      exchange.stream(status: 200, headers: { $0.add("content-type", "application/grpc") }, from: echo)
      return echo
    case "/forbidden":
      exchange.respond(status: 403, headers: { _ in }, body: { $0.append(contentsOf: Array("no".utf8)) })
      return nil
    default: return nil
    }
  }

  func handle(_ request: borrowing HTTPRequest, _ exchange: Exchange) {
    begun.value += 1
    exchange.onClose { [left] in left.value += 1 }
    let path = Self.path(request)
    switch path {
    case "/text":
      exchange.respond(
        status: 200, headers: { $0.add("Content-Type", "text/plain") }, body: { $0.append(contentsOf: Self.text) })
    case "/plain":
      exchange.respond(
        status: 200, headers: { $0.add("X-Kind", "plain") }, compressible: false,
        body: { $0.append(contentsOf: Self.text) })
    case "/none": exchange.respond(status: 204, headers: { $0.add("x-a", "b") }, body: { _ in })
    case "/unchanged": exchange.respond(status: 304, headers: { $0.add("etag", "\"1\"") }, body: { _ in })
    case "/empty": exchange.respond(status: 200, headers: { _ in }, body: { _ in })
    case "/missing":
      exchange.respond(status: 404, headers: { _ in }, body: { $0.append(contentsOf: Array("missing".utf8)) })
    case "/trailers":
      exchange.respond(
        status: 200, headers: { $0.add("content-type", "application/grpc") },
        body: { $0.append(contentsOf: Self.text) }, trailers: { $0.add("grpc-status", "0") })
    case "/trailers-only":
      exchange.respond(
        status: 200, headers: { $0.add("grpc-status", "5") }, compressible: false, body: { _ in })
    case "/large":
      producedBytes.update { $0 += Self.largeBytes }
      exchange.respond(
        status: 200, headers: { _ in }, compressible: false,
        body: { $0.append(contentsOf: [UInt8](repeating: 3, count: Self.largeBytes)) })
    case "/slices", "/sized":
      let bytes = Self.slicesBytes
      exchange.stream(
        status: 200, headers: { $0.add("x-s", "1") }, contentLength: path == "/sized" ? bytes : nil,
        from: Slices(bytes, producedBytes))
    case "/endless":
      let endless = Slices(.max, producedBytes)
      exchange.onShutdown { endless.isEnding = true }
      exchange.stream(status: 200, headers: { _ in }, from: endless)
    case "/quiet":
      let quiet = Quiet(exchange)
      exchange.onShutdown { quiet.end() }
      exchange.stream(status: 200, headers: { _ in }, from: quiet)
    case "/hang": exchange.stream(status: 200, headers: { _ in }, from: Quiet(exchange))
    case "/cut": exchange.stream(status: 200, headers: { _ in }, from: Cut())
    case "/held": held.value = exchange
    case "/hidden": exchange.respond(status: 200, headers: { $0.add("X-A", "1") }, body: { _ in })
    default:
      let seen = Self.describe(request)
      exchange.respond(status: 200, headers: { $0.add("Content-Type", "text/plain") }) {
        $0.append(contentsOf: Array(seen.utf8))
      }
    }
  }

  private static func path(_ request: borrowing HTTPRequest) -> String {
    String(decoding: request.target.prefix { $0 != UInt8(ascii: "?") }, as: UTF8.self)
  }

  /// Everything of a request that a handler may see.
  static func describe(_ request: borrowing HTTPRequest) -> String {
    var text = "\(request.version) \(request.method) \(String(decoding: request.target, as: UTF8.self))\n"
    text += "\(request.remoteAddress) \(request.withPeerAddress { Array($0) })"
    text += " \(request.isFromProxy) \(request.isFromAdminSocket) \(request.isForConsole)\n"
    var fields: [String] = []
    for index in 0..<request.headerCount {
      let (name, value) = request.header(at: index)
      let lowered = String(decoding: name, as: UTF8.self).lowercased()
      if ["connection", "expect", "transfer-encoding", "content-length"].contains(lowered) { continue }
      fields.append("\(lowered): \(String(decoding: value, as: UTF8.self))")
    }
    // HTTP/2 has the host before all other fields.
    return text + fields.sorted().joined(separator: "\n") + "\n" + String(decoding: request.body, as: UTF8.self)
  }

  private final class Counter: BodySink {
    private let exchange: Exchange
    private let handler: RelayHandler
    private var count = 0
    private var sum = 0

    init(_ exchange: Exchange, _ handler: RelayHandler) {
      self.exchange = exchange
      self.handler = handler
      exchange.onClose { handler.left.value += 1 }
    }

    func received(_ bytes: UnsafeRawBufferPointer) {
      count += bytes.count
      for byte in bytes { sum = (sum &* 31 &+ Int(byte)) & 0xffff_ffff }
      handler.receivedBytes.value = count
    }

    func ended() {
      let text = "\(count) \(sum)"
      exchange.respond(status: 200, headers: { _ in }) { $0.append(contentsOf: Array(text.utf8)) }
    }
  }

  private final class Echo: BodySink, BodySource {
    private let exchange: Exchange
    private var bytes: [UInt8] = []
    private var isEnded = false

    init(_ exchange: Exchange) { self.exchange = exchange }

    func received(_ piece: UnsafeRawBufferPointer) {
      bytes.append(contentsOf: piece)
      exchange.resume()
    }

    func ended() {
      isEnded = true
      exchange.resume()
    }

    func nextSlice(into out: inout [UInt8]) -> BodyProgress {
      out.append(contentsOf: bytes)
      bytes = []
      return isEnded ? .finished : .waiting
    }

    func addTrailers(to trailers: inout HeaderWriter) { trailers.add("grpc-status", "0") }
  }

  private final class Slices: BodySource {
    private var left: Int
    private var position = 0
    private let produced: Observed<Int>
    var isEnding = false

    init(_ count: Int, _ produced: Observed<Int>) {
      left = count
      self.produced = produced
    }

    func nextSlice(into out: inout [UInt8]) -> BodyProgress {
      let count = min(left, Exchange.sliceBytes)
      for _ in 0..<count {
        out.append(UInt8(position % 251))
        position += 1
      }
      left -= count
      produced.value += count
      return left == 0 || isEnding ? .finished : .more
    }
  }

  private final class Quiet: BodySource {
    private let exchange: Exchange
    private var isBegun = false
    private var isEnding = false

    init(_ exchange: Exchange) { self.exchange = exchange }

    func end() {
      isEnding = true
      exchange.resume()
    }

    func nextSlice(into out: inout [UInt8]) -> BodyProgress {
      if !isBegun {
        isBegun = true
        out.append(UInt8(ascii: "b"))
      }
      guard isEnding else { return .waiting }
      out.append(UInt8(ascii: "e"))
      return .finished
    }
  }

  private final class Cut: BodySource {
    private var isBegun = false

    func nextSlice(into out: inout [UInt8]) -> BodyProgress {
      guard !isBegun else { return .failed }
      isBegun = true
      out.append(contentsOf: [1, 2, 3])
      return .more
    }
  }
}
