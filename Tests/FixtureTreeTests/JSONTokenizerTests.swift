import Glibc
import Testing

@testable import FixtureTree

@Suite struct JSONTokenizerTests {
  /// Returns the tokens of a text with their positions. If an error ends them, it is the last element.
  static func tokens(
    _ bytes: [UInt8], _ extent: JSONTokenizer.Extent = .oneValue, chunkBytesMax: Int = .max, bufferBytes: Int = 64
  ) -> [String] {
    var tokenizer = JSONTokenizer(
      ByteSource(bytes, chunkBytesMax: chunkBytesMax, name: "x"), extent, bufferBytes: bufferBytes)
    var all: [String] = []
    do {
      while true {
        let token = try tokenizer.next()
        if token == .end { return all }
        var line = "\(tokenizer.line):\(tokenizer.column) \(token)"
        if [.key, .string, .number].contains(token) {
          line += " " + String(decoding: tokenizer.text, as: UTF8.self).debugDescription
        }
        all.append(line)
      }
    } catch {
      all.append("\(error)")
    }
    return all
  }

  @Test func reportsThePositionOfEveryToken() {
    let text = "\u{FEFF}{\"a\": [1, -2.5e3,\n  true,false , null, \"x\\u00e9\\ud83d\\ude00\\n\"],\r\n\t\"\": {}}\n"
    #expect(
      Self.tokens(Array(text.utf8)) == [
        "1:1 objectStart", "1:2 key \"a\"", "1:7 arrayStart", "1:8 number \"1\"", "1:11 number \"-2.5e3\"",
        "2:3 true", "2:8 false", "2:16 null", "2:22 string \"xé😀\\n\"", "2:45 arrayEnd", "3:2 key \"\"",
        "3:6 objectStart", "3:7 objectEnd", "3:8 objectEnd",
      ])
  }

  static let valid = [
    "{}", "[]", "0", "-0", "1e5", "1E+05", "1.25e-3", "\"\"", "\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", "[[[]]]",
    " [ 1 , 2 ] ", "\"\u{7F}é漢😀\"", "true", "null", "[\"\\u0000\"]", "{\"a\":{\"b\":[]}}",
    "\"0123456789012345678901234567890123456789012345678901234567890123456789012345678901234567\"",
  ]

  @Test(arguments: valid)
  func readsValidText(text: String) {
    let tokens = Self.tokens(Array(text.utf8))
    #expect(!tokens.isEmpty)
    #expect(!tokens.contains { $0.hasPrefix("x:") }, "\(tokens)")
  }

  static let invalid: [(text: String, error: String)] = [
    ("", "x:1:1: the file is empty; it must contain one JSON object"),
    ("{", "x:1:2: the text ends too early; the file may be cut short"),
    ("[1 2]", "x:1:4: expected \",\" or \"]\", found \"2\""),
    ("{\"a\" 1}", "x:1:6: expected \":\" after the key, found \"1\""),
    ("{\"a\":1,}", "x:1:8: expected a key in double quotes, found \"}\""),
    ("[1,]", "x:1:4: expected a value, found \"]\""),
    ("{a:1}", "x:1:2: expected a key in double quotes, found \"a\""),
    ("{'a':1}", "x:1:2: expected a key in double quotes, found \"'\""),
    ("{} {}", "x:1:4: expected the end of the text, found \"{\""),
    ("01", "x:1:1: \"01\" is not a JSON number"), ("1.", "x:1:1: \"1.\" is not a JSON number"),
    ("-", "x:1:1: \"-\" is not a JSON number"), ("1e", "x:1:1: \"1e\" is not a JSON number"),
    ("1-2", "x:1:1: \"1-2\" is not a JSON number"), (".5", "x:1:1: expected a value, found \".\""),
    ("tru", "x:1:1: expected a value; did you mean true?"), ("nul1", "x:1:1: expected a value; did you mean null?"),
    ("truex", "x:1:5: expected the end of the text, found \"x\""),
    ("\"a", "x:1:1: a string is not closed"),
    ("\"a\nb\"", "x:1:1: a string contains a control character; write it as an escape such as \\n"),
    ("\"\\x\"", "x:1:1: a string contains an unknown escape; write a backslash as \\\\"),
    ("\"\\u12G4\"", "x:1:1: a string contains \\u without four hexadecimal digits"),
    ("\"\\ud800\"", "x:1:1: a string contains half of a surrogate pair, which is not a character"),
    ("\"\\ud800\\u0041\"", "x:1:1: a string contains half of a surrogate pair, which is not a character"),
    ("\"\\udc00\"", "x:1:1: a string contains half of a surrogate pair, which is not a character"),
    ("[\n  NaN]", "x:2:3: expected a value, found \"N\""),
    ("\u{0}", "x:1:1: expected JSON, found byte 0"), ("é", "x:1:1: expected a value, found byte 195"),
    ("// no\n{}", "x:1:1: expected a value, found \"/\""),
  ]

  @Test(arguments: invalid.indices)
  func refusesInvalidTextWithItsPosition(index: Int) {
    let (text, error) = Self.invalid[index]
    #expect(Self.tokens(Array(text.utf8)).last == error)
  }

  @Test(
    arguments: [
      [0x22, 0xFF, 0x22], [0x22, 0xC0, 0x80, 0x22], [0x22, 0xED, 0xA0, 0x80, 0x22],
      [0x22, 0xF5, 0x80, 0x80, 0x80, 0x22],
      [0x22, 0xE2, 0x82, 0x22],
    ] as [[UInt8]])
  func refusesInvalidUTF8(bytes: [UInt8]) {
    #expect(Self.tokens(bytes).last == "x:1:1: a string is not valid UTF-8; save the file as UTF-8")
  }

  @Test func limitsNestingAndLengths() {
    let deep = [UInt8](repeating: UInt8(ascii: "["), count: JSONTokenizer.nestingMax + 1)
    #expect(Self.tokens(deep).last == "x:1:513: objects and arrays nest deeper than 512 levels")
    let long = [UInt8(ascii: "\"")] + [UInt8](repeating: UInt8(ascii: "a"), count: JSONTokenizer.stringBytesMax + 70)
    #expect(Self.tokens(long).last == "x:1:1: a string is longer than 2097152 bytes")
    let digits = [UInt8](repeating: UInt8(ascii: "1"), count: JSONTokenizer.numberBytesMax + 1)
    #expect(Self.tokens(digits).last == "x:1:1: a number has more than 4096 digits")
  }

  @Test func readsSeveralValues() {
    #expect(
      Self.tokens(Array("{}\n1 \n[]\n".utf8), .manyValues) == [
        "1:1 objectStart", "1:2 objectEnd", "2:1 number \"1\"", "3:1 arrayStart", "3:2 arrayEnd",
      ])
    #expect(Self.tokens([], .manyValues).isEmpty)
  }

  @Test func tokensDoNotDependOnThePieces() {
    for text in Self.valid + Self.invalid.map(\.text) {
      let whole = Self.tokens(Array(text.utf8), bufferBytes: 1 << 16)
      for (chunk, buffer) in [(1, 64), (2, 3), (7, 5), (.max, 1)] {
        #expect(
          Self.tokens(Array(text.utf8), chunkBytesMax: chunk, bufferBytes: buffer) == whole,
          "\(text) in pieces of \(chunk), buffer \(buffer)")
      }
    }
  }

  static let doubles = [
    "0", "-0", "1", "0.1", "-2.5e3", "1e22", "1e23", "123456789012345678901234567890", "5e-324", "1e-400", "0e5",
    "0.000000000000000000000000000000001", "9007199254740993", "2.2250738585072011e-308", "1.7976931348623157e308",
    "123456789012345e-22", "0.3", "100000000000000000000000e-20", "1E+2", "179.99999999999997",
  ]

  @Test(arguments: doubles)
  func readsTheNearestDouble(text: String) {
    let read = Array(text.utf8).withUnsafeBytes { JSONNumber.double($0) }
    #expect(read?.bitPattern == strtod(text, nil).bitPattern, "\(text) was read as \(String(describing: read))")
  }

  @Test func checksTheRangeOfNumbers() {
    #expect(Array("1e999".utf8).withUnsafeBytes { JSONNumber.double($0) } == nil)
    #expect(Array("9223372036854775807".utf8).withUnsafeBytes { JSONNumber.integer($0) } == .max)
    #expect(Array("-9223372036854775808".utf8).withUnsafeBytes { JSONNumber.integer($0) } == .min)
    #expect(Array("9223372036854775808".utf8).withUnsafeBytes { JSONNumber.integer($0) } == nil)
    #expect(Array("-9223372036854775809".utf8).withUnsafeBytes { JSONNumber.integer($0) } == nil)
  }
}
