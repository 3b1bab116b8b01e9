import Foundation
import HearthClient
import HearthServer
import HearthTesting
import Testing

/// The transport of a client to a server in the same process.
@Suite struct TestServerTransportTests {
  static let documents = "/v1/projects/demo/databases/(default)/documents"

  static func server() throws -> TestServer {
    try TestServer(
      rules: .text(
        """
        rules_version = '2';
        service cloud.firestore {
          match /databases/{db}/documents/users/{uid} { allow read, write: if request.auth.uid == uid; }
        }
        """),
      fixtures: [.text(#"{"$collections": ["users"], "users": {"ann": {"name": "Ann"}}}"#)])
  }

  @Test func sendReturnsACompleteResponse() async throws {
    let server = try Self.server()
    for (caller, status) in [(TestServer.Caller.user("ann"), 200), (.user("ben"), 403), (.nobody, 403)] {
      let response = try await TestServerTransport(server, as: caller)
        .send(HearthRequest("GET", "\(Self.documents)/users/ann"))
      #expect(response.status == status)
      #expect(response.headers["content-type"]?.hasPrefix("application/json") == true)
      #expect(String(decoding: response.body, as: UTF8.self).contains(status == 200 ? "Ann" : "PERMISSION_DENIED"))
    }
    let change = HearthRequest(
      "PATCH", "\(Self.documents)/users/ann", headers: ["content-type": "application/json"],
      body: Data(#"{"fields": {"name": {"stringValue": "Anna"}}}"#.utf8))
    #expect(try await TestServerTransport(server, as: .user("ann")).send(change).status == 200)
  }

  @Test func openStreamsInPieces() async throws {
    let server = try Self.server()
    let transport = TestServerTransport(server, as: .user("ann"))
    let stream = try await transport.open(
      HearthRequest("GET", "\(Self.documents)/users/ann:listen", headers: ["accept": "text/event-stream"]))
    #expect(stream.status == 200)
    var pieces = stream.body.makeAsyncIterator()
    var text = ""
    while !text.contains("Ann"), let piece = try await pieces.next() { text += String(decoding: piece, as: UTF8.self) }
    let change = HearthRequest("DELETE", "\(Self.documents)/users/ann")
    #expect(try await TestServerTransport(server, as: .admin).send(change).status == 200)
    while !text.contains("Delete"), let piece = try await pieces.next() {
      text += String(decoding: piece, as: UTF8.self)
    }
    #expect(text.contains("Delete"), "\(text)")
  }

  @Test func clientsReachForks() async throws {
    let base = try Self.server()
    let (one, two) = (try base.fork(), try base.fork())
    let ann = one.client(as: .user("ann")).document("users/ann")
    #expect(try await ann.get().fields["name"] == "Ann")
    try await ann.set(["name": "Anna"])
    #expect(try await one.client(as: .admin).document("users/ann").get().fields["name"] == "Anna")
    #expect(try await two.client(as: .admin).document("users/ann").get().fields["name"] == "Ann")
    await #expect { try await one.client().document("users/ann").get() } throws: {
      ($0 as? HearthClientError)?.code == .permissionDenied
    }
    // After a sign-in, the client acts as the signed-in user.
    let guest = two.client()
    let user = try await guest.auth.signInAnonymously()
    try await guest.document("users/\(user.uid)").set(["name": "Guest"])
    #expect(try await guest.document("users/\(user.uid)").get().fields["name"] == "Guest")
  }

  @Test func listenersFollowForks() async throws {
    let db = try Self.server().fork()
    let client = db.client(as: .admin)
    var names: [Value] = []
    for try await users in client.collection("users").snapshots() {
      names = users.documents.compactMap { $0.fields["name"] }
      if names == ["Ann"] { try await client.document("users/ben").set(["name": "Ben"]) } else { break }
    }
    #expect(names == ["Ann", "Ben"])
  }
}
