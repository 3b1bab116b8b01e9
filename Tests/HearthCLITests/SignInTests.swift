import Foundation
import Testing
import TestSupport

/// The ways in which the command line signs in to a server: keys, and tokens from files and commands.
@Suite(.needs(.hearth)) struct SignInTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  /// Runs a verb with variables of the environment such as `HEARTH_KEY=FILE`.
  private func run(
    _ words: [String], with variables: [String] = []
  ) throws -> (exit: ProcessExit?, output: String) {
    let path = try #require(HearthBinary.path)
    let process = try ServerProcess(executable: "/usr/bin/env", arguments: variables + [path] + words)
    let exit = process.waitForExit(timeoutSeconds: 30)
    return (exit, process.output)
  }

  private struct Session {
    var server: HearthProcess
    var key: String
    var url: String { "http://127.0.0.1:\(server.port)" }
  }

  /// A server in production mode, and a key for another address of it.
  private func serve() throws -> Session {
    let (data, key) = (try directory.makeDataDirectory("data"), directory.file("backend.json"))
    let made = try run([
      "keys", "create", "backend", "--data", data, "--project", "shop", "--output", key, "--url",
      "https://db.example.com",
    ])
    #expect(made.exit == .code(0), "\(made.output)")
    let rules = try directory.write(
      "none.rules", "service cloud.firestore { match /{rest=**} { allow read: if false; } }")
    return Session(
      server: try HearthProcess(arguments: ["--data", data, "--project", "shop", "--rules", rules]), key: key)
  }

  @Test func aKeyMakesTheCommandLineAnAdministrator() throws {
    let session = try serve()
    defer { session.server.process.stop() }
    let set = ["set", "users/ann", #"{"n": 1}"#, "--server", session.url]
    // The key names the project.
    #expect(try run(set + ["--key", session.key]).exit == .code(0))
    #expect(try run(set, with: ["HEARTH_KEY=\(session.key)"]).exit == .code(0))
    let list = try run(["accounts", "list", "--server", session.url, "--key", session.key])
    #expect(list.exit == .code(0), "\(list.output)")
    let refused = try run(set + ["--project", "shop"])
    #expect(refused.exit == .code(1) && refused.output.contains("or --key with a file"), "\(refused.output)")
  }

  @Test func aKeyNamesItsServer() throws {
    let session = try serve()
    defer { session.server.process.stop() }
    let text = try directory.text("backend.json").replacing("https://db.example.com", with: session.url)
    let key = try directory.write("local.json", text)
    let get = ["get", "users/ann"]
    #expect(try run(get + ["--key", key]).output.contains("users/ann does not exist"))
    #expect(try run(get, with: ["HEARTH_KEY=\(key)"]).output.contains("users/ann does not exist"))
    // The variable of Google's libraries applies only to the server that its key belongs to.
    let variable = ["GOOGLE_APPLICATION_CREDENTIALS=\(key)"]
    let own = try run(get + ["--server", session.url, "--project", "shop"], with: variable)
    #expect(own.output.contains("users/ann does not exist"), "\(own.output)")
    let other = try run(
      get + ["--server", "http://localhost:\(session.server.port)", "--project", "shop"], with: variable)
    #expect(other.output.contains("401"), "\(other.output)")
    #expect(other.output.contains("GOOGLE_APPLICATION_CREDENTIALS was ignored: \(key) is a key of"), "\(other.output)")
    // The key also names the project.
    let named = try run(["accounts", "list", "--server", session.url], with: variable)
    #expect(named.exit == .code(0), "\(named.output)")
    let project = try run(get + ["--server", session.url], with: variable)
    #expect(project.output.contains("users/ann does not exist"), "\(project.output)")
    let unreadable = try run(
      get + ["--server", session.url, "--project", "shop"], with: ["GOOGLE_APPLICATION_CREDENTIALS=/nosuch.json"])
    #expect(
      unreadable.output.contains("GOOGLE_APPLICATION_CREDENTIALS was ignored")
        && unreadable.output.contains("/nosuch.json"),
      "\(unreadable.output)")
    // An emulator at the address of the key does not know it. The default token still works there.
    session.server.process.stop()
    let emulator = try HearthProcess.inMemory()
    defer { emulator.process.stop() }
    let foreign = try directory.write(
      "foreign.json", text.replacing(":\(session.server.port)/", with: ":\(emulator.port)/"))
    let found = try run(
      get + ["--server", "http://127.0.0.1:\(emulator.port)", "--project", "shop"],
      with: ["GOOGLE_APPLICATION_CREDENTIALS=\(foreign)"])
    #expect(found.output.contains("users/ann does not exist"), "\(found.output)")
  }

  @Test func aRevokedKeyIsExplained() throws {
    let session = try serve()
    defer { session.server.process.stop() }
    let words = ["--server", session.url, "--key", session.key]
    #expect(try run(["keys", "revoke", "backend"] + words).exit == .code(0))
    let refused = try run(["get", "users/ann"] + words)
    #expect(refused.exit == .code(1), "\(refused.output)")
    #expect(refused.output.contains("does not accept the key \(session.key)"), "\(refused.output)")
  }

  @Test func aKeyOfGoogleIsNotUsedForOtherServers() throws {
    let session = try serve()
    defer { session.server.process.stop() }
    let text = try directory.text("backend.json")
      .replacing("https://db.example.com/token", with: "https://oauth2.googleapis.com/token")
    let key = try directory.write("cloud.json", text)
    let refused = try run(["get", "users/ann", "--server", session.url, "--key", key])
    #expect(refused.exit == .code(64) && refused.output.contains("is a key of Google Cloud"), "\(refused.output)")
    let cloud = try run(["get", "users/ann", "--server", "https://firestore.googleapis.com", "--key", session.key])
    #expect(cloud.exit == .code(64) && cloud.output.contains("is a key of the server"), "\(cloud.output)")
  }

  /// Another server could use the proof at the key's own server.
  @Test func aKeyIsNotUsedForOtherServersThanItsOwn() throws {
    let session = try serve()
    defer { session.server.process.stop() }
    for url in ["https://evil.example", "http://db.example.com"] {
      let refused = try run(["get", "users/ann", "--server", url, "--key", session.key])
      #expect(
        refused.exit == .code(64) && refused.output.contains("its proof is not sent to \(url)"), "\(refused.output)")
    }
  }

  @Test(arguments: [
    ("", 65, "is not a credentials file"), ("{}", 65, "is not a credentials file"),
    (#"{"type": "external_account"}"#, 65, "the type external_account"),
    (#"{"type": "service_account", "client_email": "a@b", "private_key": "no"}"#, 65, "has no valid"),
  ])
  func anUnusableKeyIsExplained(text: String, code: Int, problem: String) throws {
    let key = try directory.write("key.json", text)
    let refused = try run(["get", "users/ann", "--key", key])
    #expect(refused.exit == .code(Int32(code)) && refused.output.contains(problem), "\(refused.output)")
  }

  @Test func tokensOfFilesAndCommandsAreFetchedAgainWhenTheyExpire() throws {
    let rules = try directory.write(
      "users.rules",
      "service cloud.firestore { match /databases/{d}/documents/users/{u} { allow get: if request.auth.uid == u; } }")
    let data = try directory.makeDataDirectory("data")
    let token = try run(["token", "ann", "--data", data, "--project", "demo"]).output
    let server = try HearthProcess(arguments: ["--data", data, "--project", "demo", "--rules", rules])
    defer { server.process.stop() }
    let get = ["get", "users/ann", "--server", "http://127.0.0.1:\(server.port)", "--project", "demo"]
    let file = try directory.write("token", token)
    #expect(try run(get + ["--token-file", file]).output.contains("users/ann does not exist"))
    // The first token is rejected, as an expired one is.
    let used = directory.file("used")
    let command = "if [ -e \(used) ]; then cat \(file); else touch \(used); echo expired; fi"
    #expect(try run(get + ["--token-command", command]).output.contains("users/ann does not exist"))
    let variable = "HEARTH_TOKEN=\(token.trimmingCharacters(in: .whitespacesAndNewlines))"
    #expect(try run(get, with: [variable]).output.contains("users/ann does not exist"))
    for (words, code, problem) in [
      (["--token-file", "/nowhere"], 65, "/nowhere cannot be read"), (["--token-command", "exit 3"], 1, "exit code 3"),
      (["--token-command", "echo a b"], 65, "does not contain a token"),
      (["--token", "a", "--token-file", file], 64, "exclude each other"),
      (["--token-command", "echo expired"], 1, "401"),
    ] {
      let refused = try run(get + words)
      #expect(refused.exit == .code(Int32(code)) && refused.output.contains(problem), "\(refused.output)")
    }
  }
}
