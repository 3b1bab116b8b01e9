import Foundation
import Testing
import TestSupport

@testable import HearthClient

/// Requests for links with which users choose a new password.
@Suite struct PasswordResetTests {
  @Test func requestsAResetCode() async throws {
    let hearth = try TestHearth()
    let client = try hearth.client()
    try await client.auth.signUp(email: "ann@example.com", password: "correct horse")
    try await client.auth.sendPasswordReset(email: "ann@example.com")
    // In emulator mode the server does not mail codes, but lists them.
    let http = TestHTTPClient(port: UInt16(hearth.port))
    defer { http.close() }
    let data = Data(try http.send("GET", "/emulator/v1/projects/demo/oobCodes").body)
    let root = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    let codes = try #require(root["oobCodes"] as? [[String: Any]])
    #expect(codes.map { $0["requestType"] as? String } == ["PASSWORD_RESET"])
    #expect(codes.first?["email"] as? String == "ann@example.com")
  }
}
