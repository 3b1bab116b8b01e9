import Foundation
import Testing
import TestSupport

/// Accounts move from a running project, and back to Firebase.
@Suite(.needs(.hearth)) struct AccountsMoveTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func succeed(_ words: [String]) throws -> String {
    let (exit, output) = try HearthBinary.run(words)
    #expect(exit == .code(0), "hearth \(words.joined(separator: " ")): \(output)")
    return output
  }

  /// Four accounts: with a hash of Firebase, with one of bcrypt, with a link to Apple, and with one to Google.
  private func users() throws -> String {
    try directory.write(
      "users.json",
      """
      {"users": [
        {"localId": "ann", "email": "ann@example.com", "emailVerified": true, "salt": "s6QXHwL9P94=", "passwordHash":
          "Yw6QFLJ8i7TfvFUT8hAMUj9PnzCrUAMXe0P97e75c/g3CmVlncLipwR3TuJ2WRCTMnwkIg/VO3KaenrCd942Hw==",
          "createdAt": "1600000000000", "lastLoginAt": "1600000001000", "customAttributes": "{\\"admin\\": true}"},
        {"localId": "dan", "email": "dan@example.com", "providerUserInfo": [
          {"providerId": "apple.com", "rawId": "a1", "email": "dan@example.com"},
          {"providerId": "google.com", "rawId": "g1", "email": "dan@example.com"}]}
      ]}
      """)
  }

  private static let parameters = [
    "--hash-algo", "SCRYPT", "--salt-separator", "Bw==", "--rounds", "8", "--mem-cost", "14", "--hash-key",
    "e/LfMbPgBD+clXWvbI+MXPMXfskJGmCE7ofmp+c4aKUO7pl/0Vkd4D5S1PtAdnlk5i9b+SjIRlFhTpZW+3RPzg==",
  ]

  private func fill(_ data: String) throws {
    let options = ["--data", data, "--project", "shop"]
    _ = try succeed(["accounts", "import", users()] + Self.parameters + options)
    _ = try succeed(
      ["accounts", "create", "--uid", "bob", "--email", "bob@example.com", "--password", "secret1"] + options)
  }

  @Test func anExportForFirebaseContainsWhatFirebaseAccepts() throws {
    let (data, file) = (directory.file("data"), directory.file("firebase.json"))
    try fill(data)
    let report = try succeed(
      ["accounts", "export", "--format", "firebase", "--output", file, "--data", data, "--project", "shop"])
    #expect(report.contains("1 account is without their password"), "\(report)")
    #expect(report.contains("1 link to providers other than google.com"), "\(report)")
    #expect(report.contains("--hash-algo SCRYPT --hash-key KEY --salt-separator Bw== --rounds 8 --mem-cost 14"))
    #expect(!report.contains("e/LfMbPg"), "the signer key is a secret")
    let object = try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: file))) as? [String: Any]
    let users = try #require(object?["users"] as? [[String: Any]])
    #expect(users.map { $0["localId"] as? String } == ["ann", "bob", "dan"])
    let allowed: Set = [
      "localId", "email", "emailVerified", "passwordHash", "salt", "displayName", "photoUrl", "createdAt",
      "lastSignedInAt", "providerUserInfo", "phoneNumber", "disabled", "customAttributes",
    ]
    for user in users { #expect(Set(user.keys).isSubset(of: allowed)) }
    #expect(users[0]["salt"] as? String == "s6QXHwL9P94=" && users[1]["passwordHash"] == nil)
    #expect((users[0]["passwordHash"] as? String)?.hasPrefix("Yw6QFLJ8") == true)
    #expect(users[0]["lastSignedInAt"] as? String == "1600000001000")
    let links = try #require(users[2]["providerUserInfo"] as? [[String: Any]])
    #expect(links.map { $0["providerId"] as? String } == ["google.com"])
    // Firebase's form comes back with the same parameters.
    let again = ["accounts", "import", file, "--data", directory.file("again"), "--project", "shop"] + Self.parameters
    #expect(try succeed(again).contains("imported 3 of 3 accounts"))
  }

  @Test func accountsAreCopiedFromARunningProject() throws {
    let (data, copy, key) = (directory.file("data"), directory.file("copy"), directory.file("backend.json"))
    try fill(data)
    let source = try HearthProcess(arguments: ["--data", data, "--project", "shop"])
    defer { source.process.stop() }
    _ = try succeed(["keys", "create", "backend", "--data", data, "--project", "shop", "--output", key])
    let url = "http://127.0.0.1:\(source.port)"
    let copying = ["accounts", "import", "--from", url, "--data", copy, "--project", "shop"]
    #expect(try succeed(copying + ["--from-key", key]).contains("imported 3 of 3 accounts"))
    // A second run replaces the same accounts.
    #expect(try succeed(copying + ["--from-key", key]).contains("imported 3 of 3 accounts"))
    let list = try succeed(["accounts", "list", "--json", "--data", copy, "--project", "shop"])
    #expect(list.contains("apple.com") && list.contains("google.com") && list.contains("passwordHash"), "\(list)")
    let target = try HearthProcess(arguments: ["--data", copy, "--project", "shop"])
    defer { target.process.stop() }
    for (email, password) in [("ann@example.com", "correct horse"), ("bob@example.com", "secret1")] {
      let body = #"{"email": "\#(email)", "password": "\#(password)", "returnSecureToken": true}"#
      let response = try TestHTTPClient(port: target.port).send(
        "POST", "/v1/accounts:signInWithPassword?key=any", body: Array(body.utf8))
      #expect(response.status == 200, "\(response.text)")
    }
  }

  @Test(arguments: [
    (["accounts", "import"], "an operand is missing: FILE, or the option --from URL"),
    (["accounts", "import", "a.json", "--from", "http://127.0.0.1:9"], "give either FILE or --from"),
    (["accounts", "export", "--format", "csv"], "must be hearth or firebase"),
  ])
  func wrongCommandLinesAreExplained(words: [String], problem: String) throws {
    let (exit, output) = try HearthBinary.run(words)
    #expect(exit == .code(64) && output.contains(problem), "\(output)")
  }
}
