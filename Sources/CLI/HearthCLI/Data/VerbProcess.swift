import Glibc

/// A process that runs a verb of this program.
struct VerbProcess {
  let pid: pid_t
  /// The descriptor of its output.
  let output: Int32
  /// The most bytes of output that ``wait()`` returns: the last ones.
  private static let outputBytesMax = 64 << 10

  /// Starts a process with the words of a command line. Its standard error is part of its output, or is discarded.
  /// - Throws: ``CommandFailure`` if no process can be started.
  init(_ words: [String], takesErrors: Bool = false) throws {
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
    let code = posix_spawn(&pid, "/proc/self/exe", &actions, &attributes, arguments, environ)
    close(ends[1])
    guard code == 0 else {
      close(ends[0])
      throw Self.failure("posix_spawn", code)
    }
    (self.pid, output) = (pid, ends[0])
  }

  /// Reads the output and waits for the end. Returns the end of the output, and the status as `waitpid` reports it.
  func wait() -> (output: String, status: Int32) {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    while true {
      let count = read(output, &buffer, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      bytes += buffer[..<count]
      if bytes.count > Self.outputBytesMax { bytes.removeFirst(bytes.count - Self.outputBytesMax) }
    }
    close(output)
    return (String(decoding: bytes, as: UTF8.self), end())
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
