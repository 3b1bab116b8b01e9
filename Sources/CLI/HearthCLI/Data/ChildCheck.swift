import Glibc

/// A check of data in a child process. Damage can crash the process that reads it, or keep it in an endless loop,
/// because LMDB follows page numbers without checking them.
///
/// The child prints lines: `total N` with the number of steps if it is known, `progress N`, `problem TEXT`, and at the
/// end `done` with its counts.
struct ChildCheck {
  /// The child's counts, in its order; empty if it did not finish.
  private(set) var counts: [Int] = []
  /// The problems that were found; empty if the data are intact.
  private(set) var problems: [String] = []
  private var isDone = false
  private var total: Int?

  /// The seconds without output after which the child is assumed to be in an endless loop.
  private static let silenceSecondsMax = 120

  private init() {}

  /// Runs a verb of this program on a path and waits for its end. `progress` receives each number that it prints, and
  /// the total if it is known.
  /// - Throws: ``CommandFailure`` if no child process can be started.
  static func run(
    _ verb: Command, on path: String, of owner: String? = nil, progress: (Int, Int?) -> Void
  ) throws -> ChildCheck {
    var check = ChildCheck()
    // The last words of a crashing process would only confuse, so its standard error is discarded.
    let process = try VerbProcess([verb.name, "--", path] + (owner.map { [$0] } ?? []))
    let isSilent = check.read(process.output, progress)
    close(process.output)
    if isSilent { kill(process.pid, SIGKILL) }
    check.record(process.end(), isSilent: isSilent)
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
  private mutating func read(_ input: Int32, _ progress: (Int, Int?) -> Void) -> Bool {
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

  private mutating func take(_ line: String, _ progress: (Int, Int?) -> Void) {
    let words = line.split(separator: " ", maxSplits: 1).map(String.init)
    guard words.count == 2 else { return }
    switch words[0] {
    case "total": total = Int(words[1]).flatMap { $0 > 0 ? $0 : nil }
    case "progress": progress(Int(words[1]) ?? 0, total)
    case "problem": problems.append(words[1])
    case "done":
      isDone = true
      counts = words[1].split(separator: " ").compactMap { Int($0) }
    default: break
    }
  }
}
