import Glibc

/// A process that runs a verb of this program.
struct VerbProcess {
  let pid: pid_t
  /// The descriptor of its output.
  let output: Int32
  /// The most bytes of output that ``wait()`` returns: the last ones.
  private static let outputBytesMax = 64 << 10

  /// The program file of this process.
  static let ownProgram = "/proc/self/exe"

  /// Starts a process with the words of a command line. Its standard error is part of its output, or is discarded.
  /// - Throws: ``CommandFailure`` if no process can be started.
  init(_ words: [String], takesErrors: Bool = false, program: String = VerbProcess.ownProgram) throws {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw Self.failure("pipe", errno) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    if takesErrors {
      posix_spawn_file_actions_adddup2(&actions, ends[1], STDERR_FILENO)
    } else {
      posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    }
    // The server blocks the signals that it waits for.
    var attributes = posix_spawnattr_t()
    posix_spawnattr_init(&attributes)
    defer { posix_spawnattr_destroy(&attributes) }
    var none = sigset_t()
    sigemptyset(&none)
    posix_spawnattr_setsigmask(&attributes, &none)
    posix_spawnattr_setflags(&attributes, Int16(POSIX_SPAWN_SETSIGMASK))
    var arguments: [UnsafeMutablePointer<CChar>?] = (["hearth"] + words).map { strdup($0) }
    defer { for word in arguments { free(word) } }
    arguments.append(nil)
    var pid: pid_t = 0
    let code = posix_spawn(&pid, program, &actions, &attributes, arguments, environ)
    close(ends[1])
    guard code == 0 else {
      close(ends[0])
      throw Self.failure("posix_spawn", code)
    }
    (self.pid, output) = (pid, ends[0])
  }

  /// Reads the output and waits for the end. Returns the end of the output, and the status as `waitpid` reports it.
  func wait() -> (output: String, status: Int32) { (read(until: nil) ?? "", end()) }

  /// Reads the output until the process ends or closes it. Returns the end of the output, or `nil` if the process still
  /// runs at `deadline`; it is killed then. Call ``end()`` afterwards.
  func read(until deadline: ContinuousClock.Instant?) -> String? {
    defer { close(output) }
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    while true {
      if let deadline, !hasOutput(before: deadline) {
        kill(pid, SIGKILL)
        return nil
      }
      let count = Glibc.read(output, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      bytes += buffer[..<count]
      if bytes.count > Self.outputBytesMax { bytes.removeFirst(bytes.count - Self.outputBytesMax) }
    }
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Calls `take` with each line of the output until the process ends or closes it. Of a long line, the end is left out.
  /// Call ``end()`` afterwards.
  func readLines(_ take: (String) -> Void) {
    defer { close(output) }
    var line: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4 << 10)
    while true {
      let count = Glibc.read(output, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      for byte in buffer[..<count] {
        if byte == UInt8(ascii: "\n") {
          take(String(decoding: line, as: UTF8.self))
          line.removeAll(keepingCapacity: true)
        } else if line.count < Self.outputBytesMax {
          line.append(byte)
        }
      }
    }
    if !line.isEmpty { take(String(decoding: line, as: UTF8.self)) }
  }

  /// Waits until the output can be read. Returns `false` if the deadline passes first.
  private func hasOutput(before deadline: ContinuousClock.Instant) -> Bool {
    while true {
      let rest = ContinuousClock.now.duration(to: deadline).components
      guard rest.seconds >= 0, rest.attoseconds >= 0 else { return false }
      let milliseconds = rest.seconds * 1000 + rest.attoseconds / 1_000_000_000_000_000 + 1
      var event = pollfd(fd: output, events: Int16(POLLIN), revents: 0)
      if poll(&event, 1, Int32(clamping: milliseconds)) > 0 { return true }
    }
  }

  /// Returns the error message in the output of a verb that failed, without the name of the verb: the line with the error,
  /// or the last line. A hint can follow the error.
  static func reason(in output: String) -> String? {
    let lines = output.split(separator: "\n").map(String.init)
    return (lines.first { errorText(in: $0) != nil } ?? lines.last).map(withoutPrefix)
  }

  /// Returns a line of the output of a verb without the name of the verb.
  static func withoutPrefix(_ line: String) -> String {
    if let text = errorText(in: line) { return text }
    guard line.hasPrefix("hearth") else { return line }
    let parts = line.split(separator: ": ", maxSplits: 1)
    return parts.count == 2 && parts[0].split(separator: " ").count <= 3 ? String(parts[1]) : line
  }

  /// Returns the text after `hearth VERB: error: `.
  private static func errorText(in line: String) -> String? {
    guard line.hasPrefix("hearth"), let mark = line.firstRange(of: ": error: ") else { return nil }
    return String(line[mark.upperBound...])
  }

  /// Waits for the end, and returns the status as `waitpid` reports it.
  func end() -> Int32 {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    return status
  }

  private static func failure(_ operation: String, _ code: Int32) -> CommandFailure {
    .failed("cannot start a process: \(operation): \(String(cString: strerror(code)))")
  }
}
