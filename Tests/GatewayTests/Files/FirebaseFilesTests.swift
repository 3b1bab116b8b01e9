import Foundation
import HearthServer
import Testing

/// The API of Firebase's clients, over a socket.
@Suite struct FirebaseFilesTests {
  static let owner = ("Authorization", "Bearer owner")
  static let bucket = "/v0/b/p.appspot.com/o"

  @discardableResult
  static func put(
    _ server: TestServer, _ name: String, _ content: String, type: String? = "text/plain"
  ) throws -> TestServer.Response {
    let encoded = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
    let reply = try server.call(
      "POST", "\(bucket)?name=\(encoded)", content, headers: [owner] + (type.map { [("Content-Type", $0)] } ?? []))
    #expect(reply.status == 200, "\(reply.text)")
    return reply
  }

  @Test func rawUploadCanBeRead() throws {
    let server = try TestServer()
    let reply = try Self.put(server, "dir/hello.txt", "hello")
    #expect(reply.json("name") == "dir/hello.txt")
    #expect(reply.json("bucket") == "p.appspot.com")
    #expect(reply.json("size") == "5")
    #expect(reply.json("metageneration") == "1")
    #expect(reply.json("md5Hash") == "XUFAKrxLKna5cZ2REBfFkg==")
    #expect(reply.json("crc32c") == "mnG7TA==")
    #expect(reply.json("contentType") == "text/plain")
    #expect(reply.json("contentEncoding") == "identity")
    #expect(reply.json("contentDisposition") == "inline; filename*=utf-8''hello.txt")
    let token: String = try #require(reply.json("downloadTokens"))
    // Any caller with the token may read the object. Without it, only an administrator may.
    let path = "\(Self.bucket)/dir%2Fhello.txt"
    let content = try server.call("GET", "\(path)?alt=media&token=\(token)")
    #expect(content.status == 200 && content.text == "hello")
    #expect(content.header("content-length")?.trimmingCharacters(in: .whitespaces) == "5")
    #expect(content.header("x-goog-hash") == "crc32c=mnG7TA==,md5=XUFAKrxLKna5cZ2REBfFkg==")
    #expect(content.header("x-content-type-options") == "nosniff")
    #expect(try server.call("GET", "\(path)?alt=media&token=x").status == 403)
    #expect(try server.call("GET", path).status == 403)
    #expect(try server.call("GET", path, headers: [Self.owner]).json("name") == "dir/hello.txt")
    #expect(try server.call("GET", "\(Self.bucket)/none", headers: [Self.owner]).message == "Not Found.")
    #expect(try server.call("GET", "\(Self.bucket)/none").status == 403)
    let head = try server.call("HEAD", "\(path)?alt=media&token=\(token)")
    #expect(head.status == 200 && head.body.isEmpty && head.header("x-goog-hash") != nil)
    #expect(try server.call("DELETE", "\(Self.bucket)?name=dir/hello.txt", headers: [Self.owner]).status == 204)
    #expect(try server.call("GET", path, headers: [Self.owner]).status == 404)
  }

  static let ranges: [(String, Int, String, String?)] = [
    ("bytes=0-4", 206, "01234", "bytes 0-4/10"),
    ("bytes=5-", 206, "56789", "bytes 5-9/10"),
    ("bytes=-3", 206, "789", "bytes 7-9/10"),
    ("bytes=-99", 206, "0123456789", "bytes 0-9/10"),
    ("bytes=0-999999999999999999999999", 206, "0123456789", "bytes 0-9/10"),
    ("bytes=10-", 416, "*", "bytes */10"),
    ("bytes=99999999999999999999-", 416, "*", "bytes */10"),
    ("bytes=-0", 416, "*", "bytes */10"),
    ("bytes=5-2", 200, "0123456789", nil),
    ("bytes=0-1,3-4", 200, "0123456789", nil),
    ("bytes=x-y", 200, "0123456789", nil),
    ("lines=1-2", 200, "0123456789", nil),
  ]

  @Test func rangeRequestsReturnParts() throws {
    let server = try TestServer()
    try Self.put(server, "digits", "0123456789")
    for (range, status, text, contentRange) in Self.ranges {
      let reply = try server.call(
        "GET", "\(Self.bucket)/digits?alt=media", headers: [Self.owner, ("Range", range)])
      #expect(reply.status == status, "\(range)")
      if text != "*" { #expect(reply.text == text, "\(range)") }
      #expect(reply.header("content-range") == contentRange, "\(range)")
    }
  }

  @Test func conditionalRequestsAreEvaluated() throws {
    let server = try TestServer()
    try Self.put(server, "a", "1")
    let path = "\(Self.bucket)/a?alt=media"
    let first = try server.call("GET", path, headers: [Self.owner])
    let etag = try #require(first.header("etag"))
    let modified = try #require(first.header("last-modified"))
    func status(_ name: String, _ value: String) throws -> Int {
      try server.call("GET", path, headers: [Self.owner, (name, value)]).status
    }
    #expect(try status("If-None-Match", etag) == 304)
    #expect(try status("If-None-Match", "\"x\", W/\(etag)") == 304)
    #expect(try status("If-None-Match", "\"x\"") == 200)
    #expect(try status("If-Match", etag) == 200)
    #expect(try status("If-Match", "\"x\"") == 412)
    #expect(try status("If-Modified-Since", modified) == 304)
    #expect(try status("If-Modified-Since", "Sun, 06 Nov 1994 08:49:37 GMT") == 200)
  }

  @Test func multipartBodyHasMetadataAndContent() throws {
    let server = try TestServer()
    func send(_ body: String, _ type: String, _ query: String = "?name=a%20b") throws -> TestServer.Response {
      try server.call(
        "POST", Self.bucket + query, body,
        headers: [Self.owner, ("X-Goog-Upload-Protocol", "multipart"), ("Content-Type", type)])
    }
    let json = #"{"contentType": "image/png", "metadata": {"k": "v", "n": 7}, "cacheControl": "no-cache"}"#
    let content = "bytes\r\n--other\r\n\r\n--b\r and --bx"
    let body =
      "--bound\r\nContent-Type: application/json; charset=utf-8\r\n\r\n\(json)\r\n--bound\r\nContent-Type: text/x\r\n\r\n\(content)\r\n--bound--"
    for type in ["multipart/related; boundary=bound", "multipart/related; charset=x; boundary=\"bound\""] {
      let reply = try send(body, type)
      #expect(reply.status == 200, "\(reply.text)")
      #expect(reply.json("contentType") == "image/png")
      #expect(reply.json("metadata", "k") == "v" && reply.json("metadata", "n") == "7")
      #expect(reply.json("cacheControl") == "no-cache")
      #expect(try server.call("GET", "\(Self.bucket)/a%20b?alt=media", headers: [Self.owner]).text == content)
    }
    let empty =
      "--bound\r\nContent-Type: application/json\r\n\r\n{}\r\n--bound\r\nContent-Type: t/x\r\n\r\n\r\n--bound--\r\n"
    #expect(try send(empty, "multipart/related; boundary=bound").json("size") == "0")
    let bad = [
      (body, "multipart/related", "Bad content type."),
      (String(body.dropLast(9)), "multipart/related; boundary=bound", "Bad content type."),
      (
        body.replacingOccurrences(of: "Content-Type: text/x\r\n", with: "X: y\r\n"),
        "multipart/related; boundary=bound",
        "Failed to parse multipart request body part. Missing content type."
      ),
      (
        body.dropLast(2) + "\r\nContent-Type: t/x\r\n\r\n3\r\n--bound--", "multipart/related; boundary=bound",
        "Bad content type. Unexpected number of parts in request body"
      ),
      (body.replacingOccurrences(of: json, with: "[]"), "multipart/related; boundary=bound", "The metadata must be"),
    ]
    for (body, type, message) in bad {
      let reply = try send(body, type, "?name=bad")
      #expect(reply.status == 400)
      #expect(reply.message.hasPrefix(message), "\(reply.message)")
    }
    #expect(try server.call("GET", "\(Self.bucket)/bad", headers: [Self.owner]).status == 404)
  }

  @Test func lastPartCompletesTheObject() throws {
    let server = try TestServer()
    func command(
      _ command: String, _ target: String, _ body: String? = "", offset: Int? = nil, _ more: [(String, String)] = []
    ) throws -> TestServer.Response {
      let offset = offset.map { [("X-Goog-Upload-Offset", String($0))] } ?? []
      return try server.call(
        "POST", target, body, headers: [Self.owner, ("X-Goog-Upload-Command", command)] + offset + more)
    }
    let start = try command(
      "start", "\(Self.bucket)?name=big", #"{"contentType": "video/mp4"}"#, offset: nil,
      [("X-Goog-Upload-Protocol", "resumable"), ("X-Goog-Upload-Header-Content-Length", "10")])
    #expect(start.status == 200 && start.header("x-goog-upload-status") == "active")
    #expect(start.header("x-goog-upload-chunk-granularity") == "262144")
    let url = try #require(start.header("x-goog-upload-url"))
    #expect(url.hasPrefix("http://localhost/v0/b/"))
    let target = String(url.dropFirst("http://localhost".count))
    #expect(try command("upload", target, "01234", offset: 0).header("x-goog-upload-status") == "active")
    // The server accepts no part twice and no gap.
    for offset in [0, 4, 6] { #expect(try command("upload", target, "xx", offset: offset).status == 400) }
    let query = try command("query", target)
    #expect(query.header("x-goog-upload-size-received") == "5" && query.header("x-goog-upload-status") == "active")
    #expect(try server.call("GET", "\(Self.bucket)/big", headers: [Self.owner]).status == 404)
    let last = try command("upload, finalize", target, "56789", offset: 5)
    #expect(last.status == 200 && last.header("x-goog-upload-status") == "final", "\(last.text)")
    #expect(last.json("size") == "10" && last.json("contentType") == "video/mp4")
    #expect(try server.call("GET", "\(Self.bucket)/big?alt=media", headers: [Self.owner]).text == "0123456789")
    let again = try command("finalize", target)
    #expect(again.status == 200 && again.json("generation") == last.json("generation", as: String.self))
    #expect(try command("query", target).header("x-goog-upload-status") == "final")
    #expect(try command("cancel", target).status == 400)
    #expect(
      try command("upload", target.replacingOccurrences(of: "upload_id=", with: "upload_id=0"), "x").status == 404)
    let other = try command("start", "\(Self.bucket)?name=none", "")
    let otherTarget = String(try #require(other.header("x-goog-upload-url")).dropFirst("http://localhost".count))
    #expect(try command("cancel", otherTarget).status == 200)
    #expect(try command("upload", otherTarget, "x", offset: 0).status == 400)
    let empty = try command("start", "\(Self.bucket)?name=empty", "")
    let emptyTarget = String(try #require(empty.header("x-goog-upload-url")).dropFirst("http://localhost".count))
    #expect(try command("finalize", emptyTarget).json("size") == "0")
  }

  @Test func updatesChangeOnlyTheGivenMetadata() throws {
    let server = try TestServer()
    try Self.put(server, "a", "1")
    func patch(_ body: String, method: String = "PATCH", _ more: [(String, String)] = []) throws -> TestServer.Response
    {
      try server.call(method, "\(Self.bucket)/a", body, headers: [Self.owner] + more)
    }
    let first = try patch(#"{"contentType": "image/gif", "metadata": {"a": "1", "b": "2"}}"#)
    #expect(first.json("contentType") == "image/gif" && first.json("metadata", "b") == "2")
    #expect(first.json("metageneration") == "2")
    let second = try patch(#"{"metadata": {"a": null}}"#, method: "PUT", [("X-HTTP-Method-Override", "PATCH")])
    #expect(second.json("metadata", "a", as: String.self) == nil && second.json("metadata", "b") == "2")
    #expect(second.json("contentType") == "image/gif" && second.json("metageneration") == "3")
    #expect(second.json("downloadTokens") == first.json("downloadTokens", as: String.self))
    let third = try patch(#"{"metadata": null, "contentType": null}"#)
    #expect(third.json("metadata", as: [String: Any].self) == nil)
    #expect(third.json("contentType") == "application/octet-stream")
    #expect(third.json("downloadTokens") == first.json("downloadTokens", as: String.self))
    #expect(try patch("[1]").status == 400)
    #expect(try server.call("PATCH", "\(Self.bucket)/none", "{}", headers: [Self.owner]).status == 404)
    let tokens = try server.call("POST", "\(Self.bucket)/a?create_token=true", "", headers: [Self.owner])
    let list: String = try #require(tokens.json("downloadTokens"))
    #expect(list.split(separator: ",").count == 2)
    let fewer = try server.call(
      "POST", "\(Self.bucket)/a?delete_token=\(list.split(separator: ",")[0])", "", headers: [Self.owner])
    #expect(fewer.json("downloadTokens") == String(list.split(separator: ",")[1]))
    #expect(try server.call("POST", "\(Self.bucket)/a?create_token=true", "").status == 403)
  }

  @Test func listingsHaveFoldersAndPages() throws {
    let server = try TestServer()
    for name in ["a/1", "a/2", "a/b/3", "top"] { try Self.put(server, name, "x") }
    func list(_ query: String) throws -> TestServer.Response {
      try server.call("GET", "\(Self.bucket)?\(query)", headers: [Self.owner])
    }
    #expect(
      matches(
        #"{"prefixes": ["a/"], "items": [{"name": "top", "bucket": "p.appspot.com"}]}"#, try list("prefix=&delimiter=/")
      ))
    let first = try list("prefix=a/&delimiter=/&maxResults=2")
    #expect(
      matches(
        #"{"prefixes": [], "items": [{"name": "a/1", "bucket": "*"}, {"name": "a/2", "bucket": "*"}], "nextPageToken": "*"}"#,
        first))
    let token: String = try #require(first.json("nextPageToken"))
    let encoded = token.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? ""
    #expect(
      matches(
        #"{"prefixes": ["a/b/"], "items": []}"#, try list("prefix=a/&delimiter=/&maxResults=2&pageToken=\(encoded)")))
    #expect(try list("prefix=a").status == 400)
    #expect(try server.call("GET", Self.bucket).status == 403)
  }

  static let tricks = [
    "/v0/b/p.appspot.com/o/..%2F..%2Fetc%2Fpasswd", "/v0/b/../o/x", "/v0/b/%2e%2e/o/x", "/v0/b/p.appspot.com/o/%",
    "/v0/b/p.appspot.com/o/%00", "/v0/b/p.appspot.com/o/%ff", "/v0/b/p.appspot.com/o/..", "/v0/b/p.appspot.com",
    "/v0/b/p.appspot.com/x", "/v0/b/a%2Fb/o/x", "/v0/b//o/x", "/v0/b/p.appspot.com/o/../../../etc/passwd",
  ]

  @Test(arguments: tricks)
  func pathsReachOnlyObjects(path: String) throws {
    let server = try TestServer()
    let reply = try server.call("GET", path + "?alt=media", headers: [Self.owner])
    #expect([400, 404].contains(reply.status), "\(reply.status) \(reply.text)")
    #expect(!reply.text.contains("root:"))
  }

  @Test func activeContentIsSandboxed() throws {
    let server = try TestServer()
    for (type, isSafe) in [
      ("text/html", false), ("image/svg+xml", false), ("TEXT/HTML; charset=utf-8", false),
      ("application/xhtml+xml", false),
      ("image/png", true), ("video/mp4", true), ("application/pdf", true), ("text/plain", true),
    ] {
      try Self.put(server, "x", "<script>alert(1)</script>", type: type)
      let reply = try server.call("GET", "\(Self.bucket)/x?alt=media", headers: [Self.owner])
      #expect(reply.header("content-type") == type)
      #expect((reply.header("content-security-policy")?.hasPrefix("sandbox") ?? false) == !isSafe, "\(type)")
      #expect(reply.header("x-content-type-options") == "nosniff")
    }
  }

  @Test func uploadHeadersAreExposedToBrowsers() throws {
    let server = try TestServer()
    let reply = try server.call(
      "POST", "\(Self.bucket)?name=a", "{}",
      headers: [Self.owner, ("Origin", "http://app"), ("X-Goog-Upload-Command", "start")])
    #expect(reply.header("access-control-allow-origin") == "http://app")
    let exposed = reply.header("access-control-expose-headers")?.lowercased() ?? ""
    for name in ["x-goog-upload-url", "x-goog-upload-status", "x-goog-upload-size-received"] {
      #expect(exposed.contains(name))
    }
  }

  @Test func onlyAdministratorsHaveAccessWithoutRules() throws {
    let emulator = try TestServer()
    let denied = try emulator.call("POST", "\(Self.bucket)?name=a", "x")
    #expect(denied.status == 403)
    #expect(denied.message == "Permission denied. Storage Emulator has no loaded ruleset.")
    let production = try TestServer(.production)
    for method in ["GET", "DELETE"] {
      #expect(try production.call(method, "\(Self.bucket)/a").message == "Permission denied.")
    }
    #expect(try production.call("POST", "\(Self.bucket)?name=a", "x").status == 403)
    #expect(try production.call("GET", "\(Self.bucket)/a", headers: [Self.owner]).status == 401)
  }

  /// Content larger than any request that is read into memory, and than the buffer between socket and disk.
  @Test func largeContentIsStreamedInBothDirections() throws {
    let server = try TestServer()
    let line = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcde\n"
    let content = String(repeating: line, count: (24 << 20) / 64)
    let reply = try Self.put(server, "large", content)
    #expect(reply.json("size") == String(content.utf8.count))
    let back = try server.call("GET", "\(Self.bucket)/large?alt=media", headers: [Self.owner])
    #expect(back.body.count == content.utf8.count)
    #expect(back.body.elementsEqual(content.utf8))
    let part = try server.call(
      "GET", "\(Self.bucket)/large?alt=media", headers: [Self.owner, ("Range", "bytes=\(20 << 20)-\((20 << 20) + 63)")])
    #expect(part.text == line)
  }
}
