import Foundation
import TestSupport
import Testing

/// One application of five, driven from its point of view: a production server with the application's rules in force
/// and its fixture loaded, people who sign in through the accounts service, and steps that are checked.
///
/// Belongs to one thread.
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

  /// Starts the server of `system`, runs `body`, and records each failure with the step it belongs to.
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
    #expect(steps > 0, "\(system): no step was taken")
    let seconds =
      Double((clock.now - started).components.attoseconds) / 1e18 + Double((clock.now - started).components.seconds)
    print("\(system): \(steps) steps in \((seconds * 100).rounded() / 100) s")
    // Beside other tests on a busy machine the time says little: the limit holds where the caller sets it.
    if let limit = ProcessInfo.processInfo.environment["SCENARIO_SECONDS_MAX"].flatMap(Double.init) {
      #expect(seconds <= limit, "\(system) takes \(seconds) s")
    }
  }

  // MARK: Steps

  /// Does what a bullet of the application's page says; every check in it fails under the bullet's name.
  func step(_ bullet: String, _ body: () throws -> Void) {
    self.bullet = bullet
    stepCount += 1
    do { try body() } catch { fail("\(error)", line: 0) }
  }

  /// Expects `holds`.
  func check(_ holds: Bool, _ what: @autoclosure () -> String, line: Int = #line) {
    if !holds { fail(what(), line: line) }
  }

  /// Expects two values to be the same.
  func check<Value: Equatable>(_ actual: Value, _ expected: Value, _ what: String = "", line: Int = #line) {
    if actual != expected { fail("\(what) is \(actual), not \(expected)", line: line) }
  }

  /// Expects a plain value: field order does not matter, the kinds of numbers do.
  func check(_ actual: JSONNode?, json expected: JSONNode, _ what: String = "", line: Int = #line) {
    guard actual?.isSame(as: expected) != true else { return }
    fail("\(what) is \(actual?.text ?? "missing"), not \(expected.text)", line: line)
  }

  /// Expects a request to be answered.
  func allow(_ reply: Reply, _ what: String = "", line: Int = #line) {
    if reply.status != 200 { fail("\(what) answers \(reply.status) \(reply.json.text)", line: line) }
  }

  /// Expects a request to be refused by the rules, in words that do not say why.
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

  /// Makes an account with a chosen id, as an administrator does, and signs in with its password.
  ///
  /// The fixtures' documents belong to such ids.
  func person(_ uid: String, claims: String? = nil) throws -> Person {
    try hearth(
      "accounts", "create", "--uid", uid, "--email", "\(uid)@example.com", "--password", "password of \(uid)")
    if let claims { try hearth("accounts", "set-claims", uid, claims) }
    return try signIn(uid)
  }

  /// Signs somebody in on another device.
  func again(_ person: Person) throws -> Person { try signIn(person.uid) }

  private func signIn(_ uid: String) throws -> Person {
    try Person(
      of: self, call: "signInWithPassword",
      ["email": .string("\(uid)@example.com"), "password": .string("password of \(uid)")])
  }

  /// Signs up as somebody new: with e-mail and password, or without either as a guest.
  func newcomer(email: String? = nil) throws -> Person {
    try Person(of: self, call: "signUp", email.map { ["email": .string($0), "password": "a good password"] } ?? [:])
  }

  /// Somebody who is not signed in.
  func visitor() -> Person { Person(of: self) }

  /// Runs a command on the server's data directory, and returns what it prints.
  @discardableResult
  func hearth(_ words: String...) throws -> String {
    let (exit, output) = try HearthBinary.run(words + ["--data", directory.path + "/data", "--project", "demo"])
    guard exit == .code(0) else { throw ServerProcessError(description: "hearth \(words): \(output)") }
    return output
  }

  /// A part of the fixture tree, found by its keys.
  func fixture(_ keys: String...) throws -> JSONNode {
    let text = try Data(contentsOf: URL(fileURLWithPath: "\(GuidePage.root)/fixtures/\(name).json"))
    var node = try JSONNode(parsing: Array(text))
    for key in keys {
      guard let next = node[key] else { throw ServerProcessError(description: "the fixture has no \(key)") }
      node = next
    }
    return node
  }

  /// Waits until the server has logged a line with all these words; throws when it has not within thirty seconds.
  func waitForLog(_ words: String...) throws {
    _ = try server.process.waitForLine("\(words)", timeoutSeconds: 30) { line in words.allSatisfy { line.contains($0) }
    }
  }

  /// Puts a file where the server keeps its files, so that no call for them can be answered.
  func breakFiles() throws { try Data().write(to: URL(fileURLWithPath: directory.path + "/data/files")) }

  /// What the server has logged.
  var log: String { server.process.output }

  /// Runs `Systems/Python/NAME.py`, each line `ok STEP` of which is a step and each `FAILED STEP: why` a failure. It finds
  /// the server and an administrator's key in its environment, and what `values` says.
  ///
  /// Only for tests that need Google's clients, see ``needsPythonClients``: throws where there are none.
  func runPython(_ values: [String: String] = [:]) throws {
    guard let python = PythonClients.interpreter else {
      throw ServerProcessError(description: PythonClients.reasonForSkipping)
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
      fail("ends with \(exit.map { "\($0)" } ?? "nothing"): \(program.output)", line: 0)
    }
  }
}

extension Trait where Self == ConditionTrait {
  /// Skips a test, and says why, where there is no Python with Google's clients.
  static var needsPythonClients: Self {
    .enabled(if: PythonClients.interpreter != nil, "\(PythonClients.reasonForSkipping)")
  }
}
