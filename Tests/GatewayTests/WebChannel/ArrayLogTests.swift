import Testing
import TestSupport

@testable import FirestoreAPI
@testable import GatewayCore

/// Numbered arrays: chunks, lengths, escapes, and retention.
@Suite struct ArrayLogTests {
  private static func append(_ text: String, to log: inout ArrayLog) {
    Array(text.utf8).withUnsafeBytes { log.append($0) }
  }

  private static func chunk(_ log: ArrayLog, above number: Int, bytesMax: Int = .max) -> (text: String, last: Int?) {
    var out: [UInt8] = []
    let last = log.appendChunk(above: number, bytesMax: bytesMax, to: &out)
    return (String(decoding: out, as: UTF8.self), last)
  }

  @Test func chunksCarryTheirLength() {
    var log = ArrayLog()
    #expect(log.last == 0 && log.isEmpty && Self.chunk(log, above: 0) == ("", nil))
    Self.append("{}", to: &log)
    Self.append(#""noop""#, to: &log)
    #expect(Self.chunk(log, above: 0) == ("23\n[[1,[{}]],[2,[\"noop\"]]]", 2))
    #expect(Self.chunk(log, above: 0, bytesMax: 1) == ("10\n[[1,[{}]]]", 1))
    #expect(Self.chunk(log, above: 1) == ("14\n[[2,[\"noop\"]]]", 2))
    #expect(Self.chunk(log, above: 2) == ("", nil))
  }

  @Test(arguments: [
    (#"{"a":"b"}"#, #"{"a":"b"}"#),
    (#"{"ü":"😀"}"#, #"{"\u00fc":"\ud83d\ude00"}"#),
    ("\"\u{2028}日\\n\"", #""\u2028\u65e5\n""#),
    ("\"e\u{301}\"", #""e\u0301""#),
  ])
  func nonASCIICharactersAreEscaped(_ message: String, _ expected: String) {
    var log = ArrayLog()
    Self.append(message, to: &log)
    let text = "[[1,[\(expected)]]]"
    #expect(Self.chunk(log, above: 0).text == "\(text.utf8.count)\n\(text)")
  }

  @Test func invalidUTF8BecomesTheReplacementCharacter() {
    var log = ArrayLog()
    ([0x22, 0xFF, 0xC3, 0x22] as [UInt8]).withUnsafeBytes { log.append($0) }
    #expect(Self.chunk(log, above: 0).text.contains(#""\ufffd\ufffd""#))
  }

  @Test(arguments: [1, 2, 3, 4, 5] as [UInt64])
  func logBehavesLikeAListOfStrings(_ seed: UInt64) {
    var random = SplitMix(seed: seed)
    var log = ArrayLog()
    var texts: [String] = []  // The texts of arrays 1, 2, …
    var dropped = 0
    for step in 0..<600 {
      switch Int.random(in: 0..<10, using: &random) {
      case 0..<5:
        let message = "\"\(String(repeating: "x", count: Int.random(in: 0..<40, using: &random)))\""
        Self.append(message, to: &log)
        texts.append("[\(texts.count + 1),[\(message)]]")
      case 5..<7:
        let number = Int.random(in: 0...(texts.count + 1), using: &random)
        log.drop(through: number)
        dropped = max(dropped, min(number, texts.count))
      default:
        let number = Int.random(in: dropped...texts.count, using: &random)
        let bytesMax = Int.random(in: 1..<400, using: &random)
        let (text, last) = Self.chunk(log, above: number, bytesMax: bytesMax)
        guard let last else {
          #expect(number == texts.count, "seed \(seed) step \(step)")
          continue
        }
        let body = "[" + texts[number..<last].joined(separator: ",") + "]"
        #expect(text == "\(body.utf8.count)\n\(body)", "seed \(seed) step \(step)")
        #expect(last == number + 1 || body.utf8.count <= bytesMax + 1, "seed \(seed) step \(step)")
      }
      #expect(log.first == dropped + 1 && log.last == texts.count, "seed \(seed) step \(step)")
      #expect(log.keptBytes == texts[dropped...].reduce(0) { $0 + $1.utf8.count + 1 }, "seed \(seed) step \(step)")
    }
  }
}
