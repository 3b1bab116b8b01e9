import Foundation
import Testing
import TestSupport

/// The log and the address for operators of the program.
@Suite(.needs(.hearth)) struct LogServingTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func lines(_ output: String) throws -> [[String: Any]] {
    try output.split(separator: "\n").filter { $0.hasPrefix("{") }.map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any], "\($0)")
    }
  }

  @Test func logLinesAreJSONObjects() throws {
    let rules = try directory.write("a.rules", "service cloud.firestore { match /x/{y} { allow read; } }")
    let server = try HearthProcess(arguments: [
      "--in-memory", "--project", "demo", "--rules", rules, "--log", "json", "--log-requests", "1",
      "--metrics-address", "127.0.0.1:0",
    ])
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    defer { client.close() }
    let secret = "s3cr3t"
    _ = try client.send(
      "POST", "/v1/accounts:signInWithPassword?key=\(secret)", headers: [("Authorization", "Bearer \(secret)")],
      body: Array(#"{"email": "a@b.test", "password": "\#(secret)"}"#.utf8))
    #expect(try client.send("GET", "/a%0Ab%1B?\(secret)").status == 404)
    #expect(try client.send("GET", "/a#\(secret)").status == 404)
    #expect(try client.send("GET", "/metrics").status == 403)
    server.process.send(signal: SIGHUP)
    _ = try server.process.waitForLine(prefix: "{\"time\":", timeoutSeconds: 30)
    server.process.send(signal: SIGTERM)
    #expect(server.process.waitForExit(timeoutSeconds: 20) == .code(0))
    #expect(!server.process.output.contains(secret), "\(server.process.output)")
    let events = try lines(server.process.output)
    for event in events { #expect(event["time"] is String && event["level"] is String && event["event"] is String) }
    let requests = events.filter { $0["event"] as? String == "request" }
    #expect(
      requests.map { $0["path"] as? String } == ["/v1/accounts:signInWithPassword", "/a%0Ab%1B", "/a", "/metrics"])
    #expect(requests.map { $0["dialect"] as? String } == ["sign_in", "none", "none", "operations"])
    #expect(requests.map { $0["status"] as? Int }.suffix(2) == [404, 403])
    let reload = try #require(events.first { $0["event"] as? String == "rules.reloaded" })
    #expect(reload["file"] as? String == rules)
  }

  /// Events of accounts are logged with fields for programs and a sentence for people. Neither contains a secret.
  @Test(arguments: ["json", "plain"]) func eventsOfAccountsAreLogged(format: String) throws {
    let server = try HearthProcess(arguments: ["--in-memory", "--project", "demo", "--log", format])
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    defer { client.close() }
    func call(_ name: String, _ body: String) throws -> [String: Any] {
      let reply = try client.send("POST", "/v1/accounts:\(name)?key=any", body: Array(body.utf8)).text
      return try #require(try JSONSerialization.jsonObject(with: Data(reply.utf8)) as? [String: Any])
    }
    let secret = "correct horse"
    let made = try call("signUp", #"{"email": "a@b.test", "password": "\#(secret)"}"#)
    func text(_ name: String) throws -> String { try #require(made[name] as? String) }
    let uid = try text("localId")
    _ = try call("signInWithPassword", #"{"email": "a@b.test", "password": "\#(secret)"}"#)
    _ = try call("signInWithPassword", #"{"email": "a@b.test", "password": "\#(secret)r"}"#)
    _ = try call("signInWithPassword", #"{"email": "stranger@b.test", "password": "\#(secret)"}"#)
    _ = try call("sendOobCode", #"{"email": "a@b.test", "requestType": "PASSWORD_RESET"}"#)
    server.process.send(signal: SIGTERM)
    #expect(server.process.waitForExit(timeoutSeconds: 20) == .code(0))
    let output = server.process.output
    for text in [secret, "stranger", try text("idToken"), try text("refreshToken")] {
      #expect(!output.contains(text), "\(output)")
    }
    let plain =
      [
        "created with a password by user from this machine", "signed in with a password by user from this machine",
        "failed to sign in with a password by user from this machine: wrong password",
      ].map { "accounts: \"\(uid)\" \($0)" } + [
        "accounts: somebody failed to sign in with a password by user from this machine: unknown email address",
        #"accounts: "a@b.test" was sent a code (PASSWORD_RESET) by user from this machine"#,
      ]
    guard format == "json" else {
      let logged = output.split(separator: "\n").filter { $0.contains("accounts: ") }.map(String.init)
      return #expect(logged == plain.map { "hearth: \($0)" }, "\(output)")
    }
    let events = try lines(output).filter { ($0["event"] as? String)?.hasPrefix("accounts.") ?? false }
    #expect(events.map { $0["message"] as? String } == plain)
    let names = ["uid", "email", "method", "purpose", "by", "client", "reason"]
    let logged = events.map { event in
      let details = names.compactMap { name in (event[name] as? String).map { "\(name)=\($0)" } }
      return ([event["event"] as? String ?? ""] + details).joined(separator: " ")
    }
    let end = "by=user client=this machine"
    #expect(
      logged == [
        "accounts.created uid=\(uid) method=password \(end)", "accounts.signed-in uid=\(uid) method=password \(end)",
        "accounts.sign-in-failed uid=\(uid) method=password \(end) reason=wrong password",
        "accounts.sign-in-failed method=password \(end) reason=unknown email address",
        "accounts.code-sent email=a@b.test purpose=PASSWORD_RESET \(end)",
      ])
  }

  /// Starts a server, and a client of its address for operators, which the log contains.
  private func startForOperators() throws -> (server: HearthProcess, client: TestHTTPClient) {
    let server = try HearthProcess(arguments: [
      "--in-memory", "--project", "demo", "--log", "text", "--metrics-address", "127.0.0.1:0",
    ])
    let line = try server.process.waitForLine("the address of operators", timeoutSeconds: 30) {
      $0.contains("operations.listening")
    }
    let port = try #require(line.firstMatch(of: /url=http:\/\/127.0.0.1:(\d+)/).flatMap { UInt16($0.1) }, "\(line)")
    return (server, TestHTTPClient(port: port))
  }

  @Test func operatorsHaveAnAddress() throws {
    let (server, client) = try startForOperators()
    defer { server.process.stop() }
    defer { client.close() }
    #expect(try client.send("GET", "/metrics").text.contains("hearth_build_info{version="))
    #expect(try client.send("GET", "/healthz").text == "ok\n")
    #expect(try client.send("GET", "/readyz").text == "{\"status\":\"ready\"}\n")
    // The address serves nothing else.
    #expect(try client.send("GET", "/").status == 404)
    #expect(try client.send("GET", "/v1/projects/demo/databases/(default)/documents/a/b").status == 404)
  }

  @Test func operatorsGetAResponseUnderLoad() throws {
    let (server, client) = try startForOperators()
    defer { server.process.stop() }
    defer { client.close() }
    let port = server.port
    let crowd = DispatchGroup()
    for _ in 0..<40 {
      crowd.enter()
      Thread {
        let stranger = TestHTTPClient(port: port)
        for _ in 0..<200 { _ = try? stranger.send("GET", "/readyz") }
        stranger.close()
        crowd.leave()
      }.start()
    }
    var statuses: Set<Int> = []
    while crowd.wait(timeout: .now() + .milliseconds(1)) == .timedOut {
      for path in ["/readyz", "/metrics"] { statuses.insert(try client.send("GET", path).status) }
    }
    #expect(statuses == [200])
  }

  @Test(arguments: [
    (["--log", "xml"], "'--log xml' must be one of plain, text, json"),
    (["--log-level", "loud"], "'--log-level loud' must be one of debug, info, warn, error"),
    (["--log-requests", "0"], "'--log-requests 0' must be a whole number"),
    (["--metrics-address", "9090"], "'--metrics-address 9090' must be HOST:PORT"),
    (["--metrics-address", ":9"], "must be HOST:PORT"),
    (["--quiet", "--log-level", "info"], "exclude each other"),
  ])
  func mistakesAreReported(words: [String], message: String) throws {
    let run = try HearthBinary.run(["serve", "--emulator", "--port", "0"] + words)
    #expect(run.exit == .code(64))
    #expect(run.output.contains(message), "\(run.output)")
  }
}
