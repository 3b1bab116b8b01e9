import HearthServer
import Testing

/// Accounts of test servers, created without requests.
@Suite struct TestServerAccountTests {
  @Test func signedUpUsersReadTheirOwnDocuments() async throws {
    let server = try TestServerTests.base()
    let ann = try server.signUp(email: "ann@example.com", password: "secret-1")
    let guest = try server.signUp()
    #expect(ann.uid != guest.uid)
    let path = "\(TestServerTests.documents)/users/\(ann.uid)"
    for (user, status) in [(ann, 404), (guest, 403)] {
      let response = try await server.respond(
        to: .init("GET", path, headers: [("Authorization", "Bearer \(user.idToken)")]))
      #expect(response.status == status)
      _ = try await response.bytes()
    }
    // The session is the same as that of a client.
    let refresh = try await server.respond(
      to: .init(
        "POST", "/v1/token?key=any",
        body: #"{"grantType": "refresh_token", "refreshToken": "\#(ann.refreshToken)"}"#))
    #expect(try await refresh.text().contains(#""user_id":"\#(ann.uid)""#))
  }

  @Test func rejectedAccountsReportTheReasonThatClientsSee() throws {
    let server = try TestServer()
    _ = try server.signUp(email: "ann@example.com", password: "secret-1")
    for (email, password, reason) in [
      ("ann@example.com", "secret-1", "EMAIL_EXISTS"), ("ben@example.com", "short", "WEAK_PASSWORD"),
      ("ben", "secret-1", "INVALID_EMAIL"), ("ben@example.com", nil, "MISSING_PASSWORD"),
    ] {
      let error = #expect(throws: HearthError.self) { try server.signUp(email: email, password: password) }
      #expect(error?.description.hasPrefix(reason) == true, "\(error?.description ?? "no error")")
    }
    // A fork has the accounts of its original, and its own ones.
    let fork = try server.fork()
    _ = try fork.signUp(email: "ben@example.com", password: "secret-1")
    #expect(throws: HearthError.self) { try fork.signUp(email: "ann@example.com", password: "secret-1") }
    _ = try server.signUp(email: "ben@example.com", password: "secret-1")
  }
}
