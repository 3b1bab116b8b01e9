import Foundation
import HearthServer
import Testing
import TestSupport

/// The API of Cloud Storage's clients, over a socket.
@Suite struct CloudFilesTests {
  static let objects = "/storage/v1/b/bucket/o"
  static let uploads = "/upload/storage/v1/b/bucket/o"

  @discardableResult
  static func put(_ server: TestServer, _ name: String, _ content: String, _ query: String = "") throws
    -> TestServer.Response
  {
    let encoded = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
    return try server.call(
      "POST", "\(uploads)?uploadType=media&name=\(encoded)\(query)", content, headers: [("Content-Type", "text/plain")])
  }

  @Test func objectsAreUploadedReadAndChanged() throws {
    let server = try TestServer()
    let made = try Self.put(server, "a/b", "hello")
    #expect(made.status == 200, "\(made.text)")
    #expect(made.json("kind") == "storage#object" && made.json("size") == "5" && made.json("crc32c") == "mnG7TA==")
    let generation: String = try #require(made.json("generation"))
    #expect(made.json("id") == "bucket/a/b/\(generation)")
    let path = "\(Self.objects)/a%2Fb"
    #expect(try server.call("GET", path).json("metageneration") == "1")
    #expect(try server.call("GET", "/download\(path)?alt=media").text == "hello")
    #expect(try server.call("GET", "\(path)?alt=media&generation=1").status == 404)
    let patched = try server.call("PATCH", path, #"{"metadata": {"k": "v"}, "cacheControl": "no-store"}"#)
    #expect(patched.json("metadata", "k") == "v" && patched.json("metageneration") == "2")
    #expect(try server.call("PATCH", "\(path)?ifMetagenerationMatch=1", "{}").status == 412)
    #expect(try server.call("GET", "\(path)?ifGenerationNotMatch=\(generation)").status == 304)
    #expect(try server.call("GET", "\(path)?ifGenerationMatch=1").status == 412)
    #expect(try Self.put(server, "a/b", "again", "&ifGenerationMatch=0").status == 412)
    let missing = try server.call("GET", "\(Self.objects)/none")
    #expect(missing.status == 404 && missing.message == "No such object: bucket/none")
    #expect(missing.json("error", "errors", as: [Any].self)?.count == 1)
    #expect(try server.call("GET", "\(Self.objects)/none?alt=media").text == "No such object: bucket/none")
    #expect(try server.call("DELETE", path).status == 204)
    #expect(try server.call("DELETE", path).status == 404)
  }

  @Test func checksumsMustMatch() throws {
    let server = try TestServer()
    for (hash, status) in [
      ("crc32c=mnG7TA==", 200), ("crc32c=AAAAAA==", 400), ("md5=XUFAKrxLKna5cZ2REBfFkg==", 200), ("md5=x", 400),
    ] {
      let reply = try server.call(
        "POST", "\(Self.uploads)?uploadType=media&name=\(status)", "hello", headers: [("X-Goog-Hash", hash)])
      #expect(reply.status == status, "\(hash)")
    }
    #expect(try server.call("GET", "\(Self.objects)/400").status == 404)
  }

  @Test func partsArriveByContentRange() throws {
    let server = try TestServer()
    let start = try server.call(
      "POST", "\(Self.uploads)?uploadType=resumable", #"{"name": "big", "contentType": "video/mp4"}"#)
    #expect(start.status == 200)
    let location = try #require(start.header("location"))
    let target = String(location.dropFirst("http://localhost".count))
    func put(_ range: String?, _ body: String, _ more: [(String, String)] = []) throws -> TestServer.Response {
      try server.call("PUT", target, body, headers: (range.map { [("Content-Range", $0)] } ?? []) + more)
    }
    let nothing = try put("bytes */*", "")
    #expect(nothing.status == 308 && nothing.header("range") == nil && nothing.header("location") == nil)
    let first = try put("bytes 0-4/10", "01234")
    #expect(first.status == 308 && first.header("range") == "bytes=0-4")
    #expect(try put("bytes 0-4/10", "01234").header("range") == "bytes=0-4")
    #expect(try put("bytes 7-9/10", "789").header("range") == "bytes=0-4")
    #expect(try put("bytes */10", "").header("range") == "bytes=0-4")
    #expect(try put("bytes x", "").status == 400)
    #expect(try server.call("GET", "\(Self.objects)/big").status == 404)
    let last = try put("bytes 5-9/10", "56789")
    #expect(last.status == 200 && last.json("size") == "10" && last.json("contentType") == "video/mp4", "\(last.text)")
    #expect(try server.call("GET", "\(Self.objects)/big?alt=media").text == "0123456789")
    #expect(try put("bytes */10", "").json("generation") == last.json("generation", as: String.self))
    #expect(try server.call("PUT", target + "0", "", headers: [("Content-Range", "bytes */*")]).status == 404)
    let other = try server.call("POST", "\(Self.uploads)?uploadType=resumable&name=x", "")
    let otherTarget = String(try #require(other.header("location")).dropFirst("http://localhost".count))
    #expect(try server.call("DELETE", otherTarget).status == 499)
    #expect(try server.call("PUT", otherTarget, "x", headers: [("Content-Range", "bytes 0-0/1")]).status == 404)
  }

  /// Begins a resumable upload and returns the target of its parts.
  private func begin(_ server: TestServer, _ name: String) throws -> String {
    let start = try server.call("POST", "\(Self.uploads)?name=\(name)&uploadType=resumable", "{}")
    return String(try #require(start.header("location"), "\(start.text)").dropFirst("http://localhost".count))
  }

  /// Sends a part as Node's client does: chunked, without the length of the body. Without `isWhole` the connection breaks.
  private func putChunked(
    _ server: TestServer, _ target: String, _ range: String, _ body: [UInt8], isWhole: Bool = true
  ) throws -> StreamedResponse {
    var request = Array(
      "PUT \(target) HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nTransfer-Encoding: chunked\r\nContent-Range: \(range)\r\n\r\n"
        .utf8)
    for start in stride(from: 0, to: body.count, by: 65_536) {
      let piece = body[start..<min(body.count, start + 65_536)]
      request += Array("\(String(piece.count, radix: 16))\r\n".utf8) + piece + Array("\r\n".utf8)
    }
    let response = try StreamedResponse(port: server.port, request: request + (isWhole ? Array("0\r\n\r\n".utf8) : []))
    if isWhole { try response.readToEnd() } else { response.close() }
    return response
  }

  /// `file.save(data)` and `createWriteStream()` of Cloud Storage for Node name no end of the range.
  @Test(arguments: [
    ("bytes 0-*/*", 5), ("bytes 0-*/5", 5), ("bytes 0-*/*", 0), ("bytes 0-*/0", 0), ("bytes 0--1/0", 0),
    ("bytes 0-*/*", 20 << 20), ("bytes 0-*/\(20 << 20)", 20 << 20),
  ])
  func rangeWithoutAnEndIsTheRestOfTheContent(range: String, size: Int) throws {
    let server = try TestServer()
    let body = (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) }
    let reply = try putChunked(server, begin(server, "big"), range, body)
    #expect(reply.status == 200, "\(String(decoding: reply.body, as: UTF8.self))")
    #expect(try server.call("GET", "\(Self.objects)/big").json("size") == "\(size)")
    #expect(try server.call("GET", "\(Self.objects)/big?alt=media").body == body)
    // The same with the length of the body.
    let other = try server.call(
      "PUT", begin(server, "other"), String(repeating: "x", count: size), headers: [("Content-Range", range)])
    #expect(other.status == 200 && other.json("size") == "\(size)", "\(other.text)")
  }

  @Test func rangeWithoutAnEndContinuesAnUpload() throws {
    let server = try TestServer()
    let target = try begin(server, "x")
    func put(_ range: String, _ body: String) throws -> TestServer.Response {
      try server.call("PUT", target, body, headers: [("Content-Range", range)])
    }
    // A body that is too short does not end the upload, and one that is too long is rejected.
    #expect(try put("bytes 0-*/8", "012").header("range") == "bytes=0-2")
    #expect(try put("bytes 3-*/8", "345678").status == 400)
    let progress = try put("bytes */*", "")
    #expect(progress.status == 308)
    let received = try #require(progress.header("range").flatMap { $0.split(separator: "-").last }.flatMap { Int($0) })
    #expect(try put("bytes 0-*/*", "012").header("range") == "bytes=0-\(received)")
    for range in ["bytes *-*/*", "bytes 0-*", "bytes -*/*", "bytes 9-*/8", "bytes 0-x/*", "bytes 3-1/8", "bytes 0-*/x"]
    {
      #expect(try put(range, "").message == "Malformed Content-Range: \(range)")
    }
    let rest = String("01234567".dropFirst(received + 1))
    let last = try put("bytes \(received + 1)-*/*", rest)
    #expect(last.status == 200 && last.json("size") == "8", "\(last.text)")
    #expect(try server.call("GET", "\(Self.objects)/x?alt=media").text == "01234567")
  }

  /// The end of a connection is not the end of the content.
  @Test func brokenUploadWithoutAnEndCanContinue() throws {
    let server = try TestServer()
    let target = try begin(server, "x")
    let body = [UInt8](repeating: 7, count: 200_000)
    _ = try putChunked(server, target, "bytes 0-*/*", Array(body.prefix(100_000)), isWhole: false)
    var progress = TestServer.Response()
    // The server still writes the first bytes, or has not noticed the end of the connection yet.
    repeat {
      progress = try server.call("PUT", target, "", headers: [("Content-Range", "bytes */*")])
    } while progress.status == 503
    #expect(progress.status == 308)
    #expect(try server.call("GET", "\(Self.objects)/x").status == 404)
    let next =
      progress.header("range").flatMap { $0.split(separator: "-").last }.flatMap { Int($0) }.map { $0 + 1 } ?? 0
    let reply = try putChunked(server, target, "bytes \(next)-*/*", Array(body.dropFirst(next)))
    #expect(reply.status == 200)
    #expect(try server.call("GET", "\(Self.objects)/x?alt=media").body == body)
  }

  @Test func responsesContainTheRequestedFields() throws {
    let server = try TestServer()
    for name in ["a", "d/b", "d/c"] { try Self.put(server, name, "hello") }
    _ = try server.call("PATCH", "\(Self.objects)/a", #"{"metadata": {"k": "v", "l": "w"}}"#)
    let cases: [(String, String)] = [
      ("\(Self.objects)?fields=items(name)", #"{"items": [{"name": "a"}, {"name": "d/b"}, {"name": "d/c"}]}"#),
      (
        "\(Self.objects)?fields=items(name,size),nextPageToken&maxResults=1",
        #"{"nextPageToken": "*", "items": [{"name": "a", "size": "5"}]}"#
      ),
      ("\(Self.objects)?fields=items/name,prefixes&delimiter=/", #"{"prefixes": ["d/"], "items": [{"name": "a"}]}"#),
      ("\(Self.objects)?fields=items/metadata(k)&prefix=a", #"{"items": [{"metadata": {"k": "v"}}]}"#),
      (
        "\(Self.objects)?fields=*/metadata/k,kind&prefix=a",
        #"{"kind": "storage#objects", "items": [{"metadata": {"k": "v"}}]}"#
      ),
      ("\(Self.objects)/a?fields=name,metadata", #"{"name": "a", "metadata": {"k": "v", "l": "w"}}"#),
      ("\(Self.objects)/a?fields=none", "{}"), ("/storage/v1/b/bucket?fields=name", #"{"name": "bucket"}"#),
      ("/storage/v1/b?project=p&fields=items/id", #"{"items": [{"id": "bucket"}]}"#),
    ]
    for (path, expected) in cases {
      let reply = try server.call("GET", path)
      #expect(matches(expected, reply), "\(path): \(reply.text)")
    }
    let moved = try server.call("POST", "\(Self.objects)/a/copyTo/b/bucket/o/z?fields=name", "")
    #expect(matches(#"{"name": "z"}"#, moved), "\(moved.text)")
    #expect(try server.call("GET", "\(Self.objects)/a?alt=media&fields=name").text == "hello")
    let deep = String(repeating: "a(", count: 40) + "b" + String(repeating: ")", count: 40)
    for fields in ["items(name", "items)", ",", "a,", "a//b", "()", "a()", "/a", deep] {
      let reply = try server.call("DELETE", "\(Self.objects)/a?fields=\(fields)")
      #expect(reply.status == 400 && reply.message.hasPrefix("Invalid field selection "), "\(fields)")
    }
    #expect(try server.call("GET", "\(Self.objects)/a").status == 200)
  }

  // Source: the system tests of Cloud Storage for Node and Python.
  @Test func autoclassHasTheTimesOfItsChanges() throws {
    let server = try TestServer()
    let path = "/storage/v1/b/new-bucket"
    func change(_ body: String) throws -> [String: String] {
      let reply = try server.call("PATCH", path, #"{"autoclass": \#(body)}"#)
      let all = reply.json("autoclass", as: [String: Any].self) ?? [:]
      return all.mapValues { "\($0)" }
    }
    #expect(try server.call("POST", "/storage/v1/b?project=p", #"{"name": "new-bucket"}"#).status == 200)
    let on = try change(#"{"enabled": true}"#)
    #expect(on["enabled"] == "1" || on["enabled"] == "true")
    #expect(on["terminalStorageClass"] == "NEARLINE")
    let archive = try change(
      #"{"enabled": true, "terminalStorageClass": "ARCHIVE", "toggleTime": "2000-01-01T00:00:00Z"}"#)
    #expect(archive["terminalStorageClass"] == "ARCHIVE" && archive["toggleTime"] == on["toggleTime"])
    #expect(archive["terminalStorageClassUpdateTime"] ?? "" > on["terminalStorageClassUpdateTime"] ?? "z")
    let off = try change(#"{"enabled": false}"#)
    #expect(off["toggleTime"] ?? "" > on["toggleTime"] ?? "z" && off.count == 2, "\(off)")
    #expect(try server.call("GET", path).json("autoclass", "enabled", as: Bool.self) == false)
    #expect(try change("null").isEmpty)
  }

  @Test func copiesAndCompositionsAreNewObjects() throws {
    let server = try TestServer()
    try Self.put(server, "a", "one ")
    try Self.put(server, "b", "two")
    _ = try server.call("PATCH", "\(Self.objects)/a", #"{"metadata": {"k": "v"}}"#)
    let copy = try server.call("POST", "\(Self.objects)/a/copyTo/b/other/o/x%2Fy", "")
    #expect(copy.json("bucket") == "other" && copy.json("name") == "x/y" && copy.json("metadata", "k") == "v")
    let rewrite = try server.call("POST", "\(Self.objects)/a/rewriteTo/b/bucket/o/r", #"{"metadata": {"n": "1"}}"#)
    #expect(
      rewrite.json("done", as: Bool.self) == true && rewrite.json("resource", "metadata", "k", as: String.self) == nil)
    let composed = try server.call(
      "POST", "\(Self.objects)/c/compose",
      #"{"sourceObjects": [{"name": "a"}, {"name": "b"}, {"name": "a"}], "destination": {"contentType": "text/x"}}"#)
    #expect(
      composed.json("componentCount", as: Int.self) == 3 && composed.json("contentType") == "text/x", "\(composed.text)"
    )
    #expect(try server.call("GET", "\(Self.objects)/c?alt=media").text == "one twoone ")
    #expect(
      try server.call("POST", "\(Self.objects)/c/compose", #"{"sourceObjects": [{"name": "none"}]}"#).status == 404)
    #expect(try server.call("POST", "\(Self.objects)/c/compose", "{}").status == 400)
    for number in [#""x""#, "9223372036854775808", #""9223372036854775808""#, "true"] {
      for source in [#""generation": \#(number)"#, #""objectPreconditions": {"ifGenerationMatch": \#(number)}"#] {
        let body = #"{"sourceObjects": [{"name": "a", \#(source)}]}"#
        #expect(try server.call("POST", "\(Self.objects)/c/compose", body).status == 400, "\(source)")
      }
    }
    let list = try server.call("GET", "\(Self.objects)?prefix=&delimiter=/&maxResults=2")
    #expect(list.json("items", as: [Any].self)?.count == 2 && list.json("nextPageToken", as: String.self) != nil)
  }

  @Test func bucketsAreCreatedAndDeleted() throws {
    let server = try TestServer()
    let bucket = "/storage/v1/b/new-bucket"
    #expect(try server.call("GET", bucket).status == 404)
    #expect(
      try server.call("POST", "/storage/v1/b?project=p", #"{"name": "new-bucket", "labels": {"a": "b"}}"#).json("name")
        == "new-bucket")
    #expect(try server.call("POST", "/storage/v1/b?project=p", #"{"name": "new-bucket"}"#).status == 409)
    #expect(try server.call("POST", "/storage/v1/b?project=p", #"{"name": "../x"}"#).status == 400)
    #expect(try server.call("PATCH", bucket, #"{"labels": {"a": null, "c": "d"}}"#).json("labels", "c") == "d")
    #expect(try server.call("GET", "/storage/v1/b?project=p").json("items", 0, "name") == "new-bucket")
    #expect(try server.call("DELETE", bucket).status == 204)
    #expect(try server.call("DELETE", bucket).status == 404)
  }

  @Test func onlyAdministratorsMayUseTheAPI() throws {
    let server = try TestServer(.production)
    #expect(try server.call("GET", Self.objects).status == 401)
    #expect(try Self.put(server, "a", "x").status == 401)
    #expect(try server.call("PUT", "/internal/setRules", "{}").status == 401)
    let emulator = try TestServer()
    let user = ("Authorization", "Bearer " + UnsignedToken.make(#"{"sub":"ann"}"#))
    #expect(try emulator.call("GET", Self.objects, headers: [user]).status == 403)
  }
}
