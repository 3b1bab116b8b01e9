import Foundation
import HearthServer
import Testing
import TestSupport

/// Requests of Cloud Storage's clients beyond single objects, over a socket.
@Suite struct CloudRequestsTests {
  static let objects = CloudFilesTests.objects
  static let bucket = "/storage/v1/b/bucket"

  @Test func batchRespondsToEachOfItsRequests() throws {
    let server = try TestServer()
    try CloudFilesTests.put(server, "a", "one")
    try CloudFilesTests.put(server, "b", "two")
    // Lines end as in the requests of Python's client.
    let body = """
      --===1==
      Content-Type: application/http
      Content-ID: <x+1>

      PATCH http://localhost\(Self.objects)/a?prettyPrint=false HTTP/1.1
      Content-Type: application/json

      {"metadata": {"k": "v"}}
      --===1==
      Content-Type: application/http

      DELETE \(Self.objects)/b HTTP/1.1

      --===1==
      Content-Type: application/http

      GET \(Self.objects)/none HTTP/1.1

      --===1==
      Content-Type: application/http

      GET \(Self.objects)/a?alt=media HTTP/1.1

      --===1==
      Content-Type: application/http

      GET /v1/projects/p/databases/(default)/documents/a/b HTTP/1.1

      --===1==--

      """
    for (name, text) in [("lines", body), ("CRLF", body.replacing("\n", with: "\r\n"))] {
      try CloudFilesTests.put(server, "b", "two")
      let reply = try server.request(
        "POST", "/batch/storage/v1", text, headers: [("Content-Type", "multipart/mixed; boundary=\"===1==\"")])
      #expect(reply.status == 200, "\(reply.text)")
      #expect(reply.header("content-type")?.hasPrefix("multipart/mixed; boundary=") == true)
      let statuses = reply.text.split(separator: "\r\n").filter { $0.hasPrefix("HTTP/1.1 ") }.map {
        $0.dropFirst(9).prefix(3)
      }
      #expect(statuses == ["200", "204", "404", "400", "404"], "\(name): \(reply.text)")
      #expect(reply.text.contains("Content-ID: <response-x+1>"))
      #expect(try server.call("GET", "\(Self.objects)/a").json("metadata", "k") == "v")
      #expect(try server.call("GET", "\(Self.objects)/b").status == 404)
    }
  }

  static let badBatches: [(type: String, body: String)] = [
    ("application/json", "{}"),
    ("multipart/mixed", "--b--"),
    ("multipart/mixed; boundary=b", ""),
    ("multipart/mixed; boundary=b", "--b--\r\n"),
    ("multipart/mixed; boundary=b", "--b\r\n\r\nnonsense\r\n--b--"),
    ("multipart/mixed; boundary=b", "--b\r\n"),
  ]

  @Test(arguments: badBatches.indices)
  func badBatchesAreRefused(row: Int) throws {
    let server = try TestServer()
    let (type, body) = Self.badBatches[row]
    let reply = try server.request("POST", "/batch/storage/v1", body, headers: [("Content-Type", type)])
    #expect(reply.status == 400, "\(reply.text)")
    #expect(try TestServer(.production).request("POST", "/batch/storage/v1", body).status == 401)
  }

  @Test func batchIsLimitedToAThousandRequests() throws {
    let server = try TestServer()
    try CloudFilesTests.put(server, "a", "one")
    let part = "--b\r\nContent-Type: application/http\r\n\r\nGET \(Self.objects)/a HTTP/1.1\r\n\r\n"
    func send(_ count: Int) throws -> TestServer.Response {
      try server.request(
        "POST", "/batch/storage/v1", String(repeating: part, count: count) + "--b--",
        headers: [("Content-Type", "multipart/mixed; boundary=b")])
    }
    #expect(try send(1000).text.components(separatedBy: "HTTP/1.1 200 OK").count == 1001)
    #expect(try send(1001).status == 400)
  }

  @Test func bucketsWithVersioningKeepVersions() throws {
    let server = try TestServer()
    _ = try server.request("POST", "/storage/v1/b?project=p", #"{"name": "bucket", "versioning": {"enabled": true}}"#)
    #expect(try server.call("GET", Self.bucket).json("versioning", "enabled", as: Bool.self) == true)
    let old: String = try #require(try CloudFilesTests.put(server, "a", "old").json("generation"))
    try CloudFilesTests.put(server, "a", "new")
    #expect(try server.call("GET", "\(Self.objects)/a?alt=media&generation=\(old)").text == "old")
    #expect(try server.call("GET", "\(Self.objects)/a?generation=\(old)&ifGenerationMatch=1").status == 412)
    #expect(try server.call("DELETE", "\(Self.objects)/a").status == 204)
    #expect(try server.call("GET", "\(Self.objects)/a").status == 404)
    let list = try server.call("GET", "\(Self.objects)?versions=true")
    #expect(
      list.json("items", as: [Any].self)?.count == 2 && list.json("items", 1, "timeDeleted", as: String.self) != nil)
    #expect(try server.call("GET", Self.objects).json("items", as: [Any].self) == nil)
    #expect(try server.call("DELETE", Self.bucket).status == 409)
    #expect(try server.call("DELETE", "\(Self.objects)/a?generation=\(old)").status == 204)
    #expect(try server.call("GET", "\(Self.objects)?versions=true").json("items", as: [Any].self)?.count == 1)
  }

  @Test func objectsAreMovedAndMatched() throws {
    let server = try TestServer()
    for name in ["foo/bar", "foobar", "foo/baz"] { try CloudFilesTests.put(server, name, name) }
    #expect(try server.call("POST", "\(Self.objects)/foobar/moveTo/o/moved%2Fhere", "").json("name") == "moved/here")
    #expect(try server.call("GET", "\(Self.objects)/foobar").status == 404)
    let list = try server.call("GET", "\(Self.objects)?matchGlob=*/ba%5Brz%5D")
    #expect(list.json("items", 1, "name") == "foo/baz" && list.json("items", as: [Any].self)?.count == 2)
    #expect(try server.call("GET", "\(Self.objects)?matchGlob=%5Ba").status == 400)
    let composed = try server.call(
      "POST", "\(Self.objects)/c/compose",
      #"{"sourceObjects": [{"name": "foo/bar", "objectPreconditions": {"ifGenerationMatch": "6"}}]}"#)
    #expect(composed.status == 412)
    let whole = try server.call(
      "POST", "\(Self.objects)/c/compose", #"{"sourceObjects": [{"name": "foo/bar"}], "deleteSourceObjects": true}"#)
    #expect(whole.status == 200 && whole.json("contentType", as: String.self) == nil)
    #expect(try server.call("GET", "\(Self.objects)/foo%2Fbar").status == 404)
  }

  @Test func bucketSettingsAreStoredOrRefused() throws {
    let server = try TestServer()
    let lifecycle = #"{"rule":[{"action":{"type":"Delete"},"condition":{"age":42,"matchesPrefix":["ä\"b"]}}]}"#
    let made = try server.request(
      "POST", "/storage/v1/b?project=p",
      #"{"name": "bucket", "lifecycle": \#(lifecycle), "cors": [], "softDeletePolicy": {"retentionDurationSeconds": "0"}, "labels": {"a": "b"}}"#
    )
    #expect(made.json("lifecycle", "rule", 0, "condition", "age", as: Int.self) == 42, "\(made.text)")
    #expect(made.json("lifecycle", "rule", 0, "condition", "matchesPrefix", 0) == "ä\"b")
    let changed = try server.request("PATCH", Self.bucket, #"{"lifecycle": null, "website": {"mainPageSuffix": "i"}}"#)
    #expect(changed.json("lifecycle", as: [String: Any].self) == nil && changed.json("labels", "a") == "b")
    #expect(try server.request("PATCH", "\(Self.bucket)?ifMetagenerationMatch=1", "{}").status == 412)
    #expect(try server.request("PATCH", "\(Self.bucket)?ifMetagenerationNotMatch=2", "{}").status == 412)
    #expect(try server.request("GET", "\(Self.bucket)?ifMetagenerationNotMatch=2").status == 304)
    let replaced = try server.request("PUT", Self.bucket, #"{"name": "bucket"}"#)
    #expect(
      replaced.json("labels", as: [String: Any].self) == nil && replaced.json("website", as: [String: Any].self) == nil)
    for member in [
      #""retentionPolicy": {"retentionPeriod": "10"}"#, #""defaultEventBasedHold": true"#,
      #""encryption": {"defaultKmsKeyName": "k"}"#, #""softDeletePolicy": {"retentionDurationSeconds": 604800}"#,
      #""hierarchicalNamespace": {"enabled": true}"#, #""ipFilter": {"mode": "Enabled"}"#,
    ] {
      let reply = try server.request("PATCH", Self.bucket, "{\(member)}")
      #expect(
        reply.status == 400 && reply.message.hasPrefix("This server does not support "), "\(member): \(reply.text)")
    }
    #expect(
      try server.request("PATCH", Self.bucket, #"{"labels": {"x": "\#(String(repeating: "y", count: 70_000))"}}"#)
        .status == 400)
  }

  @Test func unsupportedGuaranteesAreRefused() throws {
    let server = try TestServer()
    try CloudFilesTests.put(server, "a", "x")
    let path = "\(Self.objects)/a"
    for member in ["temporaryHold", "eventBasedHold", "retention", "contexts"] {
      #expect(try server.call("PATCH", path, #"{"\#(member)": {"mode": "Locked"}}"#).status == 400, "\(member)")
      #expect(try server.call("PATCH", path, #"{"\#(member)": null}"#).status == 200, "\(member)")
    }
    let key = ("X-Goog-Encryption-Algorithm", "AES256")
    #expect(try server.call("GET", "\(path)?alt=media", headers: [key]).status == 400)
    #expect(try server.call("POST", "\(path)/rewriteTo/b/bucket/o/b?destinationKmsKeyName=k", "").status == 400)
    #expect(
      try server.call("POST", "\(CloudFilesTests.uploads)?uploadType=media&name=b", "x", headers: [key]).status == 400)
    #expect(try server.call("GET", "\(Self.objects)/b").status == 404)
  }

  @Test func conflictingChecksumsAreRefused() throws {
    let server = try TestServer()
    let start = try server.call(
      "POST", "\(CloudFilesTests.uploads)?uploadType=resumable", #"{"name": "a", "crc32c": "AAAAAA=="}"#)
    let target = String(try #require(start.header("location")).dropFirst("http://localhost".count))
    let last = try server.call(
      "PUT", target, "hello", headers: [("Content-Range", "bytes 0-4/5"), ("X-Goog-Hash", "crc32c=mnG7TA==")])
    #expect(last.status == 400, "\(last.text)")
    #expect(try server.call("GET", "\(Self.objects)/a").status == 404)
  }

  @Test func gzipIsDecodedForClientsThatDoNotAcceptIt() throws {
    let server = try TestServer()
    // Two members, "hello " and "world".
    let hello: [UInt8] = [
      0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1, 6, 0, 0xF9, 0xFF, 0x68, 0x65, 0x6C, 0x6C, 0x6F, 0x20, 0xF6, 0xF9, 0x81,
      0xED,
      6, 0, 0, 0,
    ]
    let world: [UInt8] = [
      0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 3, 1, 5, 0, 0xFA, 0xFF, 0x77, 0x6F, 0x72, 0x6C, 0x64, 0x43, 0x11, 0x77, 0x3A, 5,
      0,
      0, 0,
    ]
    func put(_ name: String, _ bytes: [UInt8]) throws {
      let reply = try server.request(
        "POST", "\(CloudFilesTests.uploads)?uploadType=media&contentEncoding=gzip&name=\(name)", bytes: bytes,
        headers: [("Content-Type", "text/plain")])
      #expect(reply.status == 200, "\(reply.text)")
    }
    try put("two", hello + world)
    // Three members. The damage of the copies is far from the start.
    let third = [UInt8](repeating: 7, count: 60_000)
    let long = GRPCTests.gzip(third) + GRPCTests.gzip(third) + GRPCTests.gzip(third)
    try put("long", long)
    try put("cut", Array(long.dropLast(3)))
    try put("late", Array(long.prefix(150_000)) + [UInt8](repeating: 0, count: 1000))
    try put("text", Array("not compressed".utf8))
    try put("short", Array(hello.dropLast(3)))
    try put("more", hello + Array("more".utf8))
    try put("none", [])
    let path = "\(Self.objects)/two?alt=media"
    let plain = try server.call("GET", path, headers: [("Range", "bytes=0-3")])
    #expect(plain.status == 200 && plain.text == "hello world" && plain.header("content-encoding") == nil)
    #expect(plain.header("x-goog-hash") == nil && plain.header("vary") == "Accept-Encoding")
    let stored = try server.call("GET", path, headers: [("Accept-Encoding", "gzip"), ("Range", "bytes=0-3")])
    #expect(
      stored.status == 206 && stored.body == Array(hello.prefix(4)) && stored.header("content-encoding") == "gzip")
    #expect(try server.call("GET", path, headers: [("Accept-Encoding", "gzip;q=0")]).text == "hello world")
    #expect(try server.call("HEAD", path).header("content-encoding") == nil)
    #expect(try server.call("GET", "\(Self.objects)/none?alt=media").text == "")
    #expect(try server.call("GET", "\(Self.objects)/long?alt=media").body == third + third + third)
    // Content that is not gzip gets an error, or is sent as stored if the client accepts gzip.
    for name in ["text", "short", "more"] {
      let path = "\(Self.objects)/\(name)?alt=media"
      for method in ["GET", "HEAD"] {
        let refused = try server.call(method, path)
        #expect(refused.status == 406 && refused.text.contains("contentEncoding") == (method == "GET"), "\(name)")
      }
      #expect(try server.call("GET", path, headers: [("Accept-Encoding", "gzip")]).status == 200)
    }
    let firebase = try server.call(
      "GET", "/v0/b/bucket/o/text?alt=media", headers: [("Authorization", "Bearer owner")])
    #expect(firebase.status == 406 && firebase.message.hasPrefix("The object's contentEncoding"), "\(firebase.text)")
    // The client does not take a truncated response for a complete one.
    for name in ["cut", "late"] {
      let client = TestHTTPClient(port: server.port)
      defer { client.close() }
      #expect(throws: (any Error).self, "\(name)") { _ = try client.send("GET", "\(Self.objects)/\(name)?alt=media") }
    }
  }
}
