import Files
import Testing

@Suite struct NamePatternTests {
  static let table: [(pattern: String, matches: [String], others: [String])] = [
    ("foo*bar", ["foobar", "foo-bar"], ["foo/bar", "foobarx"]),
    ("foo**bar", ["foobar", "foo/bar", "foo/x/bar"], ["foo/ba"]),
    ("**/foobar", ["foobar", "foo/foobar", "a/b/foobar"], ["xfoobar", "foobar/x"]),
    ("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["ab", "a/xb"]),
    ("*/ba[rz]", ["foo/bar", "foo/baz", "/bar"], ["foo/bax", "a/foo/bar"]),
    ("*/ba[!a-y]", ["foo/baz"], ["foo/bar", "foo/ba/"]),
    ("**/{foobar,baz}", ["foobar", "foo/baz"], ["foo/bar"]),
    ("{a,b}{1,2}", ["a1", "b2"], ["a3", "a"]),
    ("?", ["x", "ä", "日"], ["", "xx", "/"]),
    ("a?c", ["abc"], ["ac", "a/c"]),
    ("*", ["", "abc"], ["a/b"]),
    ("**", ["", "abc", "a/b"], []),
    ("", [""], ["a"]),
    ("a**b**c**d", ["abcd", "a1b2c3d"], ["abc"]),
    ("[a]b", ["ab"], ["[a]b"]),
  ]

  @Test(arguments: table.indices)
  func patternMatchesItsNames(row: Int) throws {
    let (text, matches, others) = Self.table[row]
    let pattern = try NamePattern(text)
    for name in matches { #expect(pattern.matches(Array(name.utf8)), "\(text) and \(name)") }
    for name in others { #expect(!pattern.matches(Array(name.utf8)), "\(text) and not \(name)") }
  }

  @Test func refusesBadPatterns() {
    for text in ["[a", "{a,b", String(repeating: "{a,b}", count: 12), String(repeating: "x", count: 1025)] {
      #expect(throws: FilesError.self, "\(text.prefix(20))") { try NamePattern(text) }
    }
  }

  @Test func limitsTheTotalLengthOfAlternatives() throws {
    let long = String(repeating: "x", count: 900)
    #expect(throws: FilesError.self) { try NamePattern("{a,b,c,d,e}\(long)") }
    #expect(try NamePattern("{a,b,c,d}\(long)").matches(Array("d\(long)".utf8)))
  }

  @Test func pageEndsAfterManyMatchingSteps() throws {
    let files = try TestFiles()
    for index in 0..<40 { try files.put(String(repeating: "a", count: 900) + "\(10 + index)", "x") }
    var listing = ObjectListing(bucket: "b")
    listing.pattern = try NamePattern("{*,a*,aa*}" + String(repeating: "a*", count: 500))
    let counts = try files.pageCounts(listing)
    #expect(counts.count > 1 && counts.reduce(0, +) == 40, "\(counts)")
  }

  @Test func manyWildcardsMatchQuickly() throws {
    let pattern = try NamePattern(String(repeating: "*a", count: 100))
    #expect(!pattern.matches([UInt8](repeating: UInt8(ascii: "a"), count: 1000) + [UInt8(ascii: "b")]))
  }
}
