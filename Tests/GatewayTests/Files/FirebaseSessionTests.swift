import Foundation
import HearthServer
import Testing

/// Uploads to Firebase's dialect by `Content-Range`, whose parts bring no credential.
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

  @Test func whoStartedIsWhoUploads() throws {
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

  @Test func rulesAreAskedAtTheEnd() throws {
    let server = try server()
    #expect(try server.call("PUT", try start(server, "own%2Fann%2Fa", [Self.ann]), "too long").status == 403)
    // What is known at the start decides at once, where it can: the place, who asks, a length.
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
}
