import Testing

@testable import Transport

@Suite struct FuzzTests {
  private static let seeds: [UInt64] = [1, 20, 300, 4000]

  /// Requests cut, joined, repeated and altered at random places.
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
    var random = SplitMix(seed)
    for _ in 0..<3000 {
      let bytes = [UInt8.random(in: 0...255, using: &random)] + Self.input(&random)
      bytes.withUnsafeBytes { HTTPFuzz.run($0) }
    }
  }

  @Test(arguments: seeds)
  func anythingSentEndsInRepliesAndAClose(seed: UInt64) throws {
    var random = SplitMix(seed)
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

/// A small seeded generator.
private struct SplitMix: RandomNumberGenerator {
  private var state: UInt64

  init(_ seed: UInt64) {
    state = seed
  }

  mutating func next() -> UInt64 {
    state &+= 0x9e37_79b9_7f4a_7c15
    var mixed = state
    mixed = (mixed ^ (mixed >> 30)) &* 0xbf58_476d_1ce4_e5b9
    mixed = (mixed ^ (mixed >> 27)) &* 0x94d0_49bb_1331_11eb
    return mixed ^ (mixed >> 31)
  }
}
