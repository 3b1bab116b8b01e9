import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// The completions for bash, zsh and fish.
@Suite(.needs(.hearth)) struct CompletionTests {
  /// Completes the last word of a command line in bash, in a directory with a few files. Returns the words that bash
  /// would offer, sorted.
  private static func completed(_ words: [String]) throws -> [String] {
    let directory = try TemporaryDirectory()
    for name in ["a.rules", "b c.json", "hearth-data/databases/shop/x", "hearth-data/databases/chat/x", "folder/x"] {
      let file = URL(fileURLWithPath: directory.file(name))
      try FileManager.default.createDirectory(
        at: file.deletingLastPathComponent(), withIntermediateDirectories: true)
      try Data().write(to: file)
    }
    let script = try directory.write("completions", Shell.bash.completions)
    let quoted = words.map { Shell.quoted($0) }.joined(separator: " ")
    let run = try Tool.bash.run([
      "-euc",
      """
      cd \(Shell.quoted(directory.path)); source \(script); rm \(script)
      complete -p hearth > /dev/null
      COMP_WORDS=(\(quoted)) COMP_CWORD=$((\(words.count) - 1))
      _hearth || true
      printf '%s\\n' "${COMPREPLY[@]}"
      """,
    ])
    #expect(run.status == 0 && run.errors.isEmpty, "\(words): \(run.errors)")
    return Set(run.output.split(separator: "\n").map(String.init)).sorted()
  }

  @Test(
    .needs(.tool(.bash)),
    arguments: [
      (["hearth", "exp"], ["export"]), (["hearth", "acc"], ["accounts"]),
      (["hearth", "l"], ["list", "listeners", "ls"]),
      (["hearth", "rules", ""], ["check", "explain", "test"]), (["hearth", "keys", "r"], ["revoke", "rotate"]),
      (["hearth", "export", "--form"], ["--format"]), (["hearth", "rules", "check", "--s"], ["--strict"]),
      (["hearth", "export", "--format", ""], ["csv", "firebase", "ndjson", "tree"]),
      (["hearth", "export", "--format", "=", "n"], ["ndjson"]),
      (["hearth", "export", "--format", "="], ["csv", "firebase", "ndjson", "tree"]),
      (["hearth", "--color", "never", "exp"], ["export"]), (["hearth", "get", "--color", "a"], ["always", "auto"]),
      (["hearth", "indexes", ""], ["list", "suggest"]), (["hearth", "completion", ""], ["bash", "fish", "zsh"]),
      (["hearth", "rules", "check", "a"], ["a.rules"]), (["hearth", "import", "b"], ["b c.json"]),
      (["hearth", "check", ""], ["folder", "hearth-data"]), (["hearth", "serve", "--data", "f"], ["folder"]),
      (["hearth", "serve", "--project", ""], ["chat", "shop"]), (["hearth", "stats", "--project", "s"], ["shop"]),
      (["hearth", "stats", "--data", "folder", "--project", ""], []), (["hearth", "get", ""], []),
      (["hearth", "help", "wat"], ["watch"]), (["hearth", "exec", "--emulator", "--", "base6"], ["base64"]),
      (["hearth", "files", "cp", "-"], nil), (["hearth", "ls", "--lim"], ["--limit"]),
    ] as [([String], [String]?)])
  func bashOffersWhatFits(words: [String], expected: [String]?) throws {
    let offered = try Self.completed(words)
    if let expected { #expect(offered == expected, "\(words)") } else { #expect(offered.contains("-r")) }
  }

  @Test func verbPrintsTheScripts() throws {
    for shell in Shell.allCases {
      let run = try HearthBinary.run(["completion", shell.rawValue])
      #expect(run.exit == .code(0) && run.output == shell.completions)
      for command in Command.all where !command.isHidden {
        for option in command.options { #expect(run.output.contains(option.name), "\(command.name) --\(option.name)") }
      }
    }
    let wrong = try HearthBinary.run(["completion", "bsh"])
    #expect(wrong.exit == .code(64) && wrong.output.contains("did you mean 'bash'?"), "\(wrong.output)")
  }

  @Test(.needs(.tool(.bash)))
  func bashReadsItsScript() throws { try Self.check(.bash, .bash) }

  @Test(.needs(.tool(.zsh))) func zshReadsItsScript() throws { try Self.check(.zsh, .zsh) }

  @Test(.needs(.tool(.fish))) func fishReadsItsScript() throws { try Self.check(.fish, .fish) }

  /// Lets a shell check the syntax of its script.
  private static func check(_ tool: Tool, _ shell: Shell) throws {
    let directory = try TemporaryDirectory()
    let run = try tool.run(["-n", try directory.write("script", shell.completions)])
    #expect(run.status == 0 && run.errors.isEmpty, "\(run.errors)")
  }

  @Test(
    .needs(.tool(.fish)),
    arguments: [
      ("hearth exp", ["export"]), ("hearth rules ", ["check", "explain", "test"]),
      ("hearth export --format ", ["csv", "firebase", "ndjson", "tree"]), ("hearth rules check --st", ["--strict"]),
      ("hearth indexes s", ["suggest"]),
    ])
  func fishOffersWhatFits(line: String, expected: [String]) throws {
    let directory = try TemporaryDirectory()
    let script = try directory.write("script", Shell.fish.completions)
    let run = try Tool.fish.run(["--no-config", "-c", "source \(script); complete -C \(Shell.quoted(line))"])
    let words = run.output.split(separator: "\n").compactMap { $0.split(separator: "\t").first.map(String.init) }
    #expect(words.sorted() == expected, "\(run.errors)")
  }
}
