import Glibc

/// A check of data by a child process, because damage may kill whoever reads it: LMDB follows page numbers out of its
/// map, or round in circles.
///
/// The child prints lines: `progress N`, `problem TEXT`, and at the end `done` with its counts.
struct ChildCheck {
  /// What the child counted, in its order; empty where it did not come to its end.
  private(set) var counts: [Int] = []
  /// What is wrong; empty where all is well.
  private(set) var problems: [String] = []
  private var isDone = false

  /// Seconds without a sign of life after which the child is taken to go round in circles.
  private static let silenceSecondsMax = 120

  private init() {}

  /// Runs a verb of this program on a path and waits for its end; `progress` is told the last number it printed.
  /// - Throws: ``CommandFailure`` when no child can be started.
  static func run(_ verb: Command, on path: String, progress: (Int) -> Void) throws -> ChildCheck {
    var check = ChildCheck()
    let (pid, input) = try start([verb.name, "--", path])
    let isSilent = check.read(input, progress)
    close(input)
    if isSilent { kill(pid, SIGKILL) }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    check.record(status, isSilent: isSilent)
    return check
  }

  /// Prints a problem as the child does.
  static func print(problem: String) {
    // A line each: nothing else of it changes, for `--json`.
    let line = problem.utf8.map { $0 == UInt8(ascii: "\n") ? UInt8(ascii: " ") : $0 }
    Terminal.output.write("problem \(String(decoding: line, as: UTF8.self))\n")
  }

  /// Prints problems, the last of which are only counted.
  static func print(problems: [String], count: Int) {
    for problem in problems { print(problem: problem) }
    if count > problems.count { print(problem: "and \(count - problems.count) more") }
  }

  private mutating func record(_ status: Int32, isSilent: Bool) {
    let signal = status & 0x7F
    if isSilent {
      problems.append("reading it does not come to an end: pages lead to each other in a circle")
    } else if signal != 0 {
      let name = signal == SIGBUS ? "SIGBUS" : signal == SIGSEGV ? "SIGSEGV" : "signal \(signal)"
      problems.append("reading it ends the process (\(name)): pages lead out of the file")
    } else if !isDone, problems.isEmpty {
      problems.append("it could not be read to the end (exit code \((status >> 8) & 0xFF))")
    }
  }

  /// Reads what the child prints, to its end; returns whether it fell silent.
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
    // Only the pipe speaks: what a dying child says on standard error would puzzle people.
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
    .failed("no process can be started for the check: \(operation): \(String(cString: strerror(code)))")
  }
}
