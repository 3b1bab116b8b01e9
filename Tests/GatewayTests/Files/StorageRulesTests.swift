import Foundation
import HearthServer
import Testing
import TestSupport

/// Security rules for files, over a socket.
@Suite struct StorageRulesTests {
  static let folder =
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent().deletingLastPathComponent().path + "/rules"
  static let bucket = "/v0/b/p.appspot.com/o"
  static let owner = ("Authorization", "Bearer owner")

  static func user(_ uid: String, _ claims: String = "") -> (String, String) {
    ("Authorization", "Firebase " + UnsignedToken.make(#"{"sub":"\#(uid)"\#(claims)}"#))
  }

  static func server(_ file: String) throws -> TestServer {
    try TestServer { $0.storageRules = "\(folder)/\(file)" }
  }

  static func put(
    _ server: TestServer, _ name: String, _ content: String, _ type: String, _ who: (String, String)?
  ) throws -> Int {
    let encoded = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
    return try server.call(
      "POST", "\(bucket)?name=\(encoded)", content, headers: [("Content-Type", type)] + (who.map { [$0] } ?? [])
    ).status
  }

  static func get(_ server: TestServer, _ name: String, _ who: (String, String)?) throws -> Int {
    let encoded = name.addingPercentEncoding(withAllowedCharacters: .alphanumerics) ?? name
    return try server.call("GET", "\(bucket)/\(encoded)?alt=media", headers: who.map { [$0] } ?? []).status
  }

  @Test func sharedDocumentIsReadableWhileTheShareIsValid() throws {
    let server = try Self.server("fit-care.storage.rules")
    let (ann, doctor) = (Self.user("ann"), Self.user("doc"))
    let name = "patients/ann/documents/report.pdf"
    #expect(try Self.put(server, name, "%PDF", "application/pdf", ann) == 200)
    #expect(try Self.put(server, name, "%PDF", "text/html", ann) == 403)
    #expect(try Self.put(server, name, "%PDF", "application/pdf", doctor) == 403)
    #expect(try Self.put(server, name, "%PDF", "application/pdf", nil) == 403)
    #expect(try Self.put(server, "patients/ann/other", "%PDF", "application/pdf", ann) == 403)
    #expect(try Self.get(server, name, ann) == 200)
    #expect(try Self.get(server, name, doctor) == 403)
    func share(_ scopes: String, _ expires: String) throws {
      let body = """
        {"fields": {"reader": {"stringValue": "doc"}, "patient": {"stringValue": "ann"},
        "scopes": {"arrayValue": {"values": [{"stringValue": "\(scopes)"}]}}, "expires": {"timestampValue": "\(expires)"}}}
        """
      #expect(try server.call("PATCH", "/shares/doc_ann", body, headers: [Self.owner]).status == 200)
    }
    try share("documents", "2999-01-01T00:00:00Z")
    #expect(try Self.get(server, name, doctor) == 200)
    #expect(try Self.get(server, "patients/ann/documents/none", doctor) == 404)
    try share("meals", "2999-01-01T00:00:00Z")
    #expect(try Self.get(server, name, doctor) == 403)
    try share("documents", "2001-01-01T00:00:00Z")
    #expect(try Self.get(server, name, doctor) == 403)
    #expect(try Self.get(server, "patients/ann/documents/none", doctor) == 403, "existence is not revealed")
    #expect(try server.call("DELETE", "\(Self.bucket)?name=\(name)", headers: [doctor]).status == 403)
    #expect(try server.call("DELETE", "\(Self.bucket)?name=\(name)", headers: [ann]).status == 204)
  }

  @Test func onlySubscribersReadMediaOfPaidJourneys() throws {
    let server = try Self.server("journeys.storage.rules")
    for (id, paid) in [("calm", "false"), ("deep", "true")] {
      let body = #"{"fields": {"paid": {"booleanValue": \#(paid)}}}"#
      #expect(try server.call("PATCH", "/journeys/\(id)", body, headers: [Self.owner]).status == 200)
    }
    let (ann, subscriber, admin) = (
      Self.user("ann"), Self.user("sue", #","subscriber":true"#), Self.user("adm", #","admin":true"#)
    )
    for id in ["calm", "deep"] {
      #expect(try Self.put(server, "journeys/\(id)/cover.png", "png", "image/png", admin) == 200)
      #expect(try Self.put(server, "journeys/\(id)/cover.png", "png", "image/png", ann) == 403)
      #expect(try Self.put(server, "journeys/\(id)/page.html", "<p>", "text/html", admin) == 403)
      #expect(try Self.get(server, "journeys/\(id)/cover.png", subscriber) == 200)
      #expect(try Self.get(server, "journeys/\(id)/cover.png", admin) == 200)
      #expect(try Self.get(server, "journeys/\(id)/cover.png", nil) == 403)
    }
    #expect(try Self.get(server, "journeys/calm/cover.png", ann) == 200)
    #expect(try Self.get(server, "journeys/deep/cover.png", ann) == 403)
    #expect(try Self.get(server, "journeys/none/cover.png", ann) == 403)
    #expect(try Self.put(server, "profiles/ann/voice/1", "x", "audio/ogg", ann) == 200)
    #expect(try Self.get(server, "profiles/ann/voice/1", subscriber) == 403)
    // Listings are authorized by their folder.
    func list(_ prefix: String, _ who: (String, String)) throws -> Int {
      try server.call("GET", "\(Self.bucket)?prefix=\(prefix)&delimiter=/", headers: [who]).status
    }
    #expect(try list("profiles/ann/voice/", ann) == 200)
    #expect(try list("profiles/ann/", ann) == 200)
    #expect(try list("profiles/", ann) == 403)
    #expect(try list("", ann) == 403)
  }

  @Test func rulesThatReadChecksumsAlsoDenyEarly() throws {
    let server = try TestServer()
    let rules = """
      rules_version = '2'; service firebase.storage { match /b/{bucket}/o {
        match /sum/{name} { allow write: if request.resource.size >= 0 && request.resource.md5Hash == 'x'; }
        match /own/{uid} { allow write: if request.auth.uid == uid; }
        match /open/{name} { allow write; }
      } }
      """
    func set(_ text: String) throws {
      let body: JSONNode = ["rules": ["files": [["name": "storage.rules", "content": .string(text)]]]]
      #expect(try server.call("PUT", "/internal/setRules", body.text).status == 200)
    }
    func start(_ name: String, _ length: String?) throws -> Int {
      let headers = length.map { [("X-Goog-Upload-Header-Content-Length", $0)] } ?? []
      return try server.call(
        "POST", "\(Self.bucket)?name=\(name)", "{}", headers: headers + [("X-Goog-Upload-Command", "start")]
      ).status
    }
    let large = "1000000000000"
    try set(rules)
    for name in ["none", "own%2Fann"] {
      #expect(try start(name, large) == 403 && start(name, "5") == 403 && start(name, nil) == 403, "\(name)")
    }
    // If the rules need a checksum, the server accepts the upload up to a size limit.
    #expect(try start("sum%2Fx", large) == 403)
    #expect(try start("sum%2Fx", "5") == 200 && start("sum%2Fx", nil) == 200)
    #expect(try start("open%2Fx", large) == 200)
    let resumable = try server.call(
      "POST", "\(Self.bucket)?uploadType=resumable&name=sum%2Fx", "{}", headers: [("X-Upload-Content-Length", large)])
    #expect(resumable.status == 403)
    // The announced length limits each part, whatever length the part states.
    let small = try server.call(
      "POST", "\(Self.bucket)?uploadType=resumable&name=sum%2Fx", "{}", headers: [("X-Upload-Content-Length", "2")])
    let location = try #require(small.header("location"))
    let part = try server.request(
      "PUT", String(location.dropFirst("http://localhost".count)), "0123", headers: [("Content-Range", "bytes 0-3/9")])
    #expect(part.status == 400, "\(part.text)")
    // A condition need not fail on a missing checksum.
    try set(rules.replacing("request.resource.md5Hash ==", with: "request.resource.get('md5Hash', '') =="))
    #expect(try start("sum%2Fx", "5") == 200 && start("sum%2Fx", large) == 403 && start("none", "5") == 403)
  }

  static let conditions: [(String, Int)] = [
    ("request.resource.size == 5", 200), ("request.resource.size < 5", 403),
    ("request.resource.name == 'a/b.txt'", 200), ("request.resource.bucket == bucket", 200),
    ("request.resource.contentType == 'text/plain'", 200), ("resource == null", 200),
    ("request.resource.md5Hash == 'XUFAKrxLKna5cZ2REBfFkg=='", 200), ("request.resource.md5Hash == 'x'", 403),
    ("request.resource.timeCreated <= request.time + duration.value(1, 'm')", 200),
    ("request.resource.metadata.size() == 0", 200), ("request.method == 'create'", 200),
    ("request.path == /b/$(bucket)/o/a/$('b.txt')", 200),
    ("request.auth == null", 200), ("firestore.exists(/databases/(default)/documents/c/there)", 200),
    ("firestore.exists(/databases/(default)/documents/c/none)", 403),
    ("firestore.get(/databases/(default)/documents/c/there).data.n == 1", 200),
    ("firestore.get(/databases/(default)/documents/c/none).data.n == 1", 403),
    (
      "firestore.exists(/databases/(default)/documents/c/1) || firestore.exists(/databases/(default)/documents/c/2) "
        + "|| firestore.exists(/databases/(default)/documents/c/there)", 403
    ),
  ]

  @Test func conditionsSeeTheUpload() throws {
    let server = try TestServer()
    #expect(
      try server.call(
        "PATCH", "/c/there", #"{"fields": {"n": {"integerValue": "1"}}}"#, headers: [Self.owner]
      ).status == 200)
    for (condition, status) in Self.conditions {
      let text =
        "rules_version = '2'; service firebase.storage { match /b/{bucket}/o/{file=**} { allow write: if \(condition); } }"
      let body: JSONNode = ["rules": ["files": [["name": "storage.rules", "content": .string(text)]]]]
      let set = try server.call("PUT", "/internal/setRules", body.text)
      #expect(set.status == 200 && set.json("message") == "Rules updated successfully", "\(set.text)")
      _ = try server.call("DELETE", "\(Self.bucket)?name=a/b.txt", headers: [Self.owner])
      #expect(try Self.put(server, "a/b.txt", "hello", "text/plain", nil) == status, "\(condition)")
      #expect(
        try server.call("GET", "\(Self.bucket)/a%2Fb.txt", headers: [Self.owner]).status == (status == 200 ? 200 : 404))
    }
    #expect(
      try server.call("PUT", "/internal/setRules", #"{"rules": {"files": [{"content": "nonsense"}]}}"#).status == 400)
    #expect(try server.call("PUT", "/internal/setRules", "{}").status == 400)
  }
}
