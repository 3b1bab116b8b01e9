import Testing

@testable import Hosting

/// Globs and regular expressions of rules.
@Suite struct PatternTests {
  /// A glob, paths that it matches, and paths that it does not match.
  @Test(
    arguments: [
      ("/a", ["/a"], ["/a/", "/ab", "/"]),
      ("a/b", ["/a/b"], ["/a", "/x/a/b"]),
      ("*", ["/a", "/.env"], ["/", "/a/b"]),
      ("/*", ["/a"], ["/", "/a/b"]),
      ("**", ["/", "/a", "/a/b/c.js", "/.well-known/x"], []),
      ("/a/**", ["/a/", "/a/b", "/a/b/c"], ["/a", "/ab"]),
      ("/a{,/**}", ["/a", "/a/", "/a/b/c"], ["/ab"]),
      ("/a/**/z", ["/a/z", "/a/b/z", "/a/b/c/z"], ["/az", "/a/bz", "/z"]),
      ("**/*.js", ["/x.js", "/a/b/x.js", "/a/.js"], ["/x.jsx", "/x.js/y"]),
      ("**/*.@(jpg|jpeg|png)", ["/x.jpg", "/a/y.png"], ["/x.gif", "/jpg"]),
      ("/@(de|fr)/**", ["/de/x", "/fr/"], ["/en/x", "/defr/x"]),
      ("/v+([0-9])", ["/v1", "/v123"], ["/v", "/vx", "/v1x"]),
      ("/x?(y)z", ["/xz", "/xyz"], ["/xyyz"]),
      ("/x*(y|zz)", ["/x", "/xyzzy"], ["/xz"]),
      ("**/!(*.js|*.css)", ["/a", "/b/c.html"], ["/a.js", "/b/c.css"]),
      ("/!(api)/**", ["/app/x", "/apis/x"], ["/api/x"]),
      ("!/api/**", ["/", "/app", "/api"], ["/api/x"]),
      ("/file?.txt", ["/file1.txt", "/file?.txt"], ["/file.txt", "/file/.txt"]),
      ("/[a-c]x", ["/ax", "/cx"], ["/dx", "/-x"]),
      ("/[!a-c]x", ["/dx"], ["/ax", "//x"]),
      ("/{a,b/c}/d", ["/a/d", "/b/c/d"], ["/b/d", "/{a,b/c}/d"]),
      ("/{a}", ["/{a}"], ["/a"]),
      ("/a.b+(c)", ["/a.bc"], ["/aXbc"]),
      ("/a[", ["/a["], ["/a"]),
      ("/\\*", ["/*"], ["/a"]),
      ("/größe/*", ["/größe/ä"], ["/grösse/ä"]),
      ("a**b", ["/ab", "/axb"], ["/a/b"]),
      ("/:id", ["/:id"], ["/x"]),
    ] as [(String, [String], [String])])
  func globsMatchAsInFirebase(glob: String, matching: [String], others: [String]) throws {
    let pattern = try PathPattern(glob: glob)
    for path in matching { #expect(pattern.matches(Array(path.utf8)), "\(glob) must match \(path)") }
    for path in others { #expect(!pattern.matches(Array(path.utf8)), "\(glob) must not match \(path)") }
  }

  @Test(arguments: ["/@(a", "/a/{b,@(c", String(repeating: "@(", count: 40) + "a" + String(repeating: ")", count: 40)])
  func incompleteGlobsAreRefused(glob: String) {
    #expect(throws: PathPattern.Failure.self) { try PathPattern(glob: glob) }
  }

  @Test func regularExpressionsMatchAPartOfThePath() throws {
    #expect(try PathPattern(regex: "/b[0-9]+").matches(Array("/a/b12/c".utf8)))
    #expect(try !PathPattern(regex: "^/b$").matches(Array("/a/b".utf8)))
    #expect(throws: PathPattern.Failure.self) { try PathPattern(regex: "(a") }
    // RE2 has no references to groups, which take exponential time in other engines.
    #expect(throws: PathPattern.Failure.self) { try PathPattern(regex: "(a)\\1") }
    #expect(throws: PathPattern.Failure.self) { try PathPattern(regex: "((a{1000}){1000}){1000}") }
  }

  /// A time limit of the test would include its waits for a thread, behind all other tests.
  @Test func hostilePatternsTakeLinearTime() throws {
    let path = Array(("/" + String(repeating: "a", count: HostingLimits.pathBytesMax - 2) + "!").utf8)
    let duration = try ContinuousClock().measure {
      for regex in ["(a*)*$", "(a|aa)+$", "(.*)(.*)(.*)(.*)x", "(a+)+b"] {
        _ = try PathPattern(regex: "^/" + regex).matches(path)
      }
      for glob in ["/*a*a*a*a*a*a*a*b", "/+(+(+(a)))b", "/**/*a/**/*b/**/*c", "/!(*a*a*a)!(*a*a)"] {
        _ = try PathPattern(glob: glob).matches(path)
      }
    }
    // About 1 ms.
    #expect(duration < .seconds(20), "\(duration)")
  }

  /// A source, a path and the location to which the redirect leads, or `nil` if it does not match.
  @Test(
    arguments: [
      ("/foo", "/bar", "/foo", "/bar"),
      ("/foo", "/bar", "/foo/", nil),
      ("/foo/**", "https://example.com/x", "/foo/a/b", "https://example.com/x"),
      ("/blog/:post", "/posts/:post", "/blog/one", "/posts/one"),
      ("/blog/:post", "/posts/:post", "/blog/one/", "/posts/one"),
      ("/blog/:post", "/posts/:post", "/blog/one/two", nil),
      ("/blog/:post*", "https://blog.example.com/:post", "/blog/a/b", "https://blog.example.com/a/b"),
      ("/blog/:post*", "https://blog.example.com/:post", "/blog", "https://blog.example.com/"),
      ("/blog/:post*", "https://blog.example.com/:post*", "/blog/a", "https://blog.example.com/a"),
      ("/users/:id/profile", "/users/:id/newProfile", "/users/7/profile", "/users/7/newProfile"),
      ("/:year/:month/:day", "/?date=:year-:month-:day", "/2024/05/06", "/?date=2024-05-06"),
      ("/:lang?", "/hello/:lang", "/", "/hello/"),
      ("/a/:b+", "/c/:b", "/a", nil),
      ("/a/:b+", "/c/:b", "/a/x/y", "/c/x/y"),
      ("/:page.html", "/:page", "/about.html", "/about"),
      ("/a/:b", "http://host:8080/:b", "/a/x", "http://host:8080/x"),
      // Browsers read a backslash as a slash, and a line break would start another header field.
      ("/:path*", "/:path", "/\\evil.example", "/%5Cevil.example"),
      ("/a/:b", "/c/:b", "/a/x y?z#ü", "/c/x%20y%3Fz%23%C3%BC"),
      ("/a", "/ö b", "/a", "/%C3%B6%20b"),
      // A capture that is empty or starts with a slash does not make a path of another host.
      ("/s/:section*/i/:id", "/:section*/:id", "/s/i/evil.com", "/evil.com"),
      ("/s/:section*/i/:id", "/:section*/:id", "/s/x/i/y", "/x/y"),
      ("/s/:section*/i/:id", "/:section*\\:id", "/s/i/evil.com", "/evil.com"),
      ("/s/:section*/i/:id", "https://a.example/:section*/:id", "/s/i/evil.com", "https://a.example/evil.com"),
      ("/s/:section*/i/:id", "//a.example/:section*/:id", "/s/i/evil.com", "//a.example/evil.com"),
      ("/to/:x", "https://a.example/get/https://b.example/:x", "/to/y", "https://a.example/get/https://b.example/y"),
      ("/to/:x", "/get/https://b.example/:x", "/to/y", "/get/https://b.example/y"),
      ("/to/:x", "https://a.example?u=//:x", "/to/y", "https://a.example?u=//y"),
    ] as [(String, String, String, String?)])
  func redirectsInsertCaptures(source: String, destination: String, path: String, location: String?) throws {
    let pattern = try PathPattern(glob: source, hasCaptures: true)
    let target = RedirectTarget(destination, source: pattern)
    let bytes = Array(path.utf8)
    #expect((pattern.matches(bytes) ? target.location(for: bytes) : nil) == location)
  }

  @Test(arguments: [
    ("/blog/(?P<post>.+)", "/posts/:post", "/blog/a/b", "/posts/a/b"),
    ("/blog/(?<post>.+)", "/posts/:post", "/blog/a", "/posts/a"),
    ("^/(\\w+)/(\\w+)$", "/:2/:1", "/a/b", "/b/a"),
    ("^/(\\w+)(/x)?$", "/z:2/:1", "/a", "/z:2/a"),
    ("/old(?P<rest>.*)", "/:rest", "/old/evil.com", "/evil.com"),
    ("/old(?P<rest>.*)", "https://a.example/:rest", "/old/b/c", "https://a.example/b/c"),
  ])
  func redirectsInsertGroupsOfExpressions(regex: String, destination: String, path: String, location: String) throws {
    let pattern = try PathPattern(regex: regex)
    #expect(RedirectTarget(destination, source: pattern).location(for: Array(path.utf8)) == location)
  }

  @Test func rulesKeepTheirOrder() throws {
    var rules = RuleList<Int>()
    for (number, glob) in ["/a/*", "/a/b", "**", "/a/b", "/c"].enumerated() {
      rules.append(number, when: try PathPattern(glob: glob))
    }
    func all(_ path: String) -> [Int] {
      var found: [Int] = []
      rules.forEach(for: Array(path.utf8)) { found.append($0) }
      return found
    }
    #expect(all("/a/b") == [0, 1, 2, 3])
    #expect(all("/c") == [2, 4])
    #expect(rules.first(for: Array("/a/b".utf8)) { $0 == 0 ? nil : $0 } == 1)
  }
}
