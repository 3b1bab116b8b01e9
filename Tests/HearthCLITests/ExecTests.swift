import Foundation
import Testing
import TestSupport

/// `hearth exec -- COMMAND`, run as a command.
@Suite(.needs(.hearth)) struct ExecTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func exec(_ script: String, _ options: [String] = []) throws -> (exit: ProcessExit?, output: String) {
    try HearthBinary.run(["exec"] + options + ["--", "sh", "-c", script])
  }

  @Test func theCommandFindsTheServerAndTheProject() throws {
    let script = """
      echo "$GCLOUD_PROJECT $GOOGLE_CLOUD_PROJECT"
      test "$FIRESTORE_EMULATOR_HOST" = "$FIREBASE_AUTH_EMULATOR_HOST" || exit 3
      test "http://$FIREBASE_STORAGE_EMULATOR_HOST" = "$STORAGE_EMULATOR_HOST" || exit 3
      "$0" get users --server "http://$FIRESTORE_EMULATOR_HOST" --project "$GCLOUD_PROJECT"
      """
    let tree = try directory.write("users.json", #"{"$collections": ["users"], "users": {"ann": {"age": 37}}}"#)
    let path = try #require(HearthBinary.path)
    let run = try HearthBinary.run(
      ["exec", "--project", "shop", "--quiet", "--import", tree, "--", "sh", "-c", script, path])
    #expect(run.exit == .code(0), "\(run.output)")
    #expect(run.output == "shop shop\nann  {\"age\": 37}\n")
  }

  @Test(arguments: [("exit 0", Int32(0)), ("exit 7", 7), ("kill -TERM $$", 143), ("kill -KILL $$", 137)])
  func exitsWithTheStatusOfTheCommand(script: String, status: Int32) throws {
    let run = try exec(script)
    #expect(run.exit == .code(status), "\(run.output)")
  }

  @Test func reportsAMissingCommand() throws {
    let run = try HearthBinary.run(["exec", "--", "no-such-command"])
    #expect(run.exit == .code(127))
    #expect(run.output.contains("cannot run 'no-such-command': No such file or directory"), "\(run.output)")
    let none = try HearthBinary.run(["exec"])
    #expect(none.exit == .code(64))
    #expect(none.output.contains("an operand is missing: -- COMMAND"), "\(none.output)")
  }

  @Test func forwardsSignals() throws {
    let process = try HearthBinary.start(
      ["exec", "--", "sh", "-c", "trap 'echo told; exit 9' TERM; echo ready; while :; do sleep 0.01; done"])
    _ = try process.waitForLine(prefix: "ready", timeoutSeconds: 30)
    process.send(signal: SIGTERM)
    #expect(process.waitForExit(timeoutSeconds: 30) == .code(9), "\(process.output)")
    #expect(process.output.contains("told"))
  }

  @Test func nothingIsLeftBehind() throws {
    let run = try exec("echo $FIRESTORE_EMULATOR_HOST; cd '\(directory.file(""))' && ls -A")
    #expect(run.exit == .code(0))
    let lines = run.output.split(separator: "\n")
    #expect(lines.count == 1, "\(run.output)")
    let port = try #require(lines.first?.split(separator: ":").last.flatMap { UInt16($0) })
    // No server listens there any longer.
    let get = try HearthBinary.run(["get", "a/b", "--server", "http://127.0.0.1:\(port)", "--project", "p"])
    #expect(get.exit == .code(1))
  }
}
