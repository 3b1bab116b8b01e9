import Foundation
import Testing
import TestSupport

/// `hearth keys` and `hearth token`, with a data directory, and while a server uses it.
@Suite(.needs(.hearth)) struct KeysTests {
  private let directory: TemporaryDirectory
  private var data: String { directory.file("data") }

  init() throws {
    directory = try TemporaryDirectory()
    try directory.makeDataDirectory("data")
  }

  private func run(_ arguments: String...) throws -> (exit: ProcessExit?, output: String) {
    try HearthBinary.run(arguments + ["--data", data, "--project", "demo"])
  }

  private func mode(_ path: String) throws -> Int? {
    try FileManager.default.attributesOfItem(atPath: path)[.posixPermissions] as? Int
  }

  private func status(_ port: UInt16, _ path: String, _ token: String) throws -> Int {
    let target = "/v1/projects/demo/databases/(default)/documents/\(path)"
    return try TestHTTPClient(port: port).send("GET", target, headers: [("Authorization", "Bearer \(token)")]).status
  }

  private func serve() throws -> HearthProcess {
    let rules = try directory.write(
      "firestore.rules",
      """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{d}/documents { match /users/{uid} { allow get: if request.auth.uid == uid; } }
      }
      """)
    return try HearthProcess(arguments: ["--data", data, "--project", "demo", "--rules", rules])
  }

  @Test func keysAreCreatedListedAndRevoked() throws {
    let file = directory.file("backend.json")
    let made = try run("keys", "create", "backend", "--url", "http://127.0.0.1:9", "--output", file)
    #expect(made.exit == .code(0), "\(made.output)")
    #expect(!made.output.contains("PRIVATE"))
    #expect(try mode(file) == 0o600)
    #expect(try mode(data + "/accounts/demo/data.mdb") == 0o600 && mode(data + "/accounts") == 0o700)
    let account = try #require(
      try JSONSerialization.jsonObject(with: Data(contentsOf: URL(filePath: file))) as? [String: String])
    #expect(account["type"] == "service_account" && account["token_uri"] == "http://127.0.0.1:9/token")
    let again = try run("keys", "create", "backend", "--url", "http://127.0.0.1:9", "--output", file)
    #expect(again.exit == .code(1) && again.output.contains("exists"))
    let unknown = try run("keys", "create", "other", "--output", "-")
    #expect(unknown.exit == .code(64) && unknown.output.contains("--url https://db.example.com"), "\(unknown.output)")
    let taken = try run(
      "keys", "create", "backend", "--url", "http://127.0.0.1:9", "--output", directory.file("other.json"))
    #expect(taken.exit == .code(1) && taken.output.contains("a key named backend already exists"), "\(taken.output)")
    #expect(try run("keys", "list").output.hasPrefix("backend  "))
    #expect(try run("keys", "revoke", "backend").exit == .code(0))
    #expect(try run("keys", "revoke", "backend").exit == .code(1))
    #expect(try run("keys", "list").output == "no keys\n")
    #expect(try run("keys", "rotate").exit == .code(0))
  }

  @Test func readersOfTheDirectoryAreAdminsOfItsServer() throws {
    let signed = try run("token", "ann", "--claims", #"{"role":"editor"}"#)
    #expect(signed.exit == .code(0), "\(signed.output)")
    let server = try serve()
    defer { server.process.stop() }
    // One token was issued before the server started, and one by the server.
    for token in [signed.output, try run("token", "ann").output] {
      let token = String(token.dropLast())
      #expect(try status(server.port, "users/ann", token) == 404)
      #expect(try status(server.port, "users/bob", token) == 403)
      #expect(try status(server.port, "users/ann", token + "x") == 401)
    }
    let file = directory.file("backend.json")
    let made = try run("keys", "create", "backend", "--output", file)
    #expect(made.exit == .code(0), "\(made.output)")
    #expect(try String(contentsOfFile: file, encoding: .utf8).contains("http://127.0.0.1:\(server.port)/token"))
    #expect(try run("keys", "list").output.hasPrefix("backend  "))
    #expect(try run("keys", "revoke", "backend").exit == .code(0))
    #expect(try run("keys", "rotate", "--immediately").exit == .code(0))
    #expect(try status(server.port, "users/ann", String(signed.output.dropLast())) == 401)
    #expect(try status(server.port, "users/ann", String(try run("token", "ann").output.dropLast())) == 404)
    // Other users are not administrators.
    for arguments in [["keys", "list"], ["keys", "create", "eve", "--output", "-"], ["token", "eve"]] {
      let refused = try HearthBinary.run(arguments + ["--server", "http://127.0.0.1:\(server.port)"])
      #expect(refused.exit == .code(1) && refused.output.contains("401"), "\(refused.output)")
      #expect(refused.output.contains("this server is in production mode: pass --token"), "\(refused.output)")
    }
    let other = try HearthBinary.run(["keys", "list", "--data", data, "--project", "other"])
    #expect(other.exit == .code(1) && other.output.contains("--project"), "\(other.output)")
    #expect(server.process.output.contains("PRIVATE") == false)
  }

  @Test func refusesSecretsThatOtherUsersCanRead() throws {
    #expect(try run("keys", "list").exit == .code(0))
    let file = data + "/accounts/demo/data.mdb"
    try FileManager.default.setAttributes([.posixPermissions: 0o640], ofItemAtPath: file)
    let refused = try run("keys", "list")
    #expect(refused.exit == .code(1) && refused.output.contains("chmod go= "), "\(refused.output)")
    #expect(throws: (any Error).self) { try serve() }
    try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: file)
    #expect(try run("keys", "list").exit == .code(0))
  }

  @Test func backupsContainTheKeys() throws {
    let made = try run(
      "keys", "create", "backend", "--url", "https://db.example.com", "--output", directory.file("b.json"))
    #expect(made.exit == .code(0), "\(made.output)")
    let copy = directory.file("copy")
    #expect(try HearthBinary.run(["backup", copy, "--data", data]).exit == .code(0))
    #expect(try HearthBinary.run(["keys", "list", "--data", copy]).output.hasPrefix("backend  "))
  }

  @Test func tokensForEmulatorsAreUnsigned() throws {
    let token = try HearthBinary.run(["token", "ann", "--claims", #"{"role":"editor"}"#])
    #expect(token.exit == .code(0) && token.output.hasPrefix("eyJhbGciOiJub25lIi") && token.output.hasSuffix(".\n"))
    for words in [["token", ""], ["token", "ann", "--claims", "[]"], ["token", String(repeating: "x", count: 129)]] {
      #expect(try HearthBinary.run(words).exit == .code(64))
    }
  }

  @Test func tokensOfATrustedIssuerAreAccepted() throws {
    let cloud = try directory.makeDataDirectory("cloud")
    let token = try HearthBinary.run(["token", "ann", "--data", cloud, "--project", "cloud"]).output.dropLast()
    let other = try HearthProcess(arguments: ["--data", cloud, "--project", "cloud"])
    let keys = try TestHTTPClient(port: other.port).send(
      "GET", "/service_accounts/v1/jwk/securetoken@system.gserviceaccount.com")
    other.process.stop()
    let file = try directory.write("keys.json", keys.text)
    let rules = try directory.write(
      "r.rules", "service cloud.firestore { match /{p=**} { allow get: if request.auth.uid == 'ann'; } }")
    let server = try HearthProcess(arguments: [
      "--in-memory", "--project", "demo", "--rules", rules,
      "--trust-issuer", "https://securetoken.google.com/cloud=\(file)",
    ])
    defer { server.process.stop() }
    #expect(try status(server.port, "a/b", String(token)) == 404)
    #expect(try status(server.port, "a/b", String(token) + "A") == 401)
    for words in [["--trust-issuer", "x"], ["--trust-issuer", "https://example.com=\(file)"]] {
      #expect(try HearthBinary.run(["serve", "--in-memory"] + words).exit == .code(64))
    }
    let missing = try HearthBinary.run([
      "serve", "--in-memory", "--project", "demo", "--trust-issuer", "https://securetoken.google.com/a=nowhere",
    ])
    #expect(missing.exit == .code(65), "\(missing.output)")
  }
}
