import Foundation
import HearthServer
import Testing
import TestSupport

/// Malicious requests to both storage APIs.
@Suite struct HostileFilesTests {
  static let owner = ("Authorization", "Bearer owner")
  static let firebase = "/v0/b/p.appspot.com/o"
  static let cloud = "/storage/v1/b/p.appspot.com/o"
  static let cloudUpload = "/upload/storage/v1/b/p.appspot.com/o"

  static func encoded(_ name: String) -> String {
    name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
  }

  // MARK: - Names

  /// Names as a client sends them, with the expected status.
  static let names: [(String, Int)] = [
    ("..%2F..%2Fetc%2Fpasswd", 200), ("%2Fetc%2Fpasswd", 200), ("a%2F..%2Fb", 200), ("%252e%252e", 200),
    ("a%252Fb", 200), ("%5C..%5C..", 200), ("~root", 200), ("-rf", 200), (".hidden", 200), ("a%20b%22%3C%3E", 200),
    ("2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", 200),
    ("2c%2Ff24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824", 200),
    ("content%2F2c%2Ff24dba5f", 200), ("incoming%2Fx", 200), ("data.mdb", 200), ("%F0%9F%98%80", 200),
    (String(repeating: "a", count: 1024), 200), (String(repeating: "%C3%A9", count: 512), 200),
    (String(repeating: "a", count: 1025), 400), (String(repeating: "%C3%A9", count: 513), 400),
    (".", 400), ("..", 400), ("%2E", 400), ("%2e%2e", 400), ("a%00b", 400), ("a%0Ab", 400), ("a%0D%0AX:%20y", 400),
    ("%C3%28", 400), ("%ED%A0%80", 400), ("%GG", 400), ("%", 400),
  ]

  @Test func objectNamesAreNeverFilePaths() throws {
    let directory = try TemporaryDirectory()
    let server = try TestServer { $0.storage = .directory(directory.path) }
    var stored = 0
    for (index, (name, status)) in Self.names.enumerated() {
      let content = "content \(index)"
      let put = try server.call("POST", "\(Self.firebase)?name=\(name)", content, headers: [Self.owner])
      #expect(put.status == status, "\(name): \(put.text)")
      let cloud = try server.call("POST", "\(Self.cloudUpload)?uploadType=media&name=\(name)", content)
      #expect(cloud.status == status, "\(name): \(cloud.text)")
      for path in ["\(Self.firebase)/\(name)", "\(Self.cloud)/\(name)"] {
        let get = try server.call("GET", "\(path)?alt=media", headers: [Self.owner])
        if status == 200 {
          #expect(get.status == 200 && get.text == content, "\(name): \(get.status)")
        } else {
          #expect([400, 404].contains(get.status), "\(name): \(get.status)")
        }
      }
      if status == 200 { stored += 1 }
    }
    // The path of stored content has 64 hexadecimal digits: 2 for the folder, 62 for the file.
    let files = FileManager.default.enumerator(atPath: directory.path + "/files")?.compactMap { $0 as? String } ?? []
    let contents = files.filter { $0.contains(/^content\/[0-9a-f]{2}\/[0-9a-f]{62}$/) }
    let others = files.filter { !$0.hasPrefix("content") && $0 != "incoming" && !$0.hasPrefix("data.mdb") }
    #expect(contents.count == stored)
    #expect(others.isEmpty, "\(others)")
  }

  // MARK: - Content in browsers

  static let types: [(String, Bool)] = [
    ("image/png", true), ("IMAGE/PNG ; x=y", true), ("text/plain; charset=utf-8", true), ("font/woff2", true),
    ("video/x+xml", false), ("audio/xml; a=b", false),
    ("text/html", false), ("image/png,text/html", false), ("image/png, text/html", false), ("image/pngx", false),
    ("text/plain-html", false), ("video/mp4,text/html", false), ("image/svg+xml", false), ("text/xml", false),
    ("application/pdf;,text/html", false), ("text/ht\u{e9}ml", false), ("image/png text/html", false), ("", false),
    ("x", false),
  ]

  @Test func uploadedContentCannotRunScripts() throws {
    let server = try TestServer()
    for (type, isPassive) in Self.types {
      let json: JSONNode = ["contentType": .string(type)]
      let put = try server.call("POST", "\(Self.firebase)?name=x", "<script>", headers: [Self.owner])
      #expect(put.status == 200)
      #expect(try server.call("PATCH", "\(Self.firebase)/x", json.text, headers: [Self.owner]).status == 200, "\(type)")
      for path in ["\(Self.firebase)/x", "\(Self.cloud)/x", "/download\(Self.cloud)/x", "/b/p.appspot.com/o/x"] {
        for more in [[], [("Range", "bytes=0-3")]] {
          let reply = try server.request("GET", "\(path)?alt=media", headers: [Self.owner] + more)
          #expect(reply.status == (more.isEmpty ? 200 : 206), "\(path)")
          #expect(reply.header("x-content-type-options") == "nosniff", "\(path)")
          let policy = reply.header("content-security-policy") ?? ""
          #expect(policy.hasPrefix("sandbox;") == !isPassive, "\(type) \(path)")
          #expect(!policy.contains("allow-scripts") && !policy.contains("allow-same-origin"))
        }
      }
    }
  }

  @Test func errorsAreNeverHTML() throws {
    let server = try TestServer()
    let script = "%3Cscript%3Ealert(1)%3C%2Fscript%3E"
    for path in [
      "\(Self.firebase)/\(script)", "\(Self.firebase)/\(script)?alt=media", "\(Self.cloud)/\(script)",
      "\(Self.cloud)/\(script)?alt=media", "/v0/b/\(script)/o/x", "/storage/v1/b/\(script)/o",
      "/storage/v1/b/\(script)",
      "\(Self.cloud)?maxResults=\(script)", "\(Self.cloud)?pageToken=\(script)", "\(Self.cloud)/x?generation=\(script)",
      "/storage/v1/b/none-\(script)", "\(Self.firebase)/x?ifGenerationMatch=\(script)", "/v0/b/\(script)",
    ] {
      let reply = try server.call("GET", path, headers: [Self.owner])
      #expect((400..<500).contains(reply.status), "\(path): \(reply.status)")
      let type = reply.header("content-type") ?? ""
      #expect(type.hasPrefix("application/json") || type.hasPrefix("text/plain"), "\(path): \(type)")
      #expect(reply.header("x-content-type-options") == "nosniff", "\(path)")
      #expect(reply.header("cache-control") == "private, no-store" || !reply.text.contains("script"), "\(path)")
    }
  }

  @Test func metadataCannotInjectHeaderFields() throws {
    let server = try TestServer()
    #expect(try server.call("POST", "\(Self.firebase)?name=x", "hello", headers: [Self.owner]).status == 200)
    let members = [
      "contentType", "contentDisposition", "contentEncoding", "contentLanguage", "cacheControl", "storageClass",
    ]
    for member in members {
      for text in [
        "a\r\nX-Evil: 1", "a\nX-Evil: 1", "a\rX-Evil: 1", "a\0b", "a\u{7f}", "a\tb",
        String(repeating: "x", count: 1025),
      ] {
        let json: JSONNode = .object([.init(member, .string(text))])
        for path in ["\(Self.firebase)/x", "\(Self.cloud)/x"] {
          #expect(try server.call("PATCH", path, json.text, headers: [Self.owner]).status == 400, "\(member)")
        }
        let start = try server.call(
          "POST", "\(Self.firebase)?name=y", json.text, headers: [Self.owner, ("X-Goog-Upload-Command", "start")])
        #expect(start.status == 400, "\(member)")
        let body =
          "--b\r\nContent-Type: application/json\r\n\r\n\(json.text)\r\n--b\r\nContent-Type: a/b\r\n\r\nx\r\n--b--"
        let multipart = try server.call(
          "POST", "\(Self.firebase)?name=y", body,
          headers: [
            Self.owner, ("X-Goog-Upload-Protocol", "multipart"), ("Content-Type", "multipart/related; boundary=b"),
          ])
        #expect(multipart.status == 400, "\(member)")
      }
      // Non-ASCII letters are allowed and come back byte for byte.
      let json: JSONNode = .object([.init(member, .string("x/caf\u{e9}\u{10a}\u{10d}"))])
      #expect(
        try server.call("PATCH", "\(Self.firebase)/x", json.text, headers: [Self.owner]).status == 200, "\(member)")
    }
    #expect(try server.call("GET", "\(Self.firebase)/y", headers: [Self.owner]).status == 404)
    let reply = try server.call("GET", "\(Self.firebase)/x?alt=media", headers: [Self.owner])
    #expect(reply.status == 200 && reply.text == "hello")
    #expect(reply.header("x-evil") == nil)
    #expect(reply.header("content-language") == "x/caf\u{e9}\u{10a}\u{10d}")
    // A header field contains the last part of the name.
    let name = Self.encoded("a\u{e9}\"; filename=evil.exe; x=\"")
    let put = try server.call("POST", "\(Self.firebase)?name=\(name)", "x", headers: [Self.owner])
    #expect(
      put.json("contentDisposition") == "inline; filename*=utf-8''a%C3%A9%22%3B%20filename%3Devil.exe%3B%20x%3D%22")
    // A slash ends a part by its byte, even if a combining mark follows.
    let marked = Self.encoded("folder/\u{301}b")
    let file = try server.call("POST", "\(Self.firebase)?name=\(marked)", "x", headers: [Self.owner])
    #expect(file.json("contentDisposition") == "inline; filename*=utf-8''%CC%81b")
  }

  @Test func customMetadataIsLimitedBeforeItIsParsed() throws {
    let server = try TestServer()
    #expect(try server.call("POST", "\(Self.firebase)?name=x", "hello", headers: [Self.owner]).status == 200)
    // The download token uses part of the limit.
    let long = String(repeating: "v", count: 8191 - 29 - 36)
    #expect(
      try server.call("PATCH", "\(Self.firebase)/x", #"{"metadata": {"k": "\#(long)"}}"#, headers: [Self.owner]).status
        == 200)
    #expect(
      try server.call("PATCH", "\(Self.firebase)/x", #"{"metadata": {"kk": ""}}"#, headers: [Self.owner]).status == 400)
    #expect(
      try server.call(
        "PATCH", "\(Self.firebase)/x", #"{"metadata": {"k": null, "m": "\#(long)"}}"#, headers: [Self.owner]
      )
      .json("metadata", "m") == long)
    let many = (0..<100_000).map { #""\#($0)":1"# }.joined(separator: ",")
    let clock = ContinuousClock()
    let start = clock.now
    #expect(
      try server.call("PATCH", "\(Self.firebase)/x", "{\"metadata\":{\(many)}}", headers: [Self.owner]).status == 400)
    // Quadratic time would take minutes.
    #expect(clock.now - start < .seconds(25))
  }

  /// A file of a user has the origin of the app, so no page may run it.
  @Test(arguments: ["text/javascript", "text/css", "text/plain", "application/wasm"])
  func pagesDoNotLoadFilesAsCode(type: String) throws {
    let server = try TestServer()
    let made = try server.call(
      "POST", "\(Self.cloudUpload)?uploadType=media&name=x", "content", headers: [Self.owner, ("Content-Type", type)])
    #expect(made.status == 200, "\(made.text)")
    for path in ["\(Self.firebase)/x?alt=media", "\(Self.cloud)/x?alt=media"] {
      for (use, status) in [
        ("script", 403), ("style", 403), ("worker", 403), ("sharedworker", 403), ("serviceworker", 403),
        ("audioworklet", 403), ("xslt", 403), ("empty", 200), ("image", 200), ("video", 200), ("document", 200),
      ] {
        let headers = [Self.owner, ("Sec-Fetch-Site", "same-origin"), ("Sec-Fetch-Dest", use)]
        let reply = try server.call("GET", path, headers: headers)
        #expect(reply.status == status, "\(path) \(use): \(reply.status)")
        #expect((status == 200) == (reply.text == "content"))
      }
      let plain = try server.call("GET", path, headers: [Self.owner])
      #expect(
        plain.status == 200
          && (plain.header("vary") ?? "").contains("Sec-Fetch-Dest")
            == (type.hasPrefix("text/") && type != "text/plain")
      )
    }
  }

  // MARK: - URLs of uploads

  static let hosts: [([(String, String)], String)] = [
    ([], "http://localhost/"), ([("X-Forwarded-Host", "files.example")], "http://files.example/"),
    (
      [("X-Forwarded-Host", "files.example:8443, inner"), ("X-Forwarded-Proto", "https")], "https://files.example:8443/"
    ),
    ([("X-Forwarded-Host", "[::1]:80"), ("X-Forwarded-Proto", "http, https")], "https://[::1]:80/"),
    // The client has sent the first element, or the first header.
    ([("X-Forwarded-Proto", "https, http")], "http://localhost/"),
    ([("X-Forwarded-Proto", "https"), ("X-Forwarded-Proto", "http")], "http://localhost/"),
    ([("X-Forwarded-Proto", "javascript")], "http://localhost/"), ([("X-Forwarded-Host", "")], "http://localhost/"),
    ([("X-Forwarded-Host", "evil/../x")], "http://localhost/"), ([("X-Forwarded-Host", "a@evil")], "http://localhost/"),
    ([("X-Forwarded-Host", "evil?x=")], "http://localhost/"), ([("X-Forwarded-Host", "e\"vil")], "http://localhost/"),
    ([("X-Forwarded-Host", String(repeating: "a", count: 256))], "http://localhost/"),
  ]

  @Test func uploadAddressMustBeAHost() throws {
    let server = try TestServer()
    for (headers, expected) in Self.hosts {
      let firebase = try server.call(
        "POST", "\(Self.firebase)?name=x", "", headers: [Self.owner, ("X-Goog-Upload-Command", "start")] + headers)
      #expect(firebase.header("x-goog-upload-url")?.hasPrefix(expected + "v0/b/") ?? false, "\(headers)")
      #expect(firebase.header("cache-control") == "private, no-store")
      let cloud = try server.call("POST", "\(Self.cloudUpload)?uploadType=resumable&name=x", "", headers: headers)
      #expect(cloud.header("location")?.hasPrefix(expected + "upload/") ?? false, "\(headers)")
      #expect(cloud.header("cache-control") == "private, no-store")
    }
  }
}
