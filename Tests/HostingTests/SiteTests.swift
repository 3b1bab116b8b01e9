import Glibc
import Testing
import TestSupport

@testable import Hosting

/// Responses of sites: the order of their rules, and the files that they reach.
@Suite struct SiteTests {
  /// A folder with files, whose content is their path, and a site of it.
  struct World {
    let directory: TemporaryDirectory
    let site: Site
    let problems: [HostingProblem]

    init(_ members: String = "", files: [String]) throws {
      directory = try TemporaryDirectory()
      for file in files {
        let parts = file.split(separator: "/").dropLast()
        for count in parts.indices { mkdir(directory.file(parts[...count].joined(separator: "/")), 0o755) }
        _ = try directory.write(file, file)
      }
      let text = #"{"hosting": {"public": "x"\#(members.isEmpty ? "" : ", " + members)}}"#
      let entry = try #require(try HostingFile.read(Array(text.utf8)).first)
      problems = entry.problems
      site = Site(folder: directory.path, rules: entry.rules, cache: FileContentCache.process)
    }

    /// A short form of the response: `200 FILE`, `301 LOCATION`, or a status alone.
    func response(_ path: String, _ languages: Languages = .none) throws -> String {
      guard let path = Array(path.utf8).withUnsafeBytes({ SitePath(decoding: $0) }) else { return "404" }
      switch try site.response(to: path, languages) {
      case .redirect(let location, let status): return "\(status) \(location)"
      case .file(let file, let status, _):
        let content = file.forms.first?.bytes.map { String(decoding: $0, as: UTF8.self) }
        #expect(content == String(decoding: file.path.bytes.dropFirst(), as: UTF8.self))
        return "\(status) \(content ?? "")"
      case .notFound: return "404"
      case .unserved(let service): return "501 \(service)"
      }
    }
  }

  private static let files = ["index.html", "about.html", "docs/index.html", "docs/a.html", "js/app.js", "404.html"]

  /// The members of a configuration, and the responses to paths.
  struct Configured: Sendable {
    let members: String
    let responses: [String: String]

    init(_ members: String, _ responses: [String: String]) {
      self.members = members
      self.responses = responses
    }
  }

  private static let configurations: [Configured] = [
    Configured(
      "",
      [
        "/": "200 index.html", "/about.html": "200 about.html", "/about": "404 404.html",
        "/docs": "301 /docs/", "/docs/": "200 docs/index.html", "/docs/index.html": "200 docs/index.html",
        "/js": "404 404.html", "/js/app.js/": "404 404.html", "/404.html": "404 404.html",
        "//js//app.js": "200 js/app.js",
      ]
    ),
    Configured(
      #""cleanUrls": true"#,
      [
        "/": "200 index.html", "/index.html": "301 /", "/about": "200 about.html", "/about.html": "301 /about",
        "/about/": "404 404.html", "/docs": "200 docs/index.html", "/docs/": "200 docs/index.html",
        "/docs/index.html": "301 /docs", "/docs/index": "301 /docs", "/docs/a": "200 docs/a.html",
        "/js/app.js": "200 js/app.js",
      ]
    ),
    Configured(
      #""trailingSlash": true"#,
      [
        "/docs": "301 /docs/", "/docs/": "200 docs/index.html", "/about.html": "200 about.html",
        "/about": "404 404.html",
      ]
    ),
    Configured(
      #""trailingSlash": false"#,
      ["/docs": "200 docs/index.html", "/docs/": "301 /docs", "/": "200 index.html"]
    ),
    Configured(
      #""cleanUrls": true, "trailingSlash": true"#,
      [
        "/about": "301 /about/", "/about/": "200 about.html", "/about.html": "301 /about/",
        "/docs": "301 /docs/", "/docs/index.html": "301 /docs/", "/index.html": "301 /",
      ]
    ),
    Configured(
      #""cleanUrls": true, "trailingSlash": false"#,
      [
        "/about": "200 about.html", "/about/": "301 /about", "/docs/": "301 /docs", "/docs": "200 docs/index.html",
      ]
    ),
    Configured(
      #""rewrites": [{"source": "/api/**", "function": "api"}, {"source": "**", "destination": "/index.html"}]"#,
      [
        "/": "200 index.html", "/any/where": "200 index.html", "/js/app.js": "200 js/app.js",
        "/api/x": "501 function", "/../etc/passwd": "404", "/js": "200 index.html",
      ]
    ),
    Configured(
      #""rewrites": [{"source": "/x", "destination": "/missing.html"}, {"source": "/x", "destination": "/index.html"}]"#,
      ["/x": "404 404.html"]
    ),
    Configured(
      #""redirects": [{"source": "/about.html", "destination": "/a", "type": 302}, {"source": "/__/x", "destination": "/y"}]"#,
      ["/about.html": "302 /a", "/__/x": "301 /y"]
    ),
  ]

  @Test(arguments: configurations)
  func rulesApplyInFirebasesOrder(configured: Configured) throws {
    let world = try World(configured.members, files: Self.files)
    for (path, response) in configured.responses {
      #expect(try world.response(path) == response, "\(path) with \(configured.members)")
    }
  }

  @Test func siteWithoutErrorPageHasNoPageForErrors() throws {
    #expect(try World(files: ["index.html"]).response("/x") == "404")
  }

  @Test func ignoredFilesDoNotExist() throws {
    let files = [".env", ".git/config", "firebase.json", "a/firebase.json", "node_modules/x/y.js", "a/.b/c", "a.txt"]
    let standard = try World(files: files)
    for file in files.dropLast() { #expect(try standard.response("/" + file) == "404", "\(file)") }
    #expect(try standard.response("/a.txt") == "200 a.txt")
    let own = try World(#""ignore": ["a/**", "*.js", "/b/*.md"]"#, files: files + ["b/x.md", "b/c/y.md"])
    #expect(try own.response("/.env") == "200 .env")
    for file in ["a/firebase.json", "a/.b/c", "node_modules/x/y.js", "b/x.md"] {
      #expect(try own.response("/" + file) == "404", "\(file)")
    }
    #expect(try own.response("/b/c/y.md") == "200 b/c/y.md")
  }

  @Test func nothingOutsideTheFolderIsReachable() throws {
    let outside = try TemporaryDirectory()
    let secret = try outside.write("secret.txt", "secret")
    let world = try World(files: ["a/x.txt", "b.txt"])
    let folder = world.directory
    symlink(secret, folder.file("absolute"))
    symlink("../" + (outside.path.split(separator: "/").last.map(String.init) ?? "") + "/secret.txt", folder.file("up"))
    symlink(outside.path, folder.file("folder"))
    symlink("loop", folder.file("loop"))
    symlink("/proc/self/root", folder.file("magic"))
    for path in ["/absolute", "/up", "/folder/secret.txt", "/loop", "/magic\(secret)", "/a/../../secret.txt"] {
      #expect(try world.response(path) == "404", "\(path)")
    }
    // A link that stays inside works.
    symlink("../b.txt", folder.file("a/inside"))
    let path = try #require(SitePath("/a/inside"))
    guard case .file(let file, 200, _) = try world.site.response(to: path, .none) else {
      Issue.record("a link inside the folder must work")
      return
    }
    #expect(file.forms.first?.bytes == Array("b.txt".utf8))
  }

  @Test func specialFilesAreNotServed() throws {
    let world = try World(files: ["x.txt"])
    mkfifo(world.directory.file("pipe"), 0o644)
    #expect(try world.response("/pipe") == "404")
    #expect(try world.response("/" + String(repeating: "n", count: 300)) == "404")
  }

  @Test func translatedContentIsPreferred() throws {
    let world = try World(
      #""i18n": {"root": "/l"}, "rewrites": [{"source": "/app/**", "destination": "/index.html"}]"#,
      files: [
        "index.html", "404.html", "l/fr/index.html", "l/fr_ca/index.html", "l/es_ALL/404.html", "l/ALL_ca/x.html",
      ])
    func languages(_ accepted: String, _ country: String? = nil) -> Languages {
      Languages(acceptLanguage: accepted, country: country, cookie: nil)
    }
    #expect(try world.response("/", languages("fr")) == "200 l/fr/index.html")
    #expect(try world.response("/", languages("fr", "CA")) == "200 l/fr_ca/index.html")
    #expect(try world.response("/", languages("en,fr;q=0.2")) == "200 l/fr/index.html")
    #expect(try world.response("/", languages("en")) == "200 index.html")
    #expect(try world.response("/x.html", languages("en", "ca")) == "200 l/ALL_ca/x.html")
    #expect(try world.response("/nothing", languages("es")) == "404 l/es_ALL/404.html")
    #expect(try world.response("/app/x", languages("fr")) == "200 l/fr/index.html")
  }

  @Test func changedFilesAreSeen() throws {
    let world = try World(files: ["a.html"])
    #expect(try world.response("/a.html") == "200 a.html")
    let path = try #require(SitePath("/a.html"))
    _ = try world.directory.write("a.html", "b.html")
    guard case .file(let file, _, _) = try world.site.response(to: path, .none) else { return }
    #expect(file.forms.first?.bytes == Array("b.html".utf8))
    unlink(world.directory.file("a.html"))
    #expect(try world.response("/a.html") == "404")
  }

  @Test func compressedFilesBesideAFileAreItsForms() throws {
    let world = try World(files: ["a.css", "a.css.br", "a.css.gz", "big.js"])
    _ = try world.directory.write("big.js", String(repeating: "var x = 1;\n", count: 1000))
    func file(_ name: String) throws -> SiteFile? {
      let path = try #require(SitePath(name))
      guard case .file(let file, _, _) = try world.site.response(to: path, .none) else { return nil }
      return file
    }
    let css = try #require(try file("/a.css"))
    #expect(css.forms.map(\.coding) == [.identity, .br, .gzip])
    #expect(Set(css.forms.map(\.etag)).count == 3)
    let script = try #require(try file("/big.js"))
    #expect(script.forms.map(\.coding) == [.identity, .gzip] && script.forms[1].size < 200)
    // A compressed file that is older than the original belongs to another version.
    var times = [timeval(tv_sec: 1_000_000, tv_usec: 0), timeval(tv_sec: 1_000_000, tv_usec: 0)]
    utimes(world.directory.file("a.css.br"), &times)
    #expect(try file("/a.css")?.forms.map(\.coding) == [.identity, .gzip])
  }

  @Test func contentInMemoryIsLimited() throws {
    let cache = FileContentCache(bytesMax: 100_000)
    let directory = try TemporaryDirectory()
    let site = Site(folder: directory.path, rules: SiteRules(), cache: cache)
    var old = [timeval(tv_sec: 1_000_000, tv_usec: 0), timeval(tv_sec: 1_000_000, tv_usec: 0)]
    for number in 0..<50 {
      let file = try directory.write("\(number).bin", String(repeating: "x", count: 10_000))
      utimes(file, &old)
      _ = try site.response(to: try #require(SitePath("/\(number).bin")), .none)
      #expect(cache.heldBytes <= 100_000)
    }
  }

  @Test func contentThatResponsesRetainCountsAsUsedMemory() throws {
    let cache = FileContentCache(bytesMax: 100_000)
    let directory = try TemporaryDirectory()
    let site = Site(folder: directory.path, rules: SiteRules(), cache: cache)
    // The cache keeps no file that changed a moment ago, so only the responses below retain these.
    for number in 0..<20 { _ = try directory.write("\(number).bin", String(repeating: "x", count: 10_000 + number)) }
    func form(_ number: Int) throws -> SiteFile.Form {
      guard case .file(let file, _, _) = try site.response(to: try #require(SitePath("/\(number).bin")), .none) else {
        throw CancellationError()
      }
      return try #require(file.forms.first)
    }
    var stalled = try (0..<20).map(form)
    #expect(stalled.count { $0.bytes != nil } == 9)
    #expect(stalled.allSatisfy { ($0.bytes == nil) == ($0.content == nil) })
    #expect(cache.usedBytes <= 100_000)
    // Content that does not fit is read from the disk.
    let last = stalled[19]
    #expect(last.size == 10_019)
    #expect(try site.open(last) != nil)
    stalled = []
    #expect(cache.usedBytes == 0)
    #expect(try form(19).bytes?.count == 10_019)
  }
}

/// Configurations with mistakes: the rest of them is in force.
@Suite struct HostingFileTests {
  /// The members of an entry, and its problems.
  private static let mistakes: [(String, [String])] = [
    (
      #""redirects": [{"source": "/a", "destination": "/b"}, {"regex": "(", "destination": "/c"}]"#,
      ["redirects[1].regex"]
    ),
    (#""redirects": [{"source": "/@(a", "destination": "/b"}]"#, ["redirects[0].source"]),
    (
      #""redirects": [{"source": "/a"}, {"source": "/b", "destination": "/c", "type": 200}]"#,
      ["redirects[0].destination", "redirects[1].type"]
    ),
    (
      #""redirects": [{"destination": "/a"}, 7, {"source": "a", "regex": "b", "destination": "/c"}]"#,
      ["redirects[0]", "redirects[1]", "redirects[2]"]
    ),
    (
      #""rewrites": [{"source": "/f", "run": {"serviceId": "s"}}, {"source": "/x", "destination": "/../y"}]"#,
      ["rewrites[0]", "rewrites[1].destination"]
    ),
    (
      #""headers": [{"source": "**", "headers": [{"key": "X Y", "value": "z"}, {"key": "Content-Length", "value": "1"}]}]"#,
      ["headers[0].headers[0]", "headers[0].headers[1]"]
    ),
    (#""headers": [{"source": "**", "headers": [{"key": "X", "value": "a\nb"}]}]"#, ["headers[0].headers[0]"]),
    (#""headers": [{"source": "**"}]"#, ["headers[0].headers"]),
    (
      #""cleanUrls": 1, "trailingSlash": "x", "ignore": "a", "i18n": {"root": "/../x"}, "rewrites": {}"#,
      ["cleanUrls", "trailingSlash", "ignore", "i18n.root", "rewrites"]
    ),
    (#""predeploy": ["x"], "appAssociation": "AUTO", "source": ".", "frameworksBackend": {}"#, []),
  ]

  @Test(arguments: mistakes)
  func mistakesAreNamedAndLeftOut(members: String, keys: [String]) throws {
    let world = try SiteTests.World(members, files: ["index.html"])
    #expect(world.problems.map(\.key) == keys.map { "hosting." + $0 })
    #expect(try world.response("/") == "200 index.html")
  }

  @Test func ruleAfterAMistakeIsInForce() throws {
    let world = try SiteTests.World(
      #""redirects": [{"regex": "(", "destination": "/c"}, {"source": "/a", "destination": "/b"}]"#, files: [])
    #expect(try world.response("/a") == "301 /b")
  }

  @Test func entriesHaveNames() throws {
    let text = #"{"hosting": [{"target": "app", "public": "a"}, {"site": "blog"}]} // end"#
    let entries = try HostingFile.read(Array(text.utf8))
    #expect(entries.map(\.names) == [["app"], ["blog"]] && entries.map(\.folder) == ["a", "public"])
  }

  @Test(arguments: ["", "[]", #"{"hosting": 1}"#, #"{"hosting": [1]}"#, "{"])
  func otherTextsAreRefused(text: String) {
    #expect(throws: HostingFile.Failure.self) { try HostingFile.read(Array(text.utf8)) }
  }

  @Test func manyRulesAreFast() throws {
    let start = ContinuousClock.now
    let rules = (0..<12_000).map { #"{"source": "/old/\#($0)/**", "destination": "/new/\#($0)"}"# }
    let expressions = (0..<600).map { #"{"regex": "^/re/\#($0)$", "destination": "/new"}"# }
    let world = try SiteTests.World(
      #""redirects": [\#(rules.joined(separator: ","))], "rewrites": [\#(expressions.joined(separator: ","))]"#,
      files: ["index.html"])
    #expect(world.problems.count == 101 && world.problems[0].key == "hosting.redirects")
    #expect(try world.response("/old/9999/x") == "301 /new/9999")
    let clock = ContinuousClock()
    let duration = try clock.measure { for number in 0..<100 { _ = try world.response("/none/\(number)") } }
    // About 100 µs each in a release build.
    #expect(duration < .seconds(20), "\(duration)")
    // A time limit of the test would include its waits for a thread.
    #expect(ContinuousClock.now - start < .seconds(60))
  }
}
