import Foundation
import Glibc

/// A program that a benchmark started and owns alone. It is ended by its process ID, even if the run fails.
final class ChildProcess {
  let pid: pid_t
  private(set) var exitStatus: Int32?

  /// Starts a program with an empty standard input.
  ///
  /// - Parameters:
  ///   - output: the file for standard output and standard error, or `/dev/null` to discard both.
  /// - Throws: ``BenchmarkError`` if the program cannot be started.
  init(_ arguments: [String], output: String = "/dev/null") throws {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_addopen(&actions, 1, output, O_WRONLY | O_CREAT | O_TRUNC, 0o600)
    posix_spawn_file_actions_adddup2(&actions, 1, 2)
    var argv: [UnsafeMutablePointer<CChar>?] = arguments.map { strdup($0) }
    argv.append(nil)
    defer { for argument in argv { free(argument) } }
    var pid: pid_t = 0
    let code = posix_spawnp(&pid, arguments[0], &actions, nil, argv, environ)
    guard code == 0 else { throw BenchmarkError("cannot start \(arguments[0]): \(String(cString: strerror(code)))") }
    self.pid = pid
    RunningChildren.add(pid)
  }

  deinit { stop() }

  var isRunning: Bool {
    reap()
    return exitStatus == nil
  }

  /// Asks the program to end, and kills it after a few seconds.
  func stop() {
    guard isRunning else { return }
    Glibc.kill(pid, SIGTERM)
    if wait(seconds: 10) == nil {
      kill()
    }
  }

  /// Stops the program until it is resumed.
  func pause() { if isRunning { Glibc.kill(pid, SIGSTOP) } }

  /// Lets a paused program continue.
  func resume() { if isRunning { Glibc.kill(pid, SIGCONT) } }

  /// Ends the program without giving it a chance to close its files.
  func kill() {
    guard isRunning else { return }
    Glibc.kill(pid, SIGKILL)
    _ = wait(seconds: 10)
  }

  /// Returns the exit status after the program has ended, or `nil` if it runs longer than `seconds`.
  func wait(seconds: Double) -> Int32? {
    let end = Stopwatch()
    while isRunning, end.seconds < seconds { usleep(2_000) }
    return exitStatus
  }

  private func reap() {
    guard exitStatus == nil else { return }
    var status: Int32 = 0
    guard waitpid(pid, &status, WNOHANG) == pid else { return }
    exitStatus = status & 0x7f == 0 ? (status >> 8) & 0xff : 128 + status & 0x7f
    RunningChildren.remove(pid)
  }

  // MARK: Figures of the kernel

  /// CPU time of the program and its children so far, also of those that have ended, in seconds, in steps of 10 ms.
  var cpuSeconds: Double {
    let ticks = family.reduce(0) { sum, pid in
      // The text after the program's name, which may contain blanks. It starts with field 3, so user and system time
      // have the indexes 11 and 12.
      guard let line = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
        let name = line.range(of: ") ", options: .backwards)
      else { return sum }
      let fields = line[name.upperBound...].split(separator: " ")
      // The two fields after these contain the time of its children that have ended.
      return sum + fields[11...14].reduce(0) { $0 + (Int($1) ?? 0) }
    }
    return Double(ticks) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  /// The anonymous memory of the program and its children, in bytes.
  var anonymousBytes: Int {
    family.reduce(0) { $0 + Self.anonymousBytes(of: $1) }
  }

  /// The anonymous memory of one process, in bytes.
  static func anonymousBytes(of pid: pid_t) -> Int {
    let status = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? ""
    let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
    return (line.flatMap { Int($0.filter(\.isNumber)) } ?? 0) * 1024
  }

  /// The bytes that the program has passed to the kernel so far, for files and sockets.
  ///
  /// This is not the kernel's `write_bytes`. If the page cache uses large folios, `write_bytes` counts a whole folio
  /// for every changed page, several times the bytes that reach the disk.
  var bytesWritten: Int { Self.bytesWritten(by: pid) }

  /// The same for a process ID.
  static func bytesWritten(by pid: pid_t) -> Int {
    let lines = (try? String(contentsOfFile: "/proc/\(pid)/io", encoding: .utf8)) ?? ""
    let line = lines.split(separator: "\n").first { $0.hasPrefix("wchar:") }
    return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
  }

  private var family: [pid_t] {
    let children = (try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)) ?? ""
    return [pid] + children.split(separator: " ").compactMap { pid_t($0) }
  }
}

/// The IDs of all running children, so that an interrupted run can end them.
enum RunningChildren {
  private static let pids = Lock<Set<pid_t>>([])

  static func add(_ pid: pid_t) { pids.withLock { _ = $0.insert(pid) } }
  static func remove(_ pid: pid_t) { pids.withLock { _ = $0.remove(pid) } }

  /// Kills all children, at the end of an interrupted run.
  static func killAll() {
    pids.withLock { for pid in $0 { Glibc.kill(pid, SIGKILL) } }
  }
}
