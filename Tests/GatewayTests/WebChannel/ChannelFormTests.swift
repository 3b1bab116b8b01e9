import Testing
import TestSupport

@testable import FirestoreAPI
@testable import GatewayCore

/// The forms of POSTs, the query parameters, and the order of messages.
@Suite struct ChannelFormTests {
  private static func form(_ text: String) throws -> ChannelForm {
    try Array(text.utf8).withUnsafeBytes { bytes throws(ChannelFault) in try ChannelForm(bytes) }
  }

  private static func parameters(_ text: String) throws -> ChannelParameters {
    try Array(text.utf8).withUnsafeBytes { bytes throws(ChannelFault) in try ChannelParameters(bytes) }
  }

  @Test(arguments: [
    ("", []),
    ("count=0", []),
    ("count=1&ofs=0&req0___data__=%7B%7D", ["0 {}"]),
    ("headers=X%3Ay%0D%0A&count=1&ofs=0&req0___data__=a+b%2Bc", ["0 a b+c"]),
    ("count=3&ofs=7&req0___data__=a&req1___data__=b&req2___data__=c", ["7 a", "8 b", "9 c"]),
    // A retry may begin late, skip numbers, and state the offset last.
    ("count=2&req3___data__=x&req5___data__=y&ofs=10", ["13 x", "15 y"]),
    ("count=2&ofs=1&req0_type=_badmap&req1___data__=b", ["1 -", "2 b"]),
    ("count=1&ofs=0&req0___data__=%C3%BC%F0%9F%98%80", ["0 ü😀"]),
    ("req0___data__=", ["0 "]),
  ])
  func formsContainMessages(_ text: String, _ expected: [String]) throws {
    let maps = try Self.form(text).maps
    #expect(maps.map { "\($0.number) \($0.text.map { String(decoding: $0, as: UTF8.self) } ?? "-")" } == expected)
  }

  @Test(arguments: [
    "count=1&ofs=0&req0___data__=%7", "count=1&ofs=0&req0___data__=%zz", "ofs=-1&req0___data__=a", "ofs=x", "ofs=",
    "ofs=99999999999999999999&req0___data__=a", "req___data__=a", "reqx___data__=a", "req0=a", "req0_other=a",
    "req0_type=_other", "headers=%",
    (0...ChannelForm.mapsMax).map { "req\($0)___data__=a" }.joined(separator: "&"),
  ])
  func malformedFormsAreRefused(_ text: String) {
    #expect(throws: ChannelFault.self) { try Self.form(text) }
  }

  @Test func headersAreFoundInABlock() throws {
    let block = Array("X-Goog-Api-Client:gl-js/\r\nAuthorization: Bearer a:b \r\nContent-Type:text/plain\r\n\r\n".utf8)
    block.withUnsafeBytes { block in
      let found = ChannelForm.header("authorization", in: block).map { String(decoding: $0, as: UTF8.self) }
      #expect(found == "Bearer a:b")
      #expect(ChannelForm.header("author", in: block) == nil)
      #expect(ChannelForm.header("authorization", in: UnsafeRawBufferPointer(rebasing: block.dropFirst(27))) == nil)
    }
  }

  @Test func parametersAreParsed() throws {
    let first = try Self.parameters(
      "VER=8&database=projects%2Fp%2Fdatabases%2F(default)&RID=66923&CVER=22&X-HTTP-Session-Id=gsessionid&zx=a&t=1"
        + "&%24httpHeaders=Authorization%3ABearer%20x%0D%0A")
    #expect(first.sessionID == nil && first.acknowledged == nil && !first.isTerminate)
    #expect(first.headers.map { String(decoding: $0, as: UTF8.self) } == "Authorization:Bearer x\r\n")
    let streaming = try Self.parameters("VER=8&RID=rpc&SID=abc&AID=3&CI=0&TYPE=xmlhttp&zx=b&t=1")
    #expect(streaming.sessionID == "abc" && streaming.acknowledged == 3 && streaming.backChannel == .streaming)
    for (text, milliseconds) in [("", 30_000), ("&TO=5000", 5_000), ("&TO=9999999", 30_000), ("&TO=-5", 1_000)] {
      let polling = try Self.parameters("VER=8&RID=rpc&SID=abc&AID=0&CI=1\(text)")
      #expect(polling.backChannel == .polling(milliseconds: milliseconds))
    }
    #expect(try Self.parameters("VER=8&SID=abc&RID=5&TYPE=terminate").isTerminate)
    for text in ["VER=7", "VER=8&AID=x", "VER=8&AID=-2", "VER=8&AID=99999999999999999999", "VER=8&CI=2", "VER=%"] {
      #expect(throws: ChannelFault.self, "\(text)") { try Self.parameters(text) }
    }
  }

  @Test func sessionIDsAreUniqueAndParsed() {
    let ids = (0..<100).map { _ in SessionID() }
    #expect(Set(ids).count == 100)
    for id in ids { #expect(SessionID(id.text) == id && id.text.utf8.count == 32) }
    for text in [
      "", "0", String(repeating: "g", count: 32), String(repeating: "0", count: 33),
      "０" + String(repeating: "0", count: 29),
    ] {
      #expect(SessionID(text) == nil)
    }
  }

  /// The numbers of messages in each POST, and the order in which messages are delivered.
  @Test(arguments: [
    ([[0], [1], [2]], [0, 1, 2]),
    ([[0, 1, 2]], [0, 1, 2]),
    // A POST whose response was lost is sent again, with newer messages.
    ([[0], [1], [1], [1, 2], [2, 3]], [0, 1, 2, 3]),
    // Out of order, because several POSTs are in flight.
    ([[2], [0], [1]], [0, 1, 2]),
    ([[3, 4], [0], [2], [1], [3]], [0, 1, 2, 3, 4]),
    ([[0], [2, 3]], [0]),
    ([[5]], []),
  ])
  func messagesAreDeliveredOnceAndInOrder(_ posts: [[Int]], _ expected: [Int]) throws {
    var sequence = MapSequence()
    var taken: [Int] = []
    for post in posts {
      for number in post { try sequence.add(ChannelForm.Map(number: number, text: Array("\(number)".utf8))) }
      while let text = sequence.takeNext() { taken.append(Int(String(decoding: text, as: UTF8.self)) ?? -1) }
    }
    #expect(taken == expected)
    #expect(sequence.next == expected.count)
    if taken.count == Set(posts.joined()).count { #expect(sequence.heldBytes == 0) }
  }

  @Test(arguments: [1, 2, 3, 4] as [UInt64])
  func damagedFormsAreParsedOrRefused(_ seed: UInt64) {
    var random = SplitMix(seed: seed)
    let tokens = [
      "&", "=", "%", "req", "_", "___data__=", "ofs=", "count=", "headers=", "0", "9", "%00", "%ff", "type=_badmap",
    ]
    let whole = Array("headers=A%3Ab%0D%0A&count=2&ofs=12&req0___data__=%7B%22a%22%3A1%7D&req1_type=_badmap".utf8)
    for _ in 0..<2000 {
      var bytes = whole
      for _ in 0..<Int.random(in: 1...4, using: &random) {
        let place = Int.random(in: 0...bytes.count, using: &random)
        switch Int.random(in: 0..<4, using: &random) {
        case 0: bytes.insert(contentsOf: Array(random.pick(tokens).utf8), at: place)
        case 1: bytes.removeSubrange(place..<min(bytes.count, place + 3))
        case 2: bytes.removeLast(bytes.count - place)
        default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
        }
      }
      bytes.withUnsafeBytes { bytes in
        _ = try? ChannelParameters(bytes)
        guard let form = try? ChannelForm(bytes) else { return }
        #expect(form.maps.allSatisfy { $0.number >= 0 }, "seed \(seed)")
        #expect(form.maps.reduce(0) { $0 + ($1.text?.count ?? 0) } <= bytes.count, "seed \(seed)")
        var sequence = MapSequence()
        for map in form.maps { try? sequence.add(map) }
        while let text = sequence.takeNext() { #expect(text.count <= bytes.count) }
        #expect(sequence.heldBytes >= 0)
      }
    }
  }

  @Test func malformedMessagesAreNumberedAndGapsAreLimited() throws {
    var sequence = MapSequence()
    try sequence.add(ChannelForm.Map(number: 1, text: [1]))
    try sequence.add(ChannelForm.Map(number: 0, text: nil))
    #expect(sequence.takeNext() == [1])
    #expect(sequence.takeNext() == nil && sequence.next == 2)
    #expect(throws: ChannelFault.self) {
      try sequence.add(ChannelForm.Map(number: 3 + MapSequence.gapMax, text: []))
    }
    let large = [UInt8](repeating: 0x20, count: MapSequence.heldBytesMax / 2)
    try sequence.add(ChannelForm.Map(number: 3, text: large))
    try sequence.add(ChannelForm.Map(number: 4, text: large))
    #expect(throws: ChannelFault.self) { try sequence.add(ChannelForm.Map(number: 5, text: [1])) }
    // The missing message is accepted even above the limit.
    try sequence.add(ChannelForm.Map(number: 2, text: large))
    for _ in 2...4 { #expect(sequence.takeNext()?.count == large.count) }
    #expect(sequence.takeNext() == nil && sequence.heldBytes == 0)
  }
}
