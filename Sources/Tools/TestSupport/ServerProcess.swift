import Foundation
package import Glibc

/// The way in which a process ended.
package enum ProcessExit: Equatable, Sendable {
  case code(Int32)
  case signal(Int32)
}

/// An error of a program that could not be started, did not become ready, or ended too early.
package struct ServerProcessError: Error, CustomStringConvertible {
  package let description: String

  package init(description: String) { self.description = description }
}

/// A program that a test started, with its output collected.
///
/// It never outlives the test: it is killed when this object is released, and by the kernel when the test process
/// dies. Every wait has a time limit from the caller.
package final class ServerProcess: Sendable {
  package let processID: pid_t
  private let commandLine: String
  private let state = Observed(State())

  /// Starts `executable` (a path) with `arguments`. The program's descriptor 3 is `socket`, if not `nil`.
  /// - Throws: ``ServerProcessError`` if the program cannot be started.
  package init(executable: String, arguments: [String], socket: Int32? = nil) throws {
    // `setpriv` executes the program and has the kernel kill it when its parent thread ends.
    let guardian = "/usr/bin/setpriv"
    let words =
      access(guardian, X_OK) == 0
      ? [guardian, "--pdeathsig", "KILL", executable] + arguments : [executable] + arguments
    commandLine = ([executable] + arguments).joined(separator: " ")
    let (pid, input) = try SpawningThread.run { Self.spawn(words, socket) }.get()
    processID = pid
    let state = state
    Thread { Self.collect(from: input, until: pid, in: state) }.start()
  }

  deinit { send(signal: SIGKILL) }

  /// Closes every descriptor from a given one on in a spawned program, or `nil` on systems without the function.
  /// Swift does not see its declaration.
  private static let addCloseFrom = dlsym(nil, "posix_spawn_file_actions_addclosefrom_np").map {
    unsafeBitCast($0, to: (@convention(c) (UnsafeMutablePointer<posix_spawn_file_actions_t>, Int32) -> Int32).self)
  }

  /// Starts the program and returns a descriptor to read its output. Runs only on the spawning thread, so that no
  /// program started at the same time inherits the pipe and keeps it open.
  private static func spawn(_ words: [String], _ socket: Int32?) -> Result<(pid_t, Int32), ServerProcessError> {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { return .failure(ServerProcessError(description: "no pipe: errno \(errno)")) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1)
    posix_spawn_file_actions_adddup2(&actions, ends[1], 2)
    if let socket { posix_spawn_file_actions_adddup2(&actions, socket, 3) }
    // Otherwise the program would keep sockets of other tests open, and their servers would not notice that a client
    // has disconnected.
    _ = addCloseFrom?(&actions, socket == nil ? 3 : 4)
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    // Test runners may block or ignore signals. The program starts with the default handling.
    var signals = sigset_t()
    sigemptyset(&signals)
    posix_spawnattr_setsigmask(&attributes, &signals)
    sigaddset(&signals, SIGPIPE)
    sigaddset(&signals, SIGTERM)
    sigaddset(&signals, SIGINT)
    posix_spawnattr_setsigdefault(&attributes, &signals)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF))
    var arguments = words.map { strdup($0) }
    defer { for argument in arguments { free(argument) } }
    arguments.append(nil)
    var pid: pid_t = 0
    let result = posix_spawn(&pid, words[0], &actions, &attributes, arguments, environ)
    _ = Glibc.close(ends[1])
    guard result == 0 else {
      _ = Glibc.close(ends[0])
      return .failure(ServerProcessError(description: "cannot start \(words.joined(separator: " ")): errno \(result)"))
    }
    return .success((pid, ends[0]))
  }

  /// The output so far, from standard output and standard error.
  package var output: String { state.value.text }

  /// Waits for a line that begins with `prefix`. Returns the rest of that line.
  ///
  /// - Throws: ``ServerProcessError`` with the output if the process ends or the time is over first.
  package func waitForLine(prefix: String, timeoutSeconds: Double) throws -> String {
    let line = try waitForLine("'\(prefix)'", timeoutSeconds: timeoutSeconds) { $0.hasPrefix(prefix) }
    return String(line.dropFirst(prefix.count))
  }

  /// Waits for a complete line for which `isWanted` returns `true`, and returns it. `what` describes the line in the
  /// error.
  ///
  /// - Throws: ``ServerProcessError`` with the output if the process ends or the time is over first.
  package func waitForLine(
    _ what: String, timeoutSeconds: Double, where isWanted: (Substring) -> Bool
  ) throws -> String {
    var found: Substring?
    try waitForOutput(what, timeoutSeconds: timeoutSeconds) { text in
      // The part after the last line feed is not a complete line yet.
      found = text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().first(where: isWanted)
      return found != nil
    }
    return String(found ?? "")
  }

  /// Waits until the output so far satisfies a condition. `what` describes it in the error.
  ///
  /// - Throws: ``ServerProcessError`` with the output if the process ends or the time is over first.
  package func waitForOutput(_ what: String, timeoutSeconds: Double, until holds: (String) -> Bool) throws {
    var (text, exit, isFound) = ("", ProcessExit?.none, false)
    _ = state.wait(secondsMax: timeoutSeconds) { state in
      (text, exit) = (state.text, state.exit)
      isFound = holds(text)
      return isFound || exit != nil
    }
    if isFound { return }
    if let exit { throw ServerProcessError(description: "\(commandLine) ended with \(exit):\n\(text)") }
    throw ServerProcessError(description: "\(commandLine) did not write \(what) in time:\n\(text)")
  }

  /// Sends a signal, unless the process has ended.
  package func send(signal: Int32) {
    // The process is reaped with the state locked, so until `exit` is set no other process can have its ID.
    state.update { if $0.exit == nil { kill(processID, signal) } }
  }

  /// Waits for the end. Returns `nil` if the process still runs after `timeoutSeconds`.
  package func waitForExit(timeoutSeconds: Double) -> ProcessExit? {
    _ = state.wait(secondsMax: timeoutSeconds) { $0.exit != nil }
    return state.value.exit
  }

  /// Asks the process to end with SIGTERM, kills it if it still runs after `timeoutSeconds`, and waits for its end.
  @discardableResult
  package func stop(timeoutSeconds: Double = 30) -> ProcessExit? {
    send(signal: SIGTERM)
    if let exit = waitForExit(timeoutSeconds: timeoutSeconds) { return exit }
    send(signal: SIGKILL)
    return waitForExit(timeoutSeconds: timeoutSeconds)
  }

  /// The state that the callers share with the thread that reads the output.
  private struct State: Sendable {
    var collected: [UInt8] = []
    var exit: ProcessExit?

    /// The most output kept, in bytes. Later output is read and discarded.
    static let outputBytesMax = 1 << 20

    var text: String { String(decoding: collected, as: UTF8.self) }
  }

  /// Reads the output until its end, and then waits for the end of the process.
  private static func collect(from input: Int32, until pid: pid_t, in state: Observed<State>) {
    var buffer = [UInt8](repeating: 0, count: 65536)
    while true {
      let count = read(input, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      if count <= 0 { break }
      state.update { if $0.collected.count < State.outputBytesMax { $0.collected += buffer[..<count] } }
    }
    _ = Glibc.close(input)
    var information = siginfo_t()
    while waitid(P_PID, id_t(pid), &information, WEXITED | WNOWAIT) < 0, errno == EINTR {}
    state.update {
      var status: Int32 = 0
      while waitpid(pid, &status, 0) < 0, errno == EINTR {}
      let signal = status & 0x7F
      $0.exit = signal == 0 ? .code((status >> 8) & 0xFF) : .signal(signal)
    }
  }
}

/// The one thread that starts processes. It never ends, so "killed with its parent thread" means that a process ends
/// with this test process, and not when a worker thread is retired.
private final class SpawningThread: Sendable {
  private static let shared = SpawningThread()
  private let work = Observed<[@Sendable () -> Void]>([])

  private init() {
    Thread { [work] in
      while true {
        _ = work.wait(secondsMax: nil) { !$0.isEmpty }
        // Only this thread removes work.
        let next = work.update { $0.removeFirst() }
        next()
      }
    }.start()
  }

  /// Runs `body` on the thread and waits for its result.
  static func run<Result: Sendable>(_ body: @escaping @Sendable () -> Result) -> Result {
    wait { done in shared.work.update { $0.append { done(body()) } } }
  }
}
