import Accounts
import DocumentStore
import Files
import Foundation
import HearthServer
import Testing
import TestSupport

/// Uploads to Firebase's API with `Content-Range`, whose parts carry no credential.
@Suite struct FirebaseSessionTests {
  static let bucket = "/v0/b/p.appspot.com/o"
  static let rules = """
    rules_version = '2';
    service firebase.storage {
      match /b/{bucket}/o {
        match /own/{uid}/{name} {
          allow read, write: if request.auth.uid == uid && (request.resource == null || request.resource.size < 8);
        }
      }
    }
    """
  static let ann = ("Authorization", "Bearer " + UnsignedToken.make(#"{"sub":"ann"}"#))

  private func server() throws -> TestServer {
    let server = try TestServer()
    let text = try #require(String(data: JSONEncoder().encode(Self.rules), encoding: .utf8))
    let loaded = try server.call(
      "PUT", "/internal/setRules", #"{"rules": {"files": [{"name": "storage.rules", "content": \#(text)}]}}"#)
    #expect(loaded.status == 200, "\(loaded.text)")
    return server
  }

  private func start(_ server: TestServer, _ name: String, _ headers: [(String, String)]) throws -> String {
    let reply = try server.call(
      "POST", "\(Self.bucket)?uploadType=resumable&name=\(name)", #"{"metadata": {"k": "v"}}"#,
      headers: headers + [("X-Upload-Content-Type", "text/plain")])
    #expect(reply.status == 200, "\(reply.text)")
    let location = try #require(reply.header("location"))
    #expect(location.hasPrefix("http://localhost/v0/b/p.appspot.com/o?"))
    return String(location.dropFirst("http://localhost".count))
  }

  @Test func partsAreAuthorizedAsTheCallerThatStarted() throws {
    let server = try server()
    let target = try start(server, "own%2Fann%2Fa", [Self.ann])
    #expect(try server.call("PUT", target, "012", headers: [("Content-Range", "bytes 0-2/5")]).status == 308)
    let asked = try server.call("PUT", target, "", headers: [("Content-Range", "bytes */5")])
    #expect(asked.status == 308 && asked.header("range") == "bytes=0-2")
    let made = try server.call("PUT", target, "34", headers: [("Content-Range", "bytes 3-4/5")])
    #expect(made.status == 200 && made.json("size") == "5" && made.json("metadata", "k") == "v", "\(made.text)")
    #expect(made.json("contentType") == "text/plain" && made.json("downloadTokens", as: String.self) != nil)
    #expect(try server.call("GET", "\(Self.bucket)/own%2Fann%2Fa?alt=media", headers: [Self.ann]).text == "01234")
    #expect(try server.call("PUT", target, "", headers: [("Content-Range", "bytes */5")]).json("size") == "5")
    let whole = try server.call("PUT", try start(server, "own%2Fann%2Fb", [Self.ann]), "whole")
    #expect(whole.status == 200 && whole.json("size") == "5")
  }

  @Test func incompletePartKeepsTheUpload() throws {
    let server = try server()
    let target = try start(server, "own%2Fann%2Fa", [Self.ann, ("X-Upload-Content-Length", "5")])
    // The body is shorter than announced, so the upload continues.
    #expect(try server.call("PUT", target, "012").status == 400)
    let made = try server.call("PUT", target, "34", headers: [("Content-Range", "bytes 3-4/5")])
    #expect(made.status == 200 && made.json("size") == "5", "\(made.text)")
  }

  @Test func callerThatStartedMustStillHaveAccess() throws {
    let directory = try TemporaryDirectory()
    try Self.rules.write(toFile: directory.path + "/storage.rules", atomically: true, encoding: .utf8)
    let time = SteppedTime()
    let server = try TestServer(.production) {
      $0.storageRules = directory.path + "/storage.rules"
      $0.clock = Clock { time.now }
    }
    let accounts = server.server.accounts
    let token = try accounts.mintIDToken(
      for: SignedInUser(uid: "ann", provider: "custom", authTimeSeconds: accounts.nowSeconds))
    let ann = ("Authorization", "Bearer \(token)")
    func put(_ target: String, _ range: String, _ body: String) throws -> Int {
      try server.call("PUT", target, body, headers: [("Content-Range", range)]).status
    }
    let targets = try (0..<3).map { try start(server, "own%2Fann%2F\($0)", [ann]) }
    #expect(try put(targets[0], "bytes 0-1/4", "01") == 308)
    try accounts.userStates.set(UserState(isDisabled: true), of: "ann")
    #expect(try put(targets[0], "bytes 2-3/4", "23") == 403)
    #expect(try put(targets[1], "bytes 0-1/4", "01") == 403)
    // The token may expire meanwhile, and other users may be disabled. Only a change of the token's own user ends the
    // upload.
    try accounts.userStates.set(UserState(), of: "ann")
    time.advance(seconds: 7200)
    try accounts.userStates.set(UserState(isDisabled: true), of: "bob")
    #expect(try put(targets[0], "bytes 2-3/4", "23") == 200)
    #expect(try server.call("GET", "\(Self.bucket)/own%2Fann%2F0?alt=media", headers: [ann]).status == 401)
    try accounts.userStates.set(UserState(isDisabled: true), of: "ann")
    #expect(try put(targets[2], "bytes 0-1/2", "01") == 403)
  }

  @Test func rulesAreEvaluatedAtTheEnd() throws {
    let server = try server()
    #expect(try server.call("PUT", try start(server, "own%2Fann%2Fa", [Self.ann]), "too long").status == 403)
    // The rules deny an upload at its start if the name, the caller or the length already decide.
    let early: [(name: String, headers: [(String, String)])] = [
      ("own%2Fbob%2Fa", [Self.ann]), ("own%2Fann%2Fa", []),
      ("own%2Fann%2Fa", [Self.ann, ("X-Upload-Content-Length", "100")]),
    ]
    for (name, headers) in early {
      let reply = try server.call("POST", "\(Self.bucket)?uploadType=resumable&name=\(name)", "", headers: headers)
      #expect(reply.status == 403, "\(name): \(reply.text)")
    }
    let cancelled = try start(server, "own%2Fann%2Fa", [Self.ann])
    #expect(try server.call("DELETE", cancelled).status == 499)
    #expect(try server.call("PUT", cancelled, "x").status == 404)
    #expect(try server.call("GET", "\(Self.bucket)/own%2Fann%2Fa", headers: [Self.ann]).status == 404)
  }

  /// Both protocols, for an authenticated user, an unauthenticated caller, and the holder of a signed URL.
  @Test func uploadQuotaAppliesPerOwner() throws {
    let server = try TestServer()
    let open = "rules_version = '2'; service firebase.storage { match /b/{b}/o { match /{x=**} { allow write; } } }"
    let rules: JSONNode = ["rules": ["files": [["name": "storage.rules", "content": .string(open)]]]]
    #expect(try server.call("PUT", "/internal/setRules", rules.text).status == 200)
    let store = try server.server.files.store()
    func fill(_ owner: UploadOwner) throws {
      do throws(FilesError) {
        while true {
          var record = UploadRecord(
            name: ObjectName(bucket: "p.appspot.com", name: "n"), attributes: ObjectAttributes())
          record.owner = owner
          try store.beginUpload(record)
        }
      } catch { #expect(error == .tooManyUploadsOfOwner(1000)) }
    }
    func statuses(_ headers: [(String, String)]) throws -> [Int] {
      let replies = [
        try server.call("POST", "\(Self.bucket)?uploadType=resumable&name=a", "{}", headers: headers),
        try server.call(
          "POST", "\(Self.bucket)?name=a", "{}", headers: headers + [("X-Goog-Upload-Command", "start")]),
      ]
      for reply in replies where reply.status == 429 {
        #expect(reply.message == "You have 1000 uploads in progress. Finish or cancel some, or try again later.")
      }
      return replies.map(\.status)
    }
    let far = ("X-Forwarded-For", "2001:db8:1:2:3::4")
    try fill(.user("ann"))
    #expect(try statuses([Self.ann]) == [429, 429])
    // Uploads of unauthenticated callers at an address do not use the quota of its users.
    #expect(try statuses([]) == [200, 200])
    #expect(try statuses([far]) == [200, 200])
    try fill(.address("2001:db8:1:2::/64"))
    #expect(try statuses([far]) == [429, 429])
    #expect(try statuses([("X-Forwarded-For", "2001:db8:1:2:ffff::4")]) == [429, 429])
    #expect(try statuses([("X-Forwarded-For", "2001:db8:1:3::4")]) == [200, 200])
    #expect(try statuses([("X-Forwarded-For", "203.0.113.7")]) == [200, 200])
    let bob = ("Authorization", "Bearer " + UnsignedToken.make(#"{"sub":"bob"}"#))
    #expect(try statuses([bob, far]) == [200, 200])
    // A guest can sign up as another guest at any time, so guests share the quota of their address.
    let claims = #"{"sub":"guest","firebase":{"sign_in_provider":"anonymous"}}"#
    let guest = ("Authorization", "Bearer " + UnsignedToken.make(claims))
    #expect(try statuses([guest, far]) == [429, 429])
    #expect(try statuses([guest]) == [200, 200])
    #expect(try statuses([("Authorization", "Bearer owner"), far]) == [200, 200])
    let cloud = "/upload/storage/v1/b/p.appspot.com/o?uploadType=resumable&name=a"
    #expect(try server.call("POST", cloud, "{}", headers: [far]).status == 200)
  }
}
