import Foundation
import HearthServer
import Testing
import TestSupport

/// One request, tried by draft rules over the documents of an emulator.
@Suite struct RuleTrialTests {
  private static let path = "/hearth/v1/projects/p/databases/(default)/rules:try"
  /// The rules look up the room of a message, and then the owner of the room.
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /rooms/{room}/messages/{id} {
          function room() { return get(/databases/$(database)/documents/rooms/$(room)).data; }
          allow read: if get(/databases/$(database)/documents/users/$(room().owner)).data.name == request.auth.uid;
          allow create: if request.resource.data.text.size() < room().longest;
        }
      }
    }
    """

  private static let fileRules =
    "service firebase.storage { match /b/{bucket}/o { match /{name} { allow read: if false; } } }"

  private static func body(_ case_: String, rules: String = rules) -> String {
    let tests = #"{"cases": [{"it": "request", "expect": "allow", \#(case_)}]}"#
    let body: JSONNode = [
      "rules": ["files": [["name": "f.rules", "content": .string(rules)]]], "tests": .string(tests),
    ]
    return body.text
  }

  private static func server() throws -> TestServer {
    let server = try TestServer()
    for (path, fields) in [
      ("rooms/r1", #"{"owner": {"stringValue": "u1"}, "longest": {"integerValue": "5"}}"#),
      ("users/u1", #"{"name": {"stringValue": "ann"}}"#), ("rooms/r1/messages/m1", #"{"text": {"stringValue": "hi"}}"#),
    ] {
      #expect(try server.call("PATCH", "/\(path)", "{\"fields\": \(fields)}").status == 200)
    }
    return server
  }

  @Test func storedDocumentsDecide() throws {
    let server = try Self.server()
    for (case_, isAllowed) in [
      (#""as": "ann", "get": "rooms/r1/messages/m1""#, true), (#""as": "bob", "get": "rooms/r1/messages/m1""#, false),
      (#""as": null, "create": "rooms/r1/messages/m2", "data": {"text": "hey"}"#, true),
      (#""create": "rooms/r1/messages/m2", "data": {"text": "too long"}"#, false),
      (#""create": "rooms/r2/messages/m2", "data": {"text": "hey"}"#, false), (#""get": "elsewhere/x""#, false),
      // A document in the request replaces the stored one.
      (#""as": "bob", "get": "rooms/r1/messages/m1", "documents": {"users/u1": {"name": "bob"}}"#, true),
      (#""as": "ann", "get": "rooms/r1/messages/m1", "documents": {"rooms/r1": null}"#, false),
    ] {
      let found = try server.request("POST", Self.path, Self.body(case_))
      #expect(found.status == 200, "\(found.text)")
      #expect(found.json("request", "allowed", as: Bool.self) == isAllowed, "\(case_): \(found.text)")
    }
    let found = try server.request("POST", Self.path, Self.body(#""as": "ann", "get": "rooms/r1/messages/m1""#))
    #expect(found.json("lookups", as: [String].self) == ["rooms/r1", "users/u1"], "\(found.text)")
    #expect(found.json("parts", 0, "trees", 0, "value") == "true")
    #expect(found.json("rules") == Self.rules && found.json("request", "uid") == "ann")
    // Nothing was written or loaded.
    #expect(try server.call("GET", "/rooms/r1/messages/m2").status == 404)
    #expect(try server.request("GET", "/hearth/v1/requests").json("requests", as: [Any].self)?.isEmpty == true)
  }

  @Test func mistakesAreNamed() throws {
    let server = try Self.server()
    for (body, part) in [
      (Self.body(#""get": "rooms""#), "is not a document"), (Self.body(#""fetch": "a/b""#), "fetch"),
      (Self.body(#""get": "a/b""#, rules: "service cloud.firestore {"), "Error compiling rules"),
      (Self.body(#""get": "a/b""#, rules: Self.fileRules), "documents only"),
      ("{}", "The body must be"),
    ] {
      let reply = try server.request("POST", Self.path, body)
      #expect(reply.status == 400 && reply.message.contains(part), "\(reply.text)")
    }
    let two = #""get": "a/b"}, {"it": "b", "expect": "allow", "get": "a/c""#
    #expect(try server.request("POST", Self.path, Self.body(two)).message.contains("exactly one case"))
    #expect(try TestServer(.production).request("POST", Self.path, Self.body(#""get": "a/b""#)).status == 404)
  }

  /// A caller without the right to read the documents does not see their values in a trace.
  @Test func theCallerMustBeAllowedToReadTheDocuments() throws {
    let server = try Self.server()
    let closed = "service cloud.firestore { match /databases/{d}/documents { match /x/{y} { allow read: if false; } } }"
    let loaded = try server.request(
      "PUT", "/emulator/v1/projects/p:securityRules",
      (["rules": ["files": [["name": "f.rules", "content": .string(closed)]]]] as JSONNode).text)
    #expect(loaded.status == 200)
    let body = Self.body(#""as": "ann", "get": "rooms/r1/messages/m1""#)
    #expect(try server.request("POST", Self.path, body).status == 403)
    let owner = [("Authorization", "Bearer owner")]
    #expect(try server.request("POST", Self.path, body, headers: owner).status == 200)
  }
}
