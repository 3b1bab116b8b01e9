import Glibc

/// A check of data in a child process. Damage can crash the process that reads it, or keep it in an endless loop,
/// because LMDB follows page numbers without checking them.
///
/// The child prints lines: `progress N`, `problem TEXT`, and at the end `done` with its counts.
struct ChildCheck {
  /// The child's counts, in its order; empty if it did not finish.
  private(set) var counts: [Int] = []
  /// The problems that were found; empty if the data are intact.
  private(set) var problems: [String] = []
  private var isDone = false

  /// The seconds without output after which the child is assumed to be in an endless loop.
  private static let silenceSecondsMax = 120

  private init() {}

  /// Runs a verb of this program on a path and waits for its end. `progress` receives each number that it prints.
  /// - Throws: ``CommandFailure`` if no child process can be started.
  static func run(
    _ verb: Command, on path: String, of owner: String? = nil, progress: (Int) -> Void
  ) throws -> ChildCheck {
    var check = ChildCheck()
    let (pid, input) = try start([verb.name, "--", path] + (owner.map { [$0] } ?? []))
    let isSilent = check.read(input, progress)
    close(input)
    if isSilent { kill(pid, SIGKILL) }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    check.record(status, isSilent: isSilent)
    return check
  }

  /// Prints a problem, in the child process.
  static func print(problem: String) {
    // Each problem takes one line. The rest of the text stays unchanged, for `--json`.
    let line = problem.utf8.map { $0 == UInt8(ascii: "\n") ? UInt8(ascii: " ") : $0 }
    Terminal.output.write("problem \(String(decoding: line, as: UTF8.self))\n")
  }

  /// Prints problems, and how many of `count` were not kept.
  static func print(problems: [String], count: Int) {
    for problem in problems { print(problem: problem) }
    if count > problems.count { print(problem: "and \(count - problems.count) more") }
  }

  private mutating func record(_ status: Int32, isSilent: Bool) {
    let signal = status & 0x7F
    if isSilent {
      problems.append("reading it does not end: its pages refer to each other in a cycle")
    } else if signal != 0 {
      let name = signal == SIGBUS ? "SIGBUS" : signal == SIGSEGV ? "SIGSEGV" : "signal \(signal)"
      problems.append("reading it crashes the process (\(name)): its pages refer to places outside the file")
    } else if !isDone, problems.isEmpty {
      problems.append("it could not be read to the end (exit code \((status >> 8) & 0xFF))")
    }
  }

  /// Reads the child's output to its end. Returns whether the child stopped printing without ending.
  private mutating func read(_ input: Int32, _ progress: (Int) -> Void) -> Bool {
    var buffer = [UInt8](repeating: 0, count: 16 << 10)
    var line: [UInt8] = []
    while true {
      var entry = pollfd(fd: input, events: Int16(POLLIN), revents: 0)
      let ready = poll(&entry, 1, Int32(Self.silenceSecondsMax * 1000))
      if ready == 0 { return true }
      let count = Glibc.read(input, &buffer, buffer.count)
      if count < 0, errno == EINTR || errno == EAGAIN { continue }
      guard count > 0 else { return false }
      for byte in buffer[..<count] {
        if byte == UInt8(ascii: "\n") {
          take(String(decoding: line, as: UTF8.self), progress)
          line.removeAll()
        } else {
          line.append(byte)
        }
      }
    }
  }

  private mutating func take(_ line: String, _ progress: (Int) -> Void) {
    let words = line.split(separator: " ", maxSplits: 1).map(String.init)
    guard words.count == 2 else { return }
    switch words[0] {
    case "progress": progress(Int(words[1]) ?? 0)
    case "problem": problems.append(words[1])
    case "done":
      isDone = true
      counts = words[1].split(separator: " ").compactMap { Int($0) }
    default: break
    }
  }

  private static func start(_ arguments: [String]) throws -> (pid: pid_t, input: Int32) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw failure("pipe", errno) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    for end in ends { posix_spawn_file_actions_addclose(&actions, end) }
    // Discard standard error: the last words of a crashing child would only confuse.
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    var words: [UnsafeMutablePointer<CChar>?] = (["hearth"] + arguments).map { strdup($0) }
    defer { for word in words { free(word) } }
    words.append(nil)
    var pid: pid_t = 0
    let code = posix_spawn(&pid, "/proc/self/exe", &actions, nil, words, environ)
    close(ends[1])
    guard code == 0 else {
      close(ends[0])
      throw failure("posix_spawn", code)
    }
    return (pid, ends[0])
  }

  private static func failure(_ operation: String, _ code: Int32) -> CommandFailure {
    .failed("the check cannot start a process: \(operation): \(String(cString: strerror(code)))")
  }
}
