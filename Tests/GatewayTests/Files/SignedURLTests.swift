import Accounts
import Files
import Foundation
import HearthServer
import Testing
import WireFormat

/// URLs signed with the key of a program, over a socket.
@Suite struct SignedURLTests {
  @Test func signedURLAuthorizesItsRequest() throws {
    let server = try TestServer()
    let signer = try URLSigner(server)
    try CloudFilesTests.put(server, "a/ä b", "hello")
    let path = "/bucket/a/%C3%A4%20b"
    let url = try signer.v4("GET", path)
    #expect(try server.request("GET", url).text == "hello")
    #expect(try server.request("HEAD", url).header("x-goog-hash") != nil)
    #expect(try server.request("GET", url, headers: [("Range", "bytes=1-2")]).text == "el")
    let shown = try server.request(
      "GET", try signer.v4("GET", path, [], [("response-content-disposition", "attachment; filename=x")]))
    #expect(shown.header("content-disposition") == "attachment; filename=x")
    #expect(try server.request("GET", try signer.v2("GET", path, until: Date() + 60)).text == "hello")
    let type = ("Content-Type", "text/plain")
    let upload = try signer.v4("PUT", "/bucket/new", [type])
    #expect(try server.request("PUT", upload, "content", headers: [type]).json("size") == "7")
    #expect(try server.request("GET", try signer.v4("GET", "/bucket/new")).header("content-type") == "text/plain")
    #expect(try server.request("DELETE", try signer.v4("DELETE", "/bucket/new")).status == 204)
    #expect(try server.request("GET", try signer.v4("GET", "/bucket/new")).status == 404)
  }

  @Test func signedURLStartsAResumableUpload() throws {
    let server = try TestServer()
    let start = ("X-Goog-Resumable", "start")
    let begun = try server.request(
      "POST", try URLSigner(server).v4("POST", "/bucket/big", [start]), "", headers: [start])
    #expect(begun.status == 201)
    let location = try #require(begun.header("location"), "\(begun.text)")
    let target = String(location.dropFirst("http://localhost".count))
    let part = try server.request("PUT", target, "01", headers: [("Content-Range", "bytes 0-1/4")])
    #expect(part.status == 308)
    let last = try server.request("PUT", target, "23", headers: [("Content-Range", "bytes 2-3/4")])
    #expect(last.json("name") == "big" && last.json("size") == "4", "\(last.text)")
  }

  @Test func bodyCannotNameAnotherObject() throws {
    let server = try TestServer()
    let signer = try URLSigner(server)
    try CloudFilesTests.put(server, "private", "hello")
    let start = ("X-Goog-Resumable", "start")
    func begin(_ body: String) throws -> Int {
      try server.request("POST", signer.v4("POST", "/bucket/pub/a", [start]), body, headers: [start]).status
    }
    #expect(try begin(#"{"name": "private"}"#) == 400)
    #expect(try begin(#"{"name": "pub/a"}"#) == 201)
    // Version 2 does not sign parameters, and no version signs the body.
    let type = "multipart/related; boundary=b"
    let commit = #"{"writes": [{"update": {"name": "projects/p/databases/(default)/documents/c/d", "fields": {}}}]}"#
    let body =
      "--b\r\nContent-Type: application/json\r\n\r\n{\"name\": \"private\", \"commit\": \(commit)}"
      + "\r\n--b\r\nContent-Type: a/b\r\n\r\nevil\r\n--b--"
    let url = try signer.v2("PUT", "/bucket/pub/a", type: type, until: Date() + 60)
    let put = try server.request("PUT", url + "&uploadType=multipart", body, headers: [("Content-Type", type)])
    #expect(put.status == 200 && put.json("name") == "pub/a", "\(put.text)")
    #expect(try server.request("GET", signer.v4("GET", "/bucket/pub/a")).text == body)
    #expect(try server.request("GET", signer.v4("GET", "/bucket/private")).text == "hello")
    #expect(try server.call("GET", "/c/d", headers: [("Authorization", "Bearer owner")]).status == 404)
  }

  /// The holder of a URL of version 2 may add parameters to it. The server ignores them.
  @Test func unsignedParametersAreIgnored() throws {
    let server = try TestServer()
    let signer = try URLSigner(server)
    let first: String = try #require(CloudFilesTests.put(server, "a", "hello").json("generation"))
    try CloudFilesTests.put(server, "a", "later")
    let get = try signer.v2("GET", "/bucket/a", until: Date() + 60)
    let put = try signer.v2("PUT", "/bucket/new", type: "text/plain", until: Date() + 60)
    let plain = try server.request("GET", get)
    let parameters = [
      "generation=\(first)", "ifGenerationMatch=1", "alt=json",
    ]
    for parameter in parameters {
      let reply = try server.request("GET", "\(get)&\(parameter)")
      #expect(reply.status == 200 && reply.text == "later", "\(parameter): \(reply.text)")
      for field in ["content-type", "content-disposition"] {
        #expect(reply.header(field) == plain.header(field), "\(parameter)")
      }
    }
    let body = try server.request(
      "PUT", put + "&contentEncoding=gzip&name=other&ifGenerationMatch=7", "content",
      headers: [("Content-Type", "text/plain")])
    #expect(body.status == 200 && body.json("name") == "new", "\(body.text)")
    #expect(body.json("contentEncoding", as: String.self) == nil)
    // Libraries add these parameters after signing. Active content stays sandboxed.
    let named = try server.request(
      "GET", get + "&response-content-disposition=attachment;%20filename=x.html&response-content-type=text/html")
    #expect(named.header("content-disposition") == "attachment; filename=x.html")
    #expect(named.header("content-type") == "text/html")
    #expect(named.header("content-security-policy")?.hasPrefix("sandbox;") == true)
    // Version 4 signs all parameters.
    let shown = try server.request(
      "GET", try signer.v4("GET", "/bucket/a", [], [("response-content-type", "text/csv")]))
    #expect(shown.header("content-type") == "text/csv")
  }

  /// The holder of a signed URL counts as a caller at an address, not as an administrator.
  @Test func signedUploadsUseTheQuotaOfTheAddress() throws {
    let server = try TestServer()
    let signer = try URLSigner(server)
    let store = try server.server.files.store()
    for _ in 0..<1000 {
      var record = UploadRecord(name: ObjectName(bucket: "bucket", name: "n"), attributes: ObjectAttributes())
      record.owner = .address("203.0.113.7")
      try store.beginUpload(record)
    }
    let start = ("X-Goog-Resumable", "start")
    func begin(_ from: String) throws -> Int {
      try server.request(
        "POST", signer.v4("POST", "/bucket/big", [start]), "", headers: [start, ("X-Forwarded-For", from)]
      ).status
    }
    #expect(try begin("203.0.113.7") == 429)
    #expect(try begin("203.0.113.8") == 201)
  }

  // Source: "should create a signed list bucket url" of Cloud Storage for Node.
  @Test func signedURLListsABucket() throws {
    let server = try TestServer()
    let signer = try URLSigner(server)
    for name in ["a", "b<&>", "d/x", "d/y", "e"] { try CloudFilesTests.put(server, name, "hello") }
    func list(_ parameters: [(String, String)] = []) throws -> TestServer.Response {
      try server.request("GET", signer.v4("GET", "/bucket", [], parameters))
    }
    func texts(_ element: String, _ reply: TestServer.Response) -> [String] {
      reply.text.matches(of: /<(\w+)>([^<]*)<\/\w+>/).filter { $0.1 == element }.map { String($0.2) }
    }
    let all = try list()
    #expect(all.status == 200 && all.header("content-type") == "application/xml; charset=UTF-8", "\(all.text)")
    #expect(all.text.contains("ListBucketResult") && texts("IsTruncated", all) == ["false"])
    #expect(texts("Key", all) == ["a", "b&lt;&amp;&gt;", "d/x", "d/y", "e"])
    #expect(texts("ETag", all).first == "\"5d41402abc4b2a76b9719d911017c592\"" && texts("Size", all).first == "5")
    var (marker, found): (String, [String]) = ("", [])
    for page in 0..<4 {
      let reply = try list([("delimiter", "/"), ("max-keys", "1")] + (page == 0 ? [] : [("marker", marker)]))
      found += texts("Key", reply) + texts("Prefix", reply).filter { !$0.isEmpty }
      #expect(texts("IsTruncated", reply) == [page < 3 ? "true" : "false"], "\(reply.text)")
      marker = page == 1 ? "b<&>" : texts("NextMarker", reply).first ?? ""
    }
    #expect(found == ["a", "b&lt;&amp;&gt;", "d/", "e"])
    #expect(try texts("Key", list([("prefix", "d/")])) == ["d/x", "d/y"])
    #expect(try texts("Key", server.request("GET", signer.v2("GET", "/bucket", until: Date() + 60))).count == 5)
    #expect(try list([("max-keys", "0")]).status == 400)
    #expect(try list([("list-type", "2")]).status == 400)
    #expect(try server.request("GET", try signer.v4("GET", "/bucket") + "&prefix=a").status == 403)
    #expect(try server.request("GET", try signer.v4("GET", "/no-bucket")).status == 404)
    #expect(try server.request("DELETE", try signer.v4("DELETE", "/bucket")).status == 400)
  }

  /// Test suites sign with keys of their own, which the official emulator accepts without looking.
  @Test func emulatorAcceptsTheURLsOfAnyServiceAccount() throws {
    let stranger = try URLSigner(strangerNamed: "test@other.iam.gserviceaccount.com")
    let foreign = ("Origin", "https://evil.example")
    for mode in [HearthConfiguration.Mode.emulator, .production] {
      let server = try TestServer(mode)
      let owner = ("Authorization", "Bearer \(server.server.accounts.serviceKeys.localAccessToken())")
      let isAccepted = mode == .emulator
      _ = try server.call("POST", "/storage/v1/b?project=p", #"{"name": "bucket"}"#, headers: [owner])
      let put = try server.call(
        "POST", "\(CloudFilesTests.uploads)?uploadType=media&name=a", "hello", headers: [owner])
      #expect(put.status == 200, "\(put.text)")
      for url in [
        try stranger.v4("GET", "/bucket/a"), try stranger.v2("GET", "/bucket/a", until: Date() + 60),
        try stranger.v4("GET", "/bucket"),
      ] {
        #expect(try server.request("GET", url).status == (isAccepted ? 200 : 403))
        // A web page could make such a URL too.
        #expect(try server.request("GET", url, headers: [foreign]).status == 403)
      }
      let upload = try server.request("PUT", try stranger.v4("PUT", "/bucket/new"), "content")
      #expect(upload.status == (isAccepted ? 200 : 403), "\(upload.text)")
      #expect(try server.request("GET", stranger.v4("GET", "/bucket/a", at: Date() - 700)).status == 400)
      // A service account with a key of this server must use that key.
      let known = try URLSigner(strangerNamed: URLSigner(server).email)
      #expect(try server.request("GET", known.v4("GET", "/bucket/a")).status == 403)
    }
  }

  @Test func otherRequestsAreRefused() throws {
    let server = try TestServer()
    let signer = try URLSigner(server)
    try CloudFilesTests.put(server, "a", "hello")
    let url = try signer.v4("GET", "/bucket/a")
    let two = try signer.v2("GET", "/bucket/a", until: Date() + 60)
    let type = ("Content-Type", "text/plain")
    let refused: [(String, Int, TestServer.Response)] = [
      ("another object", 403, try server.request("GET", url.replacing("/bucket/a?", with: "/bucket/b?"))),
      ("another method", 403, try server.request("DELETE", url)),
      ("a longer time", 403, try server.request("GET", url.replacing("Expires=600", with: "Expires=601"))),
      ("another parameter", 403, try server.request("GET", url + "&generation=1")),
      ("no signature", 403, try server.request("GET", String(url.dropLast(256)))),
      ("expired", 400, try server.request("GET", try signer.v4("GET", "/bucket/a", at: Date() - 700))),
      ("of tomorrow", 403, try server.request("GET", try signer.v4("GET", "/bucket/a", at: Date() + 86400))),
      ("for too long", 400, try server.request("GET", try signer.v4("GET", "/bucket/a", seconds: 604_801))),
      (
        "another type", 403,
        try server.request(
          "PUT", try signer.v4("PUT", "/bucket/c", [type]), "x", headers: [("Content-Type", "text/html")])
      ),
      ("version 2, another object", 403, try server.request("GET", two.replacing("/bucket/a?", with: "/bucket/b?"))),
      ("version 2, expired", 400, try server.request("GET", try signer.v2("GET", "/bucket/a", until: Date() - 1))),
      ("version 2, a type", 403, try server.request("GET", two, headers: [type])),
      ("malformed", 400, try server.request("GET", "/bucket/a?X-Goog-Signature=zz")),
    ]
    for (name, status, reply) in refused { #expect(reply.status == status, "\(name): \(reply.text)") }
    #expect(try server.request("GET", url).text == "hello")
  }

  @Test func revokedKeyEndsItsURLs() throws {
    let server = try TestServer(.production)
    let admin = ("Authorization", "Bearer \(server.server.accounts.serviceKeys.localAccessToken())")
    let signer = try URLSigner(server)
    _ = try server.call("POST", "/storage/v1/b?project=p", #"{"name": "bucket"}"#, headers: [admin])
    _ = try server.call("POST", "\(CloudFilesTests.uploads)?uploadType=media&name=a", "hello", headers: [admin])
    let urls = [try signer.v4("GET", "/bucket/a"), try signer.v2("GET", "/bucket/a", until: Date() + 60)]
    for url in urls { #expect(try server.request("GET", url).text == "hello") }
    #expect(try server.request("GET", urls[0].replacing("signer", with: "nobody")).status == 403)
    _ = try server.call("DELETE", "/hearth/v1/keys/signer", headers: [admin])
    for url in urls { #expect(try server.request("GET", url).status == 403) }
  }
}
