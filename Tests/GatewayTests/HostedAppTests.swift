import Foundation
import GatewayCore
import HearthServer
import HostingAPI
import Testing
import TestSupport

/// Web apps over HTTP, beside the APIs.
@Suite struct HostedAppTests {
  /// A server with an app in a folder.
  private struct World {
    let directory: TemporaryDirectory
    let server: TestServer

    init(
      _ members: String = "", _ mode: HearthConfiguration.Mode = .production,
      change: (inout HearthConfiguration, TemporaryDirectory) -> Void = { _, _ in }
    ) throws {
      let directory = try TemporaryDirectory()
      mkdir(directory.file("app"), 0o755)
      mkdir(directory.file("app/docs"), 0o755)
      _ = try directory.write("app/index.html", "<h1>app</h1>")
      _ = try directory.write("app/docs/index.html", "docs")
      _ = try directory.write("app/app.js", String(repeating: "let x = 1;\n", count: 500))
      _ = try directory.write("app/404.html", "nothing here")
      _ = try directory.write(
        "firebase.json", #"{"hosting": {"public": "app"\#(members.isEmpty ? "" : ", " + members)}}"#)
      self.directory = directory
      server = try TestServer(mode) { configuration in
        configuration.hosting = [.init(directory.file("firebase.json"))]
        change(&configuration, directory)
      }
    }

    func get(_ path: String, _ headers: [(String, String)] = []) throws -> TestServer.Response {
      try server.request("GET", path, headers: headers)
    }
  }

  @Test func filesHaveTypesAndValidators() throws {
    let world = try World()
    let page = try world.get("/")
    #expect(page.status == 200 && page.text == "<h1>app</h1>")
    #expect(page.header("content-type") == "text/html; charset=utf-8")
    #expect(page.header("cache-control") == "max-age=3600")
    let etag = try #require(page.header("etag"))
    #expect(etag.hasPrefix("\"") && etag.hasSuffix("\""))
    #expect(try world.get("/", [("If-None-Match", etag)]).status == 304)
    #expect(try world.get("/", [("If-None-Match", "\"x\", W/\(etag)")]).status == 304)
    #expect(try world.get("/", [("If-None-Match", "\"x\"")]).status == 200)
    let modified = try #require(page.header("last-modified"))
    let unchanged = try world.get("/", [("If-Modified-Since", modified)])
    #expect(unchanged.status == 304 && unchanged.header("etag") == etag && unchanged.body.isEmpty)
    let head = try world.server.request("HEAD", "/app.js")
    #expect(head.status == 200 && head.header("content-length") == "5500" && head.body.isEmpty)
    // Pages of other origins read files only if the configuration allows it.
    #expect(try world.get("/", [("Origin", "https://other.example")]).header("access-control-allow-origin") == nil)
  }

  @Test func rangesAreParts() throws {
    let world = try World()
    let etag = try #require(try world.get("/").header("etag"))
    let part = try world.get("/", [("Range", "bytes=4-6")])
    #expect(part.status == 206 && part.text == "app" && part.header("content-range") == "bytes 4-6/12")
    #expect(try world.get("/", [("Range", "bytes=-5")]).text == "</h1>")
    #expect(try world.get("/", [("Range", "bytes=4-6"), ("If-Range", etag)]).status == 206)
    #expect(try world.get("/", [("Range", "bytes=4-6"), ("If-Range", "\"x\"")]).status == 200)
    let absent = try world.get("/", [("Range", "bytes=12-")])
    #expect(absent.status == 416 && absent.header("content-range") == "bytes */12")
  }

  @Test func clientsGetTheSmallestFormThatTheyAccept() throws {
    let world = try World()
    let plain = try world.get("/app.js")
    #expect(plain.header("content-encoding") == nil && plain.header("vary") == "Accept-Encoding")
    let gzip = try world.get("/app.js", [("Accept-Encoding", "gzip, deflate, br")])
    #expect(gzip.header("content-encoding") == "gzip" && gzip.body.count < 200)
    #expect(gzip.header("etag") != plain.header("etag"))
    _ = try world.directory.write("app/app.js.br", "brotli")
    #expect(
      try OtherProcess.eventually {
        let response = try world.get("/app.js", [("Accept-Encoding", "gzip, br")])
        return response.header("content-encoding") == "br" && response.text == "brotli"
      })
    #expect(try world.get("/app.js", [("Accept-Encoding", "gzip;q=0, br;q=0")]).header("content-encoding") == nil)
  }

  @Test func changesAreSeenWithinASecond() throws {
    let world = try World()
    #expect(try world.get("/").text == "<h1>app</h1>")
    for (name, text) in [("app/index.html", "new"), ("app/fresh.html", "fresh")] {
      _ = try world.directory.write(name, text)
      let start = ContinuousClock.now
      let path = name == "app/index.html" ? "/" : "/fresh.html"
      #expect(try OtherProcess.eventually { try world.get(path).text == text })
      #expect(ContinuousClock.now - start < .seconds(2))
    }
    unlink(world.directory.file("app/fresh.html"))
    #expect(try OtherProcess.eventually { try world.get("/fresh.html").status == 404 })
    #expect(try world.get("/fresh.html").text == "nothing here")
  }

  @Test func largeFilesAreSentFromTheDisk() throws {
    let world = try World()
    let content = [UInt8]((0..<3_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
    try Data(content).write(to: URL(fileURLWithPath: world.directory.file("app/film.mp4")))
    let response = try world.get("/film.mp4", [("Accept-Encoding", "gzip")])
    #expect(response.status == 200 && response.body == content && response.header("content-encoding") == nil)
    #expect(response.header("content-type") == "video/mp4")
    let part = try world.get("/film.mp4", [("Range", "bytes=1500000-1500999")])
    #expect(part.status == 206 && part.body == Array(content[1_500_000..<1_501_000]))
    let etag = try #require(response.header("etag"))
    #expect(try world.get("/film.mp4", [("If-None-Match", etag)]).status == 304)
    #expect(try world.server.request("HEAD", "/film.mp4").header("content-length") == "3000000")
    // A file of more than one piece, from memory.
    try Data(content[..<600_000]).write(to: URL(fileURLWithPath: world.directory.file("app/a.png")))
    #expect(try world.get("/a.png").body == Array(content[..<600_000]))
  }

  @Test func rulesOfTheConfigurationApply() throws {
    let world = try World(
      #"""
      "redirects": [{"source": "/old/:x*", "destination": "/new/:x?a=1#end"}],
      "rewrites": [{"source": "/app/**", "destination": "/index.html"}, {"source": "/f", "function": "f"}],
      "headers": [
        {"source": "**", "headers": [{"key": "X-Frame-Options", "value": "DENY"}]},
        {"source": "**/*.js", "headers": [{"key": "Cache-Control", "value": "max-age=31536000, immutable"}]},
        {"source": "/404.html", "headers": [{"key": "X-Missing", "value": "yes"}]}
      ]
      """#)
    let redirect = try world.get("/old/b%20c?q=2")
    #expect(redirect.status == 301 && redirect.header("location") == "/new/b%20c?a=1&q=2#end")
    #expect(try world.get("/docs?q=1").header("location") == "/docs/?q=1")
    let app = try world.get("/app/deep/link")
    #expect(app.text == "<h1>app</h1>" && app.header("x-frame-options") == "DENY")
    #expect(try world.get("/app.js").header("cache-control") == "max-age=31536000, immutable")
    let missing = try world.get("/missing")
    #expect(missing.status == 404 && missing.text == "nothing here" && missing.header("x-missing") == "yes")
    #expect(missing.header("etag") == nil && missing.header("cache-control") == "no-cache")
    #expect(try world.get("/f").status == 501)
  }

  @Test(arguments: [
    "/../firebase.json", "/%2e%2e/firebase.json", "/..%2ffirebase.json", "/docs/../../firebase.json", "/%00",
    "/a%0d%0ab",
    "/.git/config", "/firebase.json", "/\\..\\firebase.json", "/" + String(repeating: "a/", count: 3000),
    "/" + String(repeating: "x", count: 9000), "/" + String(repeating: "%2e%2e%2f", count: 200) + "etc/passwd",
  ])
  func pathsOutsideTheAppAreNotFound(path: String) throws {
    let world = try World()
    let response = try world.get(path)
    #expect(response.status == 404 && !response.text.contains("hosting"))
  }

  @Test func routesOfTheAPIComeFirst() throws {
    let world = try World(#""rewrites": [{"source": "**", "destination": "/index.html"}]"#)
    for path in HostedAppsAPI.reserved.map({ "\($0)" }) + [
      "/v1/x", "/v1/projects/p/x", "/v0/b", "/emulator/x", "/google.firestore.v1.Firestore/X", "/__/x",
      "/storage/v1/b/x/o/y/z",
    ] {
      #expect(try !world.get(path).text.contains("<h1>"), "\(path)")
    }
    #expect(try world.get("/healthz").text != "<h1>app</h1>")
    #expect(try world.get("/.well-known/openid-configuration").header("content-type")?.contains("json") == true)
    for path in ["/v10", "/upload", "/storage", "/emulators.html", "/users/1", "/v1x/y"] {
      #expect(try world.get(path).text == "<h1>app</h1>", "\(path)")
    }
    #expect(try world.server.request("POST", "/users/1", "{}").status == 404)
    #expect(try world.server.request("DELETE", "/").status == 404)
  }

  /// Every path of the API is reserved, or is so unlike a page of an app that its route is enough.
  @Test func everyRouteOfTheAPIIsOutOfReachForApps() throws {
    let world = try World(#""rewrites": [{"source": "**", "destination": "/index.html"}]"#, .emulator)
    for route in world.server.server.endpoints where route.api != "HostedAppsAPI" && !route.hasCondition {
      guard route.methods.contains(.get), !route.isStreamed, route.kind != .grpc else { continue }
      for pattern in route.paths.map(\.text) where pattern != "/" {
        let path = pattern.replacing(/\{[a-zA-Z]+(\.\.\.)?\}/, with: "x")
        if path.contains("isten") || path.contains("hanges") { continue }
        #expect(try !world.get(path).text.contains("<h1>app"), "\(path)")
      }
    }
  }

  @Test func serversWithoutAppsRespondAsBefore() throws {
    let server = try TestServer()
    #expect(try server.request("GET", "/").text == "Ok\n")
    #expect(try server.request("GET", "/index.html").status == 404)
    #expect(!server.server.endpoints.contains { $0.api == "HostedAppsAPI" })
  }

  @Test func hostsHaveAppsOfTheirOwn() throws {
    let world = try World { configuration, directory in
      mkdir(directory.file("blog"), 0o755)
      try? "blog".write(toFile: directory.file("blog/index.html"), atomically: false, encoding: .utf8)
      configuration.hosting = [
        .init(directory.file("blog"), host: "Blog.example.com"), .init(directory.file("app"), host: "app.example.com"),
      ]
    }
    func get(_ host: String) throws -> String {
      let response = try StreamedResponse(
        port: world.server.port, request: Array("GET / HTTP/1.1\r\nHost: \(host)\r\nConnection: close\r\n\r\n".utf8),
        hasBody: true)
      try response.readToEnd()
      return String(decoding: response.body + response.readRest(), as: UTF8.self)
    }
    #expect(try get("blog.example.com") == "blog")
    #expect(try get("BLOG.example.com:8080") == "blog")
    #expect(try get("blog.example.com.") == "blog")
    #expect(try get("app.example.com") == "<h1>app</h1>")
    // Other hosts have no app.
    #expect(try get("example.com") == "Ok\n")
  }

  @Test func foldersAndConfigurationsCanBeReplaced() throws {
    let world = try World()
    _ = try world.directory.write(
      "firebase.json", #"{"hosting": {"public": "app", "redirects": [{"source": "/", "destination": "/docs/"}]}}"#)
    world.server.server.reload()
    #expect(try world.get("/").header("location") == "/docs/")
    // A mistake leaves the previous configuration in force.
    _ = try world.directory.write("firebase.json", "{")
    world.server.server.reload()
    #expect(try world.get("/").header("location") == "/docs/")
    rename(world.directory.file("app"), world.directory.file("gone"))
    #expect(try OtherProcess.eventually { try world.get("/docs/").status == 503 })
    #expect(try world.get("/docs/").status == 503)
    rename(world.directory.file("gone"), world.directory.file("app"))
    #expect(try world.get("/docs/").text == "docs")
  }

  @Test(arguments: [
    ("missing", nil, "cannot be opened"), ("firebase.json", "nobody", "no entry with the target or site"),
    ("empty.json", nil, "has no \"hosting\""), ("wrong.json", nil, "cannot open the folder"),
  ])
  func unusableConfigurationsAreRefused(path: String, target: String?, reason: String) throws {
    let directory = try TemporaryDirectory()
    _ = try directory.write("firebase.json", #"{"hosting": [{"target": "app", "public": "app"}]}"#)
    _ = try directory.write("empty.json", "{}")
    _ = try directory.write("wrong.json", #"{"hosting": {"public": "nowhere"}}"#)
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.mode = .emulator
    configuration.hosting = [.init(directory.file(path), target: target)]
    let error = #expect(throws: HearthError.self) { try Server(configuration) }
    #expect(error?.description.contains(reason) == true, "\(error?.description ?? "")")
  }

  @Test(arguments: [
    ("app", "app/x/data"), ("app", "app"), ("link", "app/data"), ("app", "link/data"), ("firebase.json", "app/data"),
    ("app/docs", "app"),
  ])
  func dataDirectoryIsNotPublished(hosted: String, data: String) throws {
    let directory = try TemporaryDirectory()
    for name in ["app", "app/x", "app/docs"] { mkdir(directory.file(name), 0o755) }
    symlink("app", directory.file("link"))
    _ = try directory.write("firebase.json", #"{"hosting": {"public": "app"}}"#)
    var configuration = HearthConfiguration(storage: .directory(directory.file(data)))
    configuration.mode = .emulator
    configuration.hosting = [.init(directory.file(hosted))]
    let refused = #expect(throws: HearthError.self) { try Server(configuration) }
    #expect(refused?.description.contains("data directory") == true, "\(refused?.description ?? "")")
    configuration.hosting = []
    configuration.webSDK = directory.file(hosted)
    if hosted != "firebase.json" { #expect(throws: HearthError.self) { try Server(configuration) } }
  }

  @Test func dataDirectoryBesideTheAppIsAllowed() throws {
    let directory = try TemporaryDirectory()
    mkdir(directory.file("app"), 0o755)
    _ = try directory.write("firebase.json", #"{"hosting": {"public": "app"}}"#)
    _ = try directory.write("app/index.html", "app")
    let server = try TestServer(.emulator) { configuration in
      configuration.storage = .directory(directory.file("app-data"))
      configuration.hosting = [.init(directory.file("firebase.json"))]
    }
    #expect(try server.request("GET", "/").text == "app")
    // A configuration that would publish it later is not used.
    _ = try directory.write("firebase.json", #"{"hosting": {"public": "."}}"#)
    server.server.reload()
    #expect(try server.request("GET", "/").text == "app")
  }

  @Test func filesWithSecretsAreNotPublished() throws {
    let directory = try TemporaryDirectory()
    mkdir(directory.file("app"), 0o755)
    let secret = try directory.write("app/secret.txt", "secret")
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.mode = .emulator
    configuration.hosting = [.init(directory.file("app"))]
    configuration.tls = .init(certificate: directory.file("cert.pem"), key: secret)
    let refused = #expect(throws: HearthError.self) { try Server(configuration) }
    #expect(refused?.description.contains("secret.txt, the private key") == true, "\(refused?.description ?? "")")
    configuration.tls = nil
    configuration.accounts.signInProviders =
      #"{"oidc.x": {"issuer": "https://a.example", "clientId": "c", "clientSecretFile": "\#(secret)"}}"#
    configuration.providerFetch = { _ in throw HearthError.configuration("unused") }
    let other = #expect(throws: HearthError.self) { try Server(configuration) }
    #expect(other?.description.contains("secret.txt, the secret") == true, "\(other?.description ?? "")")
  }

  // MARK: - Scripts for the web SDK

  @Test func scriptsConfigureTheSDK() throws {
    let world = try World()
    let script = try world.get("/__/firebase/init.js")
    #expect(script.status == 200 && script.header("content-type") == "text/javascript; charset=utf-8")
    for part in ["initializeApp", "\"projectId\": \"p\"", "useEmulator", "merge: true", "_protocol"] {
      #expect(script.text.contains(part), "\(part)")
    }
    let json = try world.get("/__/firebase/init.json")
    #expect(
      matches(
        #"{"authDomain": "localhost", "apiKey": "*", "projectId": "p", "storageBucket": "p.appspot.com"}"#, json))
  }

  @Test func filesOfTheSDKComeFromAFolderOrFromGoogle() throws {
    let world = try World()
    let redirect = try world.get("/__/firebase/8.10.1/firebase-app.js")
    #expect(redirect.status == 302)
    #expect(redirect.header("location") == "https://www.gstatic.com/firebasejs/8.10.1/firebase-app.js")
    for path in ["/__/firebase/8.10.1/..%2fx", "/__/firebase/.x/a.js", "/__/firebase/8/a%0d%0ab", "/__/other"] {
      #expect(try world.get(path).status == 404, "\(path)")
    }
    let own = try World { configuration, directory in
      mkdir(directory.file("sdk"), 0o755)
      mkdir(directory.file("sdk/8.10.1"), 0o755)
      try? "app".write(toFile: directory.file("sdk/8.10.1/firebase-app.js"), atomically: false, encoding: .utf8)
      configuration.webSDK = directory.file("sdk")
    }
    let file = try own.get("/__/firebase/8.10.1/firebase-app.js")
    #expect(file.text == "app" && file.header("cache-control") == "public, max-age=31536000, immutable")
    #expect(try own.get("/__/firebase/8.10.1/firebase-none.js").status == 404)
  }
}
