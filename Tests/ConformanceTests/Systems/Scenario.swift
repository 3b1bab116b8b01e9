import Foundation
import Testing
import TestSupport

/// One of five applications, driven from its point of view: a production server with the application's rules and its
/// fixture, people who sign in through the accounts service, and steps that are checked.
///
/// Use it on one thread.
final class Scenario {
  /// `well-meing`, `habitual`, …
  let name: String
  let server: HearthProcess
  let database = TestDatabase(project: "demo")
  private let directory: TemporaryDirectory
  private var bullet = "before the first step"
  private var stepCount = 0
  private var failures: [String] = []

  private init(_ name: String) throws {
    self.name = name
    directory = try TemporaryDirectory()
    var arguments = [
      "--data", directory.path + "/data", "--project", "demo", "--rules", "\(GuidePage.root)/rules/\(name).rules",
      "--import", "\(GuidePage.root)/fixtures/\(name).json",
    ]
    // Not every application has files.
    let storageRules = "\(GuidePage.root)/rules/\(name).storage.rules"
    if FileManager.default.fileExists(atPath: storageRules) { arguments += ["--storage-rules", storageRules] }
    server = try HearthProcess(arguments: arguments)
  }

  /// Starts the server of `system`, runs `body`, and records each failure with its step.
  static func run(_ system: String, _ body: @escaping @Sendable (Scenario) throws -> Void) async throws {
    let clock = ContinuousClock()
    let started = clock.now
    let (failures, steps) = try await onDedicatedThread {
      let scenario = try Scenario(system)
      defer { scenario.server.process.stop() }
      do { try body(scenario) } catch { scenario.fail("\(error)", line: 0) }
      return (scenario.failures, scenario.stepCount)
    }
    for failure in failures { Issue.record("\(failure)") }
    #expect(steps > 0, "\(system): no step ran")
    let seconds =
      Double((clock.now - started).components.attoseconds) / 1e18 + Double((clock.now - started).components.seconds)
    print("\(system): \(steps) steps in \((seconds * 100).rounded() / 100) s")
    // In parallel with other tests, the time says little. So the limit is set only by a caller that runs scenarios
    // alone.
    if let limit = ProcessInfo.processInfo.environment["SCENARIO_SECONDS_MAX"].flatMap(Double.init) {
      #expect(seconds <= limit, "\(system) takes \(seconds) s")
    }
  }

  // MARK: Steps

  /// Runs one step, a sentence of the application's requirements. Checks in `body` fail with this sentence.
  func step(_ bullet: String, _ body: () throws -> Void) {
    self.bullet = bullet
    stepCount += 1
    do { try body() } catch { fail("\(error)", line: 0) }
  }

  /// Expects `holds`. Otherwise, records the failure `what`.
  func check(_ holds: Bool, _ what: @autoclosure () -> String, line: Int = #line) {
    if !holds { fail(what(), line: line) }
  }

  /// Expects two values to be equal.
  func check<Value: Equatable>(_ actual: Value, _ expected: Value, _ what: String = "", line: Int = #line) {
    if actual != expected { fail("\(what) is \(actual), not \(expected)", line: line) }
  }

  /// Expects a plain value. The order of fields does not matter, the types of numbers do.
  func check(_ actual: JSONNode?, json expected: JSONNode, _ what: String = "", line: Int = #line) {
    guard actual?.isSame(as: expected) != true else { return }
    fail("\(what) is \(actual?.text ?? "missing"), not \(expected.text)", line: line)
  }

  /// Expects a request to succeed.
  func allow(_ reply: Reply, _ what: String = "", line: Int = #line) {
    if reply.status != 200 { fail("\(what) is refused: \(reply.status) \(reply.json.text)", line: line) }
  }

  /// Expects the rules to deny a request, with an error that does not give the reason.
  func deny(_ reply: Reply, _ what: String = "", line: Int = #line) {
    let isDenial = reply.status == 403 && reply.errorStatus == "PERMISSION_DENIED"
    if !isDenial || reply.errorMessage != "Missing or insufficient permissions." {
      fail("\(what) is not denied: \(reply.status) \(reply.json.text)", line: line)
    }
  }

  private func fail(_ what: String, line: Int) {
    failures.append("\(name)\(line > 0 ? ":\(line)" : ""): \(bullet)\n  \(what)")
  }

  // MARK: People and programs

  /// Creates an account with a chosen ID, as an administrator does, and signs in with its password.
  ///
  /// The documents of the fixtures belong to such IDs.
  func person(_ uid: String, claims: String? = nil) throws -> Person {
    try hearth(
      "accounts", "create", "--uid", uid, "--email", "\(uid)@example.com", "--password", "password of \(uid)")
    if let claims { try hearth("accounts", "set-claims", uid, claims) }
    return try signIn(uid)
  }

  /// Signs a person in on another device.
  func again(_ person: Person) throws -> Person { try signIn(person.uid) }

  private func signIn(_ uid: String) throws -> Person {
    try Person(
      of: self, call: "signInWithPassword",
      ["email": .string("\(uid)@example.com"), "password": .string("password of \(uid)")])
  }

  /// Signs up a new user: with an email address and a password, or as a guest if `email` is `nil`.
  func newcomer(email: String? = nil) throws -> Person {
    try Person(of: self, call: "signUp", email.map { ["email": .string($0), "password": "a good password"] } ?? [:])
  }

  /// An unauthenticated caller.
  func visitor() -> Person { Person(of: self) }

  /// Runs a command on the server's data directory. Returns its output.
  @discardableResult
  func hearth(_ words: String...) throws -> String {
    let (exit, output) = try HearthBinary.run(words + ["--data", directory.path + "/data", "--project", "demo"])
    guard exit == .code(0) else { throw ServerProcessError(description: "hearth \(words): \(output)") }
    return output
  }

  /// The part of the fixture tree at a path of keys.
  func fixture(_ keys: String...) throws -> JSONNode {
    let text = try Data(contentsOf: URL(fileURLWithPath: "\(GuidePage.root)/fixtures/\(name).json"))
    var node = try JSONNode(parsing: Array(text))
    for key in keys {
      guard let next = node[key] else { throw ServerProcessError(description: "the fixture has no \(key)") }
      node = next
    }
    return node
  }

  /// Waits until the server logs a line that contains all `words`. Throws if it does not within thirty seconds.
  func waitForLog(_ words: String...) throws {
    _ = try server.process.waitForLine("\(words)", timeoutSeconds: 30) { line in words.allSatisfy { line.contains($0) }
    }
  }

  /// Replaces the server's directory of files with a file, so that every request for files fails.
  func breakFiles() throws { try Data().write(to: URL(fileURLWithPath: directory.path + "/data/files")) }

  /// The server's log so far.
  var log: String { server.process.output }

  /// Runs `Systems/Python/NAME.py`. Each line `ok STEP` of its output is a step, and each `FAILED STEP: why` is a
  /// failure. The program finds the server's address, an administrator's key and `values` in its environment.
  ///
  /// Only for tests that need ``Requirement/pythonClients``: throws if they are not installed.
  func runPython(_ values: [String: String] = [:]) throws {
    guard let python = PythonClients.interpreter else {
      throw ServerProcessError(description: Requirement.pythonClients.reason)
    }
    let key = directory.path + "/backend.json"
    try hearth("keys", "create", "backend", "--url", "http://127.0.0.1:\(server.port)", "--output", key)
    var words = ["PYTHONWARNINGS=ignore", "PYTHONDONTWRITEBYTECODE=1", "GRPC_VERBOSITY=NONE", "HEARTH_KEY=\(key)"]
    words += ["FIRESTORE_EMULATOR_HOST=127.0.0.1:\(server.port)", "GOOGLE_CLOUD_PROJECT=demo"]
    words += values.map { "\($0)=\($1)" }
    let folder = URL(fileURLWithPath: #filePath).deletingLastPathComponent().path + "/Python"
    let file = name.replacingOccurrences(of: "-", with: "_") + ".py"
    let program = try ServerProcess(
      executable: "/usr/bin/env", arguments: words + [python, "\(folder)/\(file)"])
    let exit = program.waitForExit(timeoutSeconds: 120)
    if exit == nil { program.stop() }
    for line in program.output.split(separator: "\n") where line.hasPrefix("ok ") { step(String(line.dropFirst(3))) {} }
    let failed = program.output.split(separator: "\n").filter { $0.hasPrefix("FAILED ") }
    bullet = file
    for line in failed { fail(String(line), line: 0) }
    if exit != .code(0) && failed.isEmpty {
      fail("exited with \(exit.map { "\($0)" } ?? "nothing"): \(program.output)", line: 0)
    }
  }
}
