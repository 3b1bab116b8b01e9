import Testing
import TestSupport

@testable import Transport

@Suite struct FuzzTests {
  private static let seeds: [UInt64] = [1, 20, 300, 4000]

  /// Returns requests that are cut, joined, repeated and altered at random places.
  private static func input(_ random: inout SplitMix) -> [UInt8] {
    let transcripts = TranscriptTests.accepted + TranscriptTests.refused
    var bytes: [UInt8] = []
    for _ in 0..<Int.random(in: 1...4, using: &random) {
      let text = Array(transcripts[Int.random(in: 0..<transcripts.count, using: &random)].request.utf8)
      let start = Bool.random(using: &random) ? 0 : Int.random(in: 0..<text.count, using: &random)
      bytes += text[start...].prefix(Int.random(in: 1...400, using: &random))
    }
    for _ in 0..<Int.random(in: 0...4, using: &random) {
      let index = Int.random(in: 0..<bytes.count, using: &random)
      let special: [UInt8] = [0, 9, 10, 13, 32, 48, 58, 59, 127, 255]
      switch Int.random(in: 0..<3, using: &random) {
      case 0: bytes[index] = special[Int.random(in: 0..<special.count, using: &random)]
      case 1: bytes[index] = UInt8.random(in: 0...255, using: &random)
      default: bytes.insert(special[Int.random(in: 0..<special.count, using: &random)], at: index)
      }
    }
    return bytes
  }

  @Test(arguments: seeds)
  func requestsDoNotDependOnHowTheyArrive(seed: UInt64) {
    var random = SplitMix(seed: seed)
    for _ in 0..<3000 {
      let bytes = [UInt8.random(in: 0...255, using: &random)] + Self.input(&random)
      bytes.withUnsafeBytes { HTTPFuzz.run($0) }
    }
  }

  /// Returns frames in any order, some of them damaged.
  private static func frames(_ random: inout SplitMix) -> [UInt8] {
    var bytes = HTTP2Frame.settings([(4, Int.random(in: 0...200, using: &random))]).bytes
    for _ in 0..<Int.random(in: 1...30, using: &random) {
      let stream = UInt32(Int.random(in: 0...4, using: &random) * 2 + 1)
      let isEnd = Bool.random(using: &random)
      let path = "/" + String(repeating: "a", count: Int.random(in: 0...5, using: &random))
      let count = Int.random(in: 0...300, using: &random)
      var frame =
        switch Int.random(in: 0..<10, using: &random) {
        case 0...2: HTTP2Frame.headers(stream, HTTP2Client.head("POST", path), end: isEnd)
        case 3...5: HTTP2Frame.data(stream, [UInt8](repeating: 0x61, count: count), end: isEnd)
        case 6: HTTP2Frame.windowUpdate(isEnd ? 0 : stream, count)
        case 7: HTTP2Frame.reset(stream)
        case 8: HTTP2Frame.headers(stream, [("a", String(repeating: "b", count: count * 5))], end: isEnd)
        default: HTTP2Frame(kind: .ping, payload: [UInt8](repeating: 0, count: 8))
        }
      if Int.random(in: 0..<40, using: &random) == 0 { frame.flags = UInt8.random(in: 0...255, using: &random) }
      if Int.random(in: 0..<40, using: &random) == 0, !frame.payload.isEmpty {
        frame.payload[Int.random(in: 0..<frame.payload.count, using: &random)] ^= 0x80
      }
      bytes += frame.bytes
    }
    return bytes
  }

  @Test(arguments: seeds)
  func framesInAnyOrderLeaveNothingBehind(seed: UInt64) {
    var random = SplitMix(seed: seed)
    for _ in 0..<2000 {
      let bytes = [UInt8.random(in: 0...255, using: &random)] + Self.frames(&random)
      bytes.withUnsafeBytes { HTTP2Fuzz.run($0) }
    }
  }

  @Test(arguments: seeds)
  func framesOfAPeerInAnyOrderGiveEachRequestAnOutcome(seed: UInt64) {
    var random = SplitMix(seed: seed)
    for _ in 0..<2000 {
      let bytes = [UInt8.random(in: 0...255, using: &random)] + Self.responses(&random)
      bytes.withUnsafeBytes { PeerFuzz.run($0) }
    }
  }

  /// Frames of a server, valid at first, with responses to three requests.
  private static func responses(_ random: inout SplitMix) -> [UInt8] {
    var bytes = HTTP2Frame.settings([(4, Int.random(in: 0...200, using: &random))]).bytes
    for _ in 0..<Int.random(in: 1...20, using: &random) {
      let stream = UInt32(Int.random(in: 0...3, using: &random) * 2 + 1)
      let isEnd = Bool.random(using: &random)
      let count = Int.random(in: 0...300, using: &random)
      var frame: HTTP2Frame =
        switch Int.random(in: 0...9, using: &random) {
        case 0...3: HTTP2Frame.headers(stream, [(":status", "200"), ("content-length", "\(count)")], end: isEnd)
        case 4...6: HTTP2Frame.data(stream, [UInt8](repeating: 0x61, count: count), end: isEnd)
        case 7: HTTP2Frame.reset(stream, code: isEnd ? 7 : 8)
        case 8: HTTP2Frame(kind: .goAway, payload: HTTP2Frame.number(Int(stream), bytes: 4) + [0, 0, 0, 0])
        default: HTTP2Frame.windowUpdate(isEnd ? 0 : stream, count)
        }
      if Int.random(in: 0..<40, using: &random) == 0 { frame.flags = UInt8.random(in: 0...255, using: &random) }
      bytes += frame.bytes
    }
    return bytes
  }

  @Test(arguments: seeds)
  func anyInputEndsInResponsesAndAClose(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let server = try TestServer { configuration in
      configuration.headerBytesMax = 1024
      configuration.targetBytesMax = 512
      configuration.bodyBytesMax = 2000
    }
    for round in 0..<150 {
      let client = try server.connect()
      let bytes = Self.input(&random)
      client.send(bytes)
      client.endSending()
      let replies = client.readToEnd()
      #expect(replies.isEmpty || replies.starts(with: Array("HTTP/1.1 ".utf8)), "seed \(seed), round \(round)")
    }
    #expect(server.wait { server.server.openConnections == 0 }, "seed \(seed)")
  }
}
