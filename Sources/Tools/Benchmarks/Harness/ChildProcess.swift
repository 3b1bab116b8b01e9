import Foundation
import Glibc

/// A program started by a benchmark, which is its only owner: it is ended by its process id, also when the run fails.
final class ChildProcess {
  let pid: pid_t
  private(set) var exitStatus: Int32?

  /// Starts a program with nothing on its standard input.
  ///
  /// - Parameters:
  ///   - output: the file that takes standard output and error; `/dev/null` where nobody reads them.
  /// - Throws: ``BenchmarkError`` when the program cannot be started.
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

  /// Asks the program to end, and kills it after some seconds.
  func stop() {
    guard isRunning else { return }
    kill(pid, SIGTERM)
    if wait(seconds: 10) == nil {
      kill(pid, SIGKILL)
      _ = wait(seconds: 10)
    }
  }

  /// The exit status once the program has ended, or `nil` if it has not within the time.
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

  // MARK: What the kernel knows of it

  /// CPU time of the program and its children so far, in seconds, in steps of 10 ms.
  var cpuSeconds: Double {
    let ticks = family.reduce(0) { sum, pid in
      // Behind the name, which may hold blanks: field 3 is first, so user and system time are 11 and 12 from there.
      guard let line = try? String(contentsOfFile: "/proc/\(pid)/stat", encoding: .utf8),
        let name = line.range(of: ") ", options: .backwards)
      else { return sum }
      let fields = line[name.upperBound...].split(separator: " ")
      return sum + (Int(fields[11]) ?? 0) + (Int(fields[12]) ?? 0)
    }
    return Double(ticks) / Double(sysconf(Int32(_SC_CLK_TCK)))
  }

  /// Memory of the program and its children that no file stands behind, in bytes.
  var anonymousBytes: Int {
    family.reduce(0) { sum, pid in
      let status = (try? String(contentsOfFile: "/proc/\(pid)/status", encoding: .utf8)) ?? ""
      let line = status.split(separator: "\n").first { $0.hasPrefix("RssAnon:") }
      return sum + (line.flatMap { Int($0.filter(\.isNumber)) } ?? 0) * 1024
    }
  }

  /// Bytes the program has handed to the kernel so far, to files and to sockets.
  ///
  /// Not the kernel's `write_bytes`: where a file's pages are cached in large folios, that counts a whole folio for
  /// every page changed in it, several times what reaches the disk.
  var bytesWritten: Int {
    let lines = (try? String(contentsOfFile: "/proc/\(pid)/io", encoding: .utf8)) ?? ""
    let line = lines.split(separator: "\n").first { $0.hasPrefix("wchar:") }
    return line.flatMap { Int($0.filter(\.isNumber)) } ?? 0
  }

  private var family: [pid_t] {
    let children = (try? String(contentsOfFile: "/proc/\(pid)/task/\(pid)/children", encoding: .utf8)) ?? ""
    return [pid] + children.split(separator: " ").compactMap { pid_t($0) }
  }
}

/// The programs that run now, so that an interrupted run can end them.
enum RunningChildren {
  private static let pids = Lock<Set<pid_t>>([])

  static func add(_ pid: pid_t) { pids.withLock { _ = $0.insert(pid) } }
  static func remove(_ pid: pid_t) { pids.withLock { _ = $0.remove(pid) } }

  /// Kills what runs. For the end of an interrupted run only.
  static func killAll() {
    pids.withLock { for pid in $0 { kill(pid, SIGKILL) } }
  }
}
