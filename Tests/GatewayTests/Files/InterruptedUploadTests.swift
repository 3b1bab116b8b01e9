import Foundation
import HearthServer
import Testing
import TestSupport

/// Uploads whose parts arrive twice, out of order, too long, too short or from another caller, to both storage APIs.
@Suite struct InterruptedUploadTests {
  static let owner = HostileFilesTests.owner
  static let firebase = HostileFilesTests.firebase
  static let cloud = HostileFilesTests.cloud
  static let cloudUpload = HostileFilesTests.cloudUpload
  static let rules = """
    rules_version = '2'; service firebase.storage { match /b/{b}/o { match /u/{uid}/{file} {
      allow read, write: if request.auth.uid == uid && request.resource.size < 1000;
    } match /big/{file} { allow write: if request.auth.uid == 'ann'; } } }
    """

  static func user(_ uid: String) -> (String, String) {
    ("Authorization", "Firebase " + UnsignedToken.make(#"{"sub":"\#(uid)"}"#))
  }

  static func withRules() throws -> TestServer {
    let server = try TestServer()
    let body: JSONNode = ["rules": ["files": [["name": "storage.rules", "content": .string(rules)]]]]
    #expect(try server.call("PUT", "/internal/setRules", body.text).status == 200)
    return server
  }

  private func command(
    _ server: TestServer, _ command: String, _ target: String, _ body: String = "", offset: Int? = nil,
    _ who: (String, String)?, _ more: [(String, String)] = []
  ) throws -> TestServer.Response {
    try server.call(
      "POST", target, body,
      headers: [("X-Goog-Upload-Command", command)] + (who.map { [$0] } ?? [])
        + (offset.map { [("X-Goog-Upload-Offset", String($0))] } ?? []) + more)
  }

  private func target(_ reply: TestServer.Response) throws -> String {
    String(
      try #require(reply.header("x-goog-upload-url") ?? reply.header("location"), "\(reply.text)").dropFirst(
        "http://localhost".count))
  }

  @Test func firebasePartsAreNeverAppliedTwice() throws {
    let server = try TestServer()
    let url = try target(
      command(
        server, "start", "\(Self.firebase)?name=x", "{}", Self.owner, [("X-Goog-Upload-Header-Content-Length", "10")]))
    #expect(try command(server, "upload", url, "01234", offset: 0, Self.owner).status == 200)
    // A repeated part, a gap, no offset and an invalid offset: the response reports the bytes received so far.
    for (offset, more) in [
      (0, []), (6, []), (-1, []), (Int.max, []), (nil, []), (nil, [("X-Goog-Upload-Offset", "x")]),
    ] as [(Int?, [(String, String)])] {
      let reply = try command(server, "upload", url, "56789", offset: offset, Self.owner, more)
      #expect(reply.status == 400, "\(offset.map(String.init) ?? "none")")
    }
    #expect(try command(server, "upload", url, "5", offset: 0, Self.owner).header("x-goog-upload-size-received") == "5")
    // Ending too early and sending too long a part do not end the upload.
    #expect(try command(server, "upload, finalize", url, "567", offset: 5, Self.owner).status == 400)
    #expect(try command(server, "query", url, "", Self.owner).header("x-goog-upload-size-received") == "8")
    #expect(try command(server, "upload, finalize", url, "89abc", offset: 8, Self.owner).status == 400)
    #expect(try server.call("GET", "\(Self.firebase)/x", headers: [Self.owner]).status == 404)
    #expect(try command(server, "upload, finalize", url, "89", offset: 8, Self.owner).json("size") == "10")
    #expect(try server.call("GET", "\(Self.firebase)/x?alt=media", headers: [Self.owner]).text == "0123456789")
    // Late parts change nothing.
    let late = try command(server, "upload", url, "zzz", offset: 10, Self.owner)
    #expect(late.status == 200 && late.header("x-goog-upload-status") == "final")
    #expect(try server.call("GET", "\(Self.firebase)/x?alt=media", headers: [Self.owner]).text == "0123456789")
    for length in ["-1", "x", "1e3"] {
      let start = try command(
        server, "start", "\(Self.firebase)?name=y", "{}", Self.owner, [("X-Goog-Upload-Header-Content-Length", length)])
      #expect(start.status == 400)
    }
  }

  @Test func cloudStoragePartsAreNeverAppliedTwice() throws {
    let server = try TestServer()
    func start() throws -> String {
      try target(server.call("POST", "\(Self.cloudUpload)?uploadType=resumable&name=x", ""))
    }
    func put(_ url: String, _ range: String, _ body: String, _ more: [(String, String)] = []) throws
      -> TestServer.Response
    {
      try server.call("PUT", url, body, headers: [("Content-Range", range)] + more)
    }
    let url = try start()
    #expect(try put(url, "bytes 0-3/10", "0123").header("range") == "bytes=0-3")
    for range in [
      "bytes 4-3/10", "bytes 4-12/10", "bytes -4/10", "bytes 4-/10", "bytes 4-5", "4-5/10", "bytes 4-5/-1",
      "bytes a-b/c",
      "bytes 99999999999999999999-99999999999999999999/*",
    ] {
      #expect(try put(url, range, "45").status == 400, "\(range)")
    }
    // The server rejects more bytes than the range says. It accepts fewer and reports the number.
    #expect(try put(url, "bytes 4-5/10", "456789").status == 400)
    #expect(try put(url, "bytes */10", "456789").status == 400)
    #expect(try put(url, "bytes */10", "").header("range") == "bytes=0-3")
    #expect(try put(url, "bytes 4-9/10", "456").header("range") == "bytes=0-6")
    #expect(try server.call("GET", "\(Self.cloud)/x").status == 404)
    // The checksum of the last part covers the whole object. If it is wrong, the upload ends.
    #expect(try put(url, "bytes 7-9/10", "789", [("X-Goog-Hash", "crc32c=AAAAAA==")]).status == 400)
    #expect(try server.call("GET", "\(Self.cloud)/x").status == 404)
    #expect(try put(url, "bytes */*", "").status == 404)
    let other = try start()
    #expect(try put(other, "bytes 0-9/*", "0123456789").status == 308)
    #expect(try put(other, "bytes */5", "").status == 400, "the upload is longer than the stated length")
    #expect(try put(other, "bytes */10", "").json("size") == "10")
  }

  @Test func checksumsOfEveryKindMustMatch() throws {
    let server = try TestServer()
    let md5 = "XUFAKrxLKna5cZ2REBfFkg=="
    let sha256 = "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="
    let cases: [((String, String), Int)] = [
      (("X-Goog-Hash", "crc32c=mnG7TA==,md5=\(md5)"), 200), (("X-Goog-Hash", "crc32c=mnG7TA==, md5=AAAA"), 400),
      (("X-Goog-Hash", "crc32c=TLtxmg=="), 400), (("X-Goog-Hash", "crc32c="), 400), (("X-Goog-Hash", "sha1=x"), 400),
      (("X-Goog-Hash", "md5=5d41402abc4b2a76b9719d911017c592"), 400),
      (("Content-MD5", md5), 200), (("Content-MD5", "AAAA"), 400),
      (("Content-Digest", "sha-256=:\(sha256):"), 200), (("Content-Digest", "sha-256=:AAAA:"), 400),
      (("Content-Digest", "sha-512=:AAAA:"), 200),
    ]
    for (index, (header, status)) in cases.enumerated() {
      for target in ["\(Self.firebase)?name=f\(index)", "\(Self.cloudUpload)?uploadType=media&name=c\(index)"] {
        let reply = try server.call("POST", target, "hello", headers: [Self.owner, header])
        #expect(reply.status == status, "\(header): \(reply.text)")
      }
      for name in ["f\(index)", "c\(index)"] {
        #expect(try server.call("GET", "\(Self.cloud)/\(name)").status == (status == 200 ? 200 : 404), "\(header)")
      }
    }
    for (member, value) in [("md5Hash", "AAAA"), ("crc32c", "AAAAAA==")] {
      let json = #"{"name": "m", "\#(member)": "\#(value)"}"#
      let body =
        "--b\r\nContent-Type: application/json\r\n\r\n\(json)\r\n--b\r\nContent-Type: a/b\r\n\r\nhello\r\n--b--"
      for target in ["\(Self.firebase)?uploadType=multipart", "\(Self.cloudUpload)?uploadType=multipart"] {
        let reply = try server.call(
          "POST", target, body, headers: [Self.owner, ("Content-Type", "multipart/related; boundary=b")])
        #expect(reply.status == 400, "\(reply.text)")
      }
      let url = try target(command(server, "start", "\(Self.firebase)?name=m", json, Self.owner))
      #expect(try command(server, "upload, finalize", url, "hello", offset: 0, Self.owner).status == 400)
      let cloud = try target(server.call("POST", "\(Self.cloudUpload)?uploadType=resumable", json))
      #expect(try server.call("PUT", cloud, "hello", headers: [("Content-Range", "bytes 0-4/5")]).status == 400)
    }
    #expect(try server.call("GET", "\(Self.cloud)/m").status == 404)
  }

  // MARK: - The caller of an upload

  @Test func lastPartIsAuthorizedAsItsSender() throws {
    let server = try Self.withRules()
    let (ann, bob) = (Self.user("ann"), Self.user("bob"))
    func start(_ who: (String, String)) throws -> String {
      try target(
        command(
          server, "start", "\(Self.firebase)?name=u/ann/x", "{}", who, [("X-Goog-Upload-Header-Content-Length", "2")]))
    }
    #expect(try command(server, "start", "\(Self.firebase)?name=u/ann/x", "{}", bob).status == 403)
    for other in [bob, nil] {
      let url = try start(ann)
      #expect(try command(server, "upload", url, "a", offset: 0, other).status == 200, "the address suffices")
      let last = try command(server, "upload, finalize", url, "b", offset: 1, other)
      #expect(last.status == 403 && last.header("x-goog-upload-status") == "final")
      #expect(try command(server, "upload, finalize", url, "b", offset: 1, ann).status == 400, "the upload has ended")
    }
    #expect(try server.call("GET", "\(Self.cloud)/u%2Fann%2Fx").status == 404)
    let url = try start(ann)
    #expect(try command(server, "upload, finalize", url, "ab", offset: 0, ann).status == 200)
    // Any caller with the address may finish an upload that an administrator started. The address has 128 random
    // bits.
    let admin = try start(Self.owner)
    let id = try #require(admin.firstMatch(of: /upload_id=([0-9a-f]+)/))
    #expect(id.1.count == 32)
    #expect(try command(server, "upload, finalize", admin, "ab", offset: 0, nil).status == 200)
    // An upload that a user started never gets an administrator's rights, whichever API finishes it.
    let users = try start(ann)
    let foreign = try #require(users.firstMatch(of: /upload_id=([0-9a-f]+)/)).1
    #expect(
      try server.call(
        "PUT", "\(Self.cloudUpload)?uploadType=resumable&upload_id=\(foreign)", "ab",
        headers: [bob, ("Content-Range", "bytes 0-1/2")]
      ).status == 403)
  }

  @Test func uploadsThatRulesDenyDoNotFillTheDisk() throws {
    let server = try Self.withRules()
    let (ann, bob) = (Self.user("ann"), Self.user("bob"))
    let kilobytes = String(repeating: "x", count: 2000)
    // If the length is known, rules are evaluated before the body arrives. Otherwise, they are evaluated as far as
    // the length does not matter.
    for length in ["1000", "99999999999"] {
      let start = try command(
        server, "start", "\(Self.firebase)?name=u/ann/x", "{}", ann, [("X-Goog-Upload-Header-Content-Length", length)])
      #expect(start.status == 403)
    }
    #expect(try command(server, "start", "\(Self.firebase)?name=u/ann/x", "{}", bob).status == 403)
    #expect(try server.call("POST", "\(Self.firebase)?name=u/ann/x", kilobytes, headers: [ann]).status == 403)
    let body =
      "--b\r\nContent-Type: application/json\r\n\r\n{}\r\n--b\r\nContent-Type: a/b\r\n\r\n\(kilobytes)\r\n--b--\r\n"
    let multipart = ("Content-Type", "multipart/related; boundary=b")
    #expect(
      try server.call("POST", "\(Self.firebase)?uploadType=multipart&name=u/ann/x", body, headers: [ann, multipart])
        .status == 403)
    // Bodies of the largest size that the rules allow.
    let edge = body.replacingOccurrences(of: kilobytes, with: String(repeating: "x", count: 999))
    // The line break at the end is one character in Swift.
    for text in [edge, String(edge.dropLast())] {
      #expect(
        try server.call("POST", "\(Self.firebase)?uploadType=multipart&name=u/ann/x", text, headers: [ann, multipart])
          .json("size") == "999")
    }
    // An upload without a stated length is limited to 16 MiB.
    let url = try target(command(server, "start", "\(Self.firebase)?name=big/x", "{}", ann))
    let megabytes = String(repeating: "x", count: 9 << 20)
    #expect(try command(server, "upload", url, megabytes, offset: 0, ann).status == 200)
    #expect(try command(server, "upload", url, megabytes, offset: 9 << 20, ann).status == 411)
  }
}
