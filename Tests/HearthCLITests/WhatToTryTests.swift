import Foundation
import Testing
import TestSupport

/// The commands that `make serve` prints work as printed.
@Suite(.needs(.hearth)) struct WhatToTryTests {
  @Test(arguments: ["", "rules/shop.rules"]) func commandsWork(rules: String) async throws {
    try await onDedicatedThread {
      let fixture = ["--import", "\(GuidePage.root)/fixtures/shop.json"]
      let guarded = rules.isEmpty ? [] : ["--rules", "\(GuidePage.root)/\(rules)"]
      let server = try HearthProcess(arguments: ["--emulator", "--project", "demo"] + fixture + guarded)
      defer { server.process.stop() }
      let script = try ServerProcess(
        executable: "\(GuidePage.root)/.ci/what-to-try", arguments: ["\(server.port)", "demo", rules])
      #expect(script.waitForExit(timeoutSeconds: 30) == .code(0))
      let text = script.output
      let state = rules.isEmpty ? "Emulator mode, without security rules" : "Emulator mode, with the rules of \(rules)"
      #expect(text.contains(state), "\(text)")
      let commands = text.split(separator: "\n").compactMap { line in
        line.range(of: "curl ").map { String(line[$0.lowerBound...]) }
      }
      #expect(commands.count == 4, "\(text)")
      for command in commands {
        let run = try ServerProcess(
          executable: "/bin/bash", arguments: ["-c", command.replacing("curl ", with: "curl -sf -o /dev/null ")])
        #expect(run.waitForExit(timeoutSeconds: 30) == .code(0), "\(command): \(run.output)")
      }
    }
  }
}
