import DocumentModel
import Glibc

/// The check of one data file, done by a child process, because damage may kill whoever reads it: LMDB follows page
/// numbers out of its map, or round in circles.
struct FileCheck {
  /// What is counted.
  enum Count: String, CaseIterable { case documents, collections, indexEntries, history, changes }

  let id: DatabaseID
  private(set) var counts: [Count: Int] = [:]
  /// What is wrong; empty where all is well.
  private(set) var problems: [String] = []
  private var isDone = false

  /// Seconds without a sign of life after which the child is taken to go round in circles.
  private static let silenceSecondsMax = 120

  private init(_ id: DatabaseID) { self.id = id }

  /// Runs the child and waits for its end; `progress` is told the rows read so far.
  /// - Throws: ``CommandFailure`` when no child can be started.
  static func run(_ id: DatabaseID, file: String, progress: (Int) -> Void) throws -> FileCheck {
    var check = FileCheck(id)
    let (pid, input) = try start(file)
    let isSilent = check.read(input, progress)
    close(input)
    if isSilent { kill(pid, SIGKILL) }
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    check.judge(status, isSilent: isSilent)
    return check
  }

  private mutating func judge(_ status: Int32, isSilent: Bool) {
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
      for (count, number) in zip(Count.allCases, words[1].split(separator: " ")) { counts[count] = Int(number) }
    default: break
    }
  }

  private static func start(_ file: String) throws -> (pid: pid_t, input: Int32) {
    var ends: [Int32] = [0, 0]
    guard pipe(&ends) == 0 else { throw failure("pipe", errno) }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO)
    for end in ends { posix_spawn_file_actions_addclose(&actions, end) }
    // Only the pipe speaks: what a dying child says on standard error would puzzle people.
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0)
    let command: [String] = ["hearth", Command.checkFile.name, "--", file]
    var words: [UnsafeMutablePointer<CChar>?] = command.map { strdup($0) }
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
