import Glibc

/// Standard output or standard error.
struct Terminal: Sendable {
  /// Standard output: what was asked for.
  static let output = Terminal(descriptor: STDOUT_FILENO)
  /// Standard error: errors and progress.
  static let error = Terminal(descriptor: STDERR_FILENO)

  let descriptor: Int32

  /// Whether a person is likely to look at it.
  var isTerminal: Bool { isatty(descriptor) == 1 }

  /// The columns of the terminal; `nil` where there is none.
  var columns: Int? {
    var size = winsize()
    guard isTerminal, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// Whether colours are welcome (https://no-color.org).
  private var hasColour: Bool {
    guard isTerminal, getenv("NO_COLOR") == nil else { return false }
    return getenv("TERM").map { String(cString: $0) != "dumb" } ?? false
  }

  /// The text in red on a terminal.
  func red(_ text: String) -> String { hasColour ? "\u{1B}[31m\(text)\u{1B}[0m" : text }

  /// The text in bold on a terminal.
  func bold(_ text: String) -> String { hasColour ? "\u{1B}[1m\(text)\u{1B}[0m" : text }

  /// The text in a fainter colour on a terminal.
  func faint(_ text: String) -> String { hasColour ? "\u{1B}[2m\(text)\u{1B}[0m" : text }

  /// Writes a text at once.
  func write(_ text: String) { write(Array(text.utf8)) }

  /// Writes bytes at once. A reader that went away ends the program, as it ends other tools of a pipe.
  func write(_ bytes: [UInt8]) {
    do throws(WriteFailure) {
      try writeAll(bytes)
    } catch {
      exit(error.code == EPIPE ? 0 : ExitCode.failure)
    }
  }

  /// Why a descriptor does not take bytes.
  struct WriteFailure: Error { var code: Int32 }

  /// Writes bytes at once.
  func writeAll(_ bytes: [UInt8]) throws(WriteFailure) {
    var offset = 0
    while offset < bytes.count {
      let count = bytes.withUnsafeBytes { buffer in
        Glibc.write(descriptor, buffer.baseAddress.map { $0 + offset }, buffer.count - offset)
      }
      if count < 0 {
        if errno == EINTR { continue }
        throw WriteFailure(code: errno)
      }
      offset += count
    }
  }

  /// Asks a question that is answered by `y`; on standard error, answered on standard input.
  static func confirm(_ question: String) -> Bool {
    error.write("\(question) [y/N] ")
    guard let answer = readLine(strippingNewline: true) else { return false }
    return ["y", "yes"].contains(answer.lowercased())
  }
}

/// One line on standard error that is written over and over; nothing where that is no terminal.
struct Progress {
  private let isShown: Bool
  private var lastShown: Int64 = 0
  private let started = Progress.now()
  private var hasLine = false

  /// Starts; `isQuiet` keeps it silent.
  init(isQuiet: Bool = false) { isShown = !isQuiet && Terminal.error.isTerminal }

  /// Shows how far it is, at most ten times a second. `what` such as `documents imported`.
  mutating func show(_ count: Int, _ what: String) {
    let passed = Self.now() - started
    show("\(count) \(what), \(passed > 0 ? count * 1000 / Int(passed) : 0)/s")
  }

  /// Shows a text, at most ten times a second.
  mutating func show(_ text: @autoclosure () -> String) {
    guard isShown else { return }
    let now = Self.now()
    guard now - lastShown > 100 else { return }
    lastShown = now
    showNow(text())
  }

  /// Shows a text at once, on one line: what the terminal has no room for is cut.
  mutating func showNow(_ text: @autoclosure () -> String) {
    guard isShown else { return }
    hasLine = true
    let line = TerminalText.line(text())
    Terminal.error.write("\r\u{1B}[K\(TextWidth.cut(line, to: max(1, (Terminal.error.columns ?? 80) - 1)))")
  }

  /// Removes the line.
  mutating func clear() {
    if hasLine { Terminal.error.write("\r\u{1B}[K") }
    hasLine = false
  }

  /// Seconds since it was started.
  var seconds: Double { Double(Self.now() - started) / 1000 }

  /// Milliseconds of a clock that only goes forward.
  static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
