import Foundation
import Glibc
import TestSupport

/// The server of a soak, which is killed and restarted, and its data directory. Any thread may use it.
final class SoakServer: Sendable {
  private struct State: Sendable {
    var server: HearthProcess?
    var isOver = false
  }

  private static let tmpfsMebibytesMin = 128
  private static let tmpfsMebibytesPerMinute = 48.0

  /// Whether the data directory is a disk of its own, which can be filled.
  let hasOwnDisk: Bool
  /// How often the server was killed.
  let kills = Observed(0)
  private let directory: TemporaryDirectory
  private let state = Observed(State())

  /// Starts a server. Its disk has room for the history of a soak of this many minutes, if the process may mount one.
  /// - Throws: ``ServerProcessError`` if it does not start.
  init(minutes: Double) throws {
    directory = try TemporaryDirectory()
    let mebibytes = Self.tmpfsMebibytesMin + Int(minutes * Self.tmpfsMebibytesPerMinute)
    hasOwnDisk = (try? Self.run("mount", "-t", "tmpfs", "-o", "size=\(mebibytes)m", "tmpfs", directory.path)) == 0
    try start()
  }

  deinit { if hasOwnDisk { _ = try? Self.run("umount", "-l", directory.path) } }

  private func start() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--data", "\(directory.path)/data"], timeoutSeconds: 60)
    state.update { $0.server = server }
  }

  /// Waits for the server. Returns its port, or `nil` at the end of the soak.
  func port() -> UInt16? {
    _ = state.wait(secondsMax: nil) { $0.isOver || $0.server != nil }
    return state.value.isOver ? nil : state.value.server?.port
  }

  /// The process ID while the server runs.
  var processID: pid_t? { state.value.server?.process.processID }

  /// Waits for some time, or until the end of the soak. Returns `false` at the end.
  func pause(seconds: Double) -> Bool { !state.wait(secondsMax: seconds) { $0.isOver } }

  /// Tells the clients to end.
  func end() { state.update { $0.isOver = true } }

  /// Lets clients use the server again, after all others have ended.
  func resume() { state.update { $0.isOver = false } }

  /// Kills the server and starts it again on the same data.
  /// - Throws: ``ServerProcessError`` if it does not start.
  func killAndRestart() throws {
    let server = state.update { state in
      defer { state.server = nil }
      return state.server
    }
    server?.process.send(signal: SIGKILL)
    _ = server?.process.waitForExit(timeoutSeconds: 30)
    kills.update { $0 += 1 }
    try start()
  }

  /// Fills the disk of the server for some time.
  func fillDisk(seconds: Double) {
    let filler = "\(directory.path)/filler"
    let file = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0o600)
    guard file >= 0 else { return }
    let zeros = [UInt8](repeating: 0, count: 1 << 20)
    while write(file, zeros, zeros.count) > 0 {}
    _ = pause(seconds: seconds)
    unlink(filler)
    close(file)
  }

  /// Stops the server and checks its data. Returns what is wrong.
  func stopAndCheck() throws -> [String] {
    state.value.server?.process.stop()
    state.update { $0.server = nil }
    let check = try HearthBinary.run(["check", "\(directory.path)/data"], timeoutSeconds: 600)
    return check.exit == .code(0) ? [] : ["hearth check ended with \(String(describing: check.exit)): \(check.output)"]
  }

  private static func run(_ words: String...) throws -> Int32? {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    process.arguments = words
    process.standardError = FileHandle.nullDevice
    try process.run()
    process.waitUntilExit()
    return process.terminationStatus
  }
}
