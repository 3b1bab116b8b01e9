import Foundation
import TestSupport
import Testing

@testable import HearthClient

/// Links to choose a new password.
@Suite struct PasswordResetTests {
  @Test func aMailIsSent() async throws {
    let hearth = try TestHearth()
    let client = try hearth.client()
    try await client.auth.signUp(email: "ann@example.com", password: "correct horse")
    try await client.auth.sendPasswordReset(email: "ann@example.com")
    // In emulator mode the server keeps the codes in place of mailing them.
    let http = TestHTTPClient(port: UInt16(hearth.port))
    defer { http.close() }
    let data = Data(try http.send("GET", "/emulator/v1/projects/demo/oobCodes").body)
    let root = try #require(try JSONSerialization.jsonObject(with: data) as? [String: Any])
    let codes = try #require(root["oobCodes"] as? [[String: Any]])
    #expect(codes.map { $0["requestType"] as? String } == ["PASSWORD_RESET"])
    #expect(codes.first?["email"] as? String == "ann@example.com")
  }
}
