import Foundation
import HearthServer
import Testing

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
