import Foundation
import Glibc

/// The `hearth` binary built with the tests, run the way users run it.
package enum HearthBinary {
  /// The path of the binary: `HEARTH_BINARY` in the environment, or the binary in the test bundle's directory.
  ///
  /// `nil` if neither exists; see ``Requirement/hearth``.
  package static let path: String? = {
    if let chosen = ProcessInfo.processInfo.environment["HEARTH_BINARY"] { return chosen }
    guard let tests = try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/self/exe") else { return nil }
    let candidates = [
      URL(fileURLWithPath: tests).deletingLastPathComponent(),
      URL(fileURLWithPath: CommandLine.arguments[0]).deletingLastPathComponent(),
      Bundle.main.bundleURL,
    ].map { $0.appendingPathComponent("hearth").path }
    return candidates.first { access($0, X_OK) == 0 }
  }()

  /// The binary of an earlier build, which `HEARTH_PREVIOUS_BINARY` in the environment names; see
  /// ``Requirement/previousBuild``.
  package static let previousPath = ProcessInfo.processInfo.environment["HEARTH_PREVIOUS_BINARY"]

  /// Runs the binary, or another one, to its end, for at most `timeoutSeconds`. Returns its exit and output.
  /// - Throws: ``ServerProcessError`` if the binary does not exist or does not end in time.
  package static func run(
    _ arguments: [String], timeoutSeconds: Double = 30, executable: String? = nil
  ) throws -> (exit: ProcessExit?, output: String) {
    let process = try start(arguments, executable: executable)
    let exit = process.waitForExit(timeoutSeconds: timeoutSeconds)
    if exit == nil { process.stop() }
    return (exit, process.output)
  }

  /// Starts the binary, or another one, without waiting for it. Sets environment variables such as `NAME=value`.
  /// - Throws: ``ServerProcessError`` if the binary does not exist or cannot be started.
  package static func start(
    _ arguments: [String], environment: [String] = [], executable: String? = nil
  ) throws -> ServerProcess {
    guard let path = executable ?? path else {
      throw ServerProcessError(description: "cannot find the hearth binary next to the tests")
    }
    guard environment.isEmpty else {
      return try ServerProcess(executable: "/usr/bin/env", arguments: environment + [path] + arguments)
    }
    return try ServerProcess(executable: path, arguments: arguments)
  }
}

/// `hearth serve` on a free loopback port.
package struct HearthProcess: Sendable {
  package let process: ServerProcess
  package let port: UInt16

  /// Starts `hearth serve --port 0` with `arguments` and waits until it listens. `hasLog` chooses whether databases have
  /// a commit log.
  /// - Throws: ``ServerProcessError`` if it does not listen in time.
  package init(
    arguments: [String], usesTLS: Bool = false, hasLog: Bool? = nil, timeoutSeconds: Double = 30
  ) throws {
    let environment = hasLog.map { ["HEARTH_COMMIT_LOG=\($0 ? 1 : 0)"] } ?? []
    process = try HearthBinary.start(["serve", "--port", "0"] + arguments, environment: environment)
    let address = try process.waitForLine(
      prefix: "hearth: listening on \(usesTLS ? "https" : "http")://127.0.0.1:", timeoutSeconds: timeoutSeconds)
    guard let port = UInt16(address.prefix { $0.isNumber }) else {
      process.stop()
      throw ServerProcessError(description: "no port in '\(address)'")
    }
    self.port = port
  }

  /// Starts a server in emulator mode that stores nothing on disk.
  /// - Throws: ``ServerProcessError`` if it does not listen in time.
  package static func inMemory() throws -> HearthProcess {
    try HearthProcess(arguments: ["--emulator", "--in-memory"])
  }
}
