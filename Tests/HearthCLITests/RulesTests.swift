import Foundation
import Testing
import TestSupport

/// `hearth rules check`, `test` and `explain`, run as commands.
@Suite(.needs(.hearth)) struct RulesTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents/rooms/{room} {
        allow read: if resource.data.owner == request.auth.uid && request.auth.token.level > 1;
        allow write: if get(/databases/$(database)/documents/users/$(request.auth.uid)).data.admin;
      }
    }
    """

  private static let tests = """
    {"rules": "a.rules", "documents": {"$collections": ["rooms"], "rooms": {"r1": {"owner": "ann"}}},
     "cases": [
       {"it": "shows", "as": {"uid": "ann", "token": {"level": 2}}, "get": "rooms/r1", "expect": "allow"},
       {"it": "hides", "as": "eve", "get": "rooms/r1", "expect": "EXPECT"}]}
    """

  private func write(expecting word: String = "deny") throws -> String {
    _ = try directory.write("a.rules", Self.rules)
    return try directory.write("a.tests.json", Self.tests.replacingOccurrences(of: "EXPECT", with: word))
  }

  @Test func checkShowsPositionAndAdvice() throws {
    let good = try directory.write("good.rules", Self.rules)
    let bad = try directory.write("bad.rules", Self.rules.replacingOccurrences(of: "if get(", with: "if gte("))
    let broken = try directory.write("broken.rules", "service cloud.firestore { match /a/{b} { allow read: if ; } }")
    let ok = try HearthBinary.run(["rules", "check", good])
    #expect(ok.exit == .code(0))
    #expect(ok.output == "\(good): ok\n")
    let warned = try HearthBinary.run(["rules", "check", bad])
    #expect(warned.output.contains("bad.rules:5:21: warning: "), "\(warned.output)")
    #expect(warned.output.contains("^~~"), "\(warned.output)")
    let result = try HearthBinary.run(["rules", "check", good, broken])
    #expect(result.exit == .code(65))
    #expect(result.output.contains("broken.rules:1:"), "\(result.output)")
    let json = try HearthBinary.run(["rules", "check", broken, "--json"])
    #expect(json.exit == .code(65))
    #expect(json.output.contains("\"severity\": \"error\""), "\(json.output)")
  }

  @Test func testsPassAndFail() throws {
    let passed = try HearthBinary.run(["rules", "test", write()])
    #expect(passed.exit == .code(0))
    #expect(passed.output.contains("a.tests.json: 2 passed\n2 cases, all passed ("), "\(passed.output)")
    let failed = try HearthBinary.run(["rules", "test", write(expecting: "allow")])
    #expect(failed.exit == .code(1))
    #expect(failed.output.contains("a.tests.json:4: FAILED: hides\n  expected allow, got deny\n"), "\(failed.output)")
    #expect(failed.output.contains("resource.data.owner == request.auth.uid → false"), "\(failed.output)")
    #expect(failed.output.contains("2 cases, 1 failed ("), "\(failed.output)")
    let filtered = try HearthBinary.run(["rules", "test", directory.file("a.tests.json"), "--filter", "show"])
    #expect(filtered.exit == .code(0))
    #expect(filtered.output.contains("1 passed, 1 skipped"), "\(filtered.output)")
  }

  @Test func rulesForFilesAreCheckedTestedAndExplained() throws {
    let rules = try directory.write(
      "s.rules",
      """
      rules_version = '2';
      service firebase.storage {
        match /b/{bucket}/o/avatars/{uid} {
          allow write: if request.auth.uid == uid && request.resource.size < 100;
          allow get: if resource.metadata.shared == 'yes'
            || firestore.get(/databases/(default)/documents/users/$(uid)).data.open;
        }
      }
      """)
    let check = try HearthBinary.run(["rules", "check", rules])
    #expect(check.exit == .code(0) && check.output == "\(rules): ok\n", "\(check.output)")
    let tests = try directory.write(
      "s.tests.json",
      """
      {"rules": "s.rules", "files": {"avatars/eve": {"metadata": {"shared": "yes"}}}, "cases": [
        {"it": "takes", "as": "ann", "create": "avatars/ann", "data": {"size": 5}, "expect": "allow"},
        {"it": "shows", "get": "avatars/eve", "expect": "allow"}]}
      """)
    let run = try HearthBinary.run(["rules", "test", tests, "--lcov", directory.file("s.info"), "--mutate"])
    #expect(run.exit == .code(0) && run.output.contains("2 passed"), "\(run.output)")
    #expect(try directory.text("s.info").contains("SF:\(rules)"))
    let documents = try directory.write("d.json", #"{"$collections": ["users"], "users": {"ann": {"open": true}}}"#)
    for (arguments, exit, text) in [
      (
        ["--as", "ann", "create", "avatars/ann", "--data", #"{"size": 100}"#], 1, "request.resource.size < 100 → false"
      ),
      (["--as", "ann", "create", "b/other/o/avatars/ann", "--data", #"{"size": 9}"#], 0, "allowed: create b/other/o/"),
      (["get", "avatars/ann", "--file", "{}", "--documents", documents], 0, "allowed: get"),
      (["get", "avatars/ann", "--file", #"{"metadata": {"shared": "no"}}"#], 1, "denied: get"),
      (["set", "avatars/ann"], 64, "unknown method 'set'"),
      (["get", "avatars/ann", "--file", #"{"siez": 1}"#], 65, "siez"),
    ] as [([String], Int32, String)] {
      let result = try HearthBinary.run(["rules", "explain", "--rules", rules] + arguments)
      #expect(result.exit == .code(exit), "\(arguments): \(result.output)")
      #expect(result.output.contains(text), "\(arguments): \(result.output)")
    }
  }

  @Test func reportsAreWritten() throws {
    let result = try HearthBinary.run([
      "rules", "test", write(expecting: "allow"), "--junit", directory.file("j.xml"), "--lcov",
      directory.file("l.info"),
      "--html", directory.file("c.html"), "--json", "--mutate",
    ])
    #expect(result.exit == .code(1))
    let json = try #require(try JSONSerialization.jsonObject(with: Data(result.output.utf8)) as? [String: Any])
    #expect(json["passed"] as? Int == 1)
    #expect(json["failed"] as? Int == 1)
    #expect((json["mutations"] as? [[String: Any]])?.first?["tried"] as? Int ?? 0 > 3)
    #expect(try directory.text("j.xml").contains("<testsuites tests=\"2\" failures=\"1\""))
    #expect(try directory.text("l.info").contains("DA:4,2\nDA:5,0\n"))
    #expect(try directory.text("c.html").hasPrefix("<!DOCTYPE html>"))
  }

  @Test(arguments: [
    (["rules"], 64, "'rules' must be followed by one of check, test, explain\nSee `hearth help rules`."),
    (["rules", "tset", "x"], 64, "did you mean 'rules test'?"),
    (["rules", "test"], 64, "an operand is missing: FILE…"),
    (["rules", "test", "none.json"], 65, "none.json: cannot open the file"),
    (["rules", "explain", "get", "a/b"], 64, "'--rules FILE' is required"),
    (["rules", "explain", "--rules", "none.rules", "get", "a/b"], 65, "none.rules: cannot open the file"),
    (["rules", "--help"], 0, "Usage: hearth rules explain METHOD PATH"),
    (["help", "rules"], 0, "Usage: hearth rules check FILE…"),
    (["help", "rules", "test"], 0, "Usage: hearth rules test FILE…"),
  ])
  func mistakesAreExplained(words: [String], code: Int, message: String) throws {
    let result = try HearthBinary.run(words)
    #expect(result.exit == .code(Int32(code)))
    #expect(result.output.contains(message), "\(result.output)")
  }

  @Test func rulesThatDoNotCompileAreShown() throws {
    let tests = try write()
    _ = try directory.write("a.rules", "service cloud.firestore {")
    let result = try HearthBinary.run(["rules", "test", tests])
    #expect(result.exit == .code(65))
    #expect(result.output.contains("a.rules does not compile\n"), "\(result.output)")
    #expect(result.output.contains("a.rules:1:"), "\(result.output)")
  }

  @Test func explainShowsTheDecision() throws {
    _ = try write()
    let documents = try directory.write(
      "d.json",
      #"{"$collections": ["rooms", "users"], "rooms": {"r1": {"owner": "ann"}}, "users": {"eve": {"admin": true}}}"#)
    let rules = directory.file("a.rules")
    let denied = try HearthBinary.run([
      "rules", "explain", "--rules", rules, "--documents", documents, "--as", "eve", "get", "rooms/r1",
    ])
    #expect(denied.exit == .code(1))
    #expect(denied.output.hasPrefix("denied: get rooms/r1\n  \(rules):4: allow read: false\n"), "\(denied.output)")
    let allowed = try HearthBinary.run([
      "rules", "explain", "--rules", rules, "--documents", documents, "--as", "{\"uid\": \"eve\"}", "set", "rooms/r1",
      "--data", "{}",
    ])
    #expect(allowed.exit == .code(0))
    #expect(allowed.output.contains("allow write: true\n"), "\(allowed.output)")
  }

  @Test func explainReadsFromAServer() throws {
    _ = try write()
    let documents = try directory.write(
      "d.json",
      #"{"$collections": ["rooms", "users"], "rooms": {"r1": {"owner": "ann"}}, "users": {"eve": {"admin": true}}}"#)
    let server = try HearthProcess(arguments: ["--emulator", "--project", "demo", "--quiet", "--import", documents])
    defer { server.process.stop() }
    let result = try HearthBinary.run([
      "rules", "explain", "--rules", directory.file("a.rules"), "--server", "http://127.0.0.1:\(server.port)",
      "--project", "demo", "--as", "eve", "delete", "rooms/r1",
    ])
    #expect(result.exit == .code(0), "\(result.output)")
    #expect(result.output.contains("data.admin → true"), "\(result.output)")
  }
}
