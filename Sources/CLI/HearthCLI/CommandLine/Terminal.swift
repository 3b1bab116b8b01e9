import Glibc

/// Standard output or standard error.
struct Terminal: Sendable {
  /// Standard output, for results.
  static let output = Terminal(descriptor: STDOUT_FILENO)
  /// Standard error, for errors and progress.
  static let error = Terminal(descriptor: STDERR_FILENO)

  let descriptor: Int32

  /// Whether it is a terminal, so that a person probably reads the text.
  var isTerminal: Bool { isatty(descriptor) == 1 }

  /// The number of columns of the terminal, or `nil` if it is not a terminal.
  var columns: Int? {
    var size = winsize()
    guard isTerminal, ioctl(descriptor, UInt(TIOCGWINSZ), &size) == 0, size.ws_col > 0 else { return nil }
    return Int(size.ws_col)
  }

  /// Returns the text, in red if the output has colors: errors.
  func red(_ text: String) -> String { styled(text, "31") }

  /// Returns the text, in green if the output has colors: success.
  func green(_ text: String) -> String { styled(text, "32") }

  /// Returns the text, in yellow if the output has colors: warnings.
  func yellow(_ text: String) -> String { styled(text, "33") }

  /// Returns the text, in cyan if the output has colors: remarks.
  func cyan(_ text: String) -> String { styled(text, "36") }

  /// Returns the text, in bold if the output has colors.
  func bold(_ text: String) -> String { styled(text, "1") }

  /// Returns the text, in a fainter color if the output has colors.
  func faint(_ text: String) -> String { styled(text, "2") }

  private func styled(_ text: String, _ code: String) -> String {
    ColorChoice.current.isOn(isTerminal: isTerminal) ? "\u{1B}[\(code)m\(text)\u{1B}[0m" : text
  }

  /// Writes a text, unbuffered.
  func write(_ text: String) { write(Array(text.utf8)) }

  /// Writes bytes, unbuffered. If the reader has closed the pipe, the program exits with success. After any other
  /// write error it exits with failure.
  func write(_ bytes: [UInt8]) {
    do throws(WriteFailure) {
      try writeAll(bytes)
    } catch {
      exit(error.code == EPIPE ? 0 : ExitCode.failure)
    }
  }

  /// The error of a write to a descriptor; `code` is its `errno`.
  struct WriteFailure: Error { var code: Int32 }

  /// Writes bytes, unbuffered.
  /// - Throws: ``WriteFailure`` if the descriptor does not accept them.
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

  /// Asks a question on standard error, reads a line from standard input, and returns whether it is `y` or `yes`.
  static func confirm(_ question: String) -> Bool {
    error.write("\(question) [y/N] ")
    guard let answer = readLine(strippingNewline: true) else { return false }
    return ["y", "yes"].contains(answer.lowercased())
  }
}

/// A line of progress on standard error that is overwritten by the next one. If standard error is not a terminal, it
/// shows nothing.
struct Progress {
  /// Whether the line is visible.
  let isShown: Bool
  private var lastShown: Int64 = 0
  private var started = Progress.now()
  private var hasLine = false

  /// Starts the clock; shows nothing if `isQuiet`.
  init(isQuiet: Bool = false) { isShown = !isQuiet && Terminal.error.isTerminal }

  /// Shows a count and its rate, at most ten times a second. `what` is the unit, such as `documents imported`. If
  /// `fraction` is known, the part of the work that is done, it also shows that and the time left.
  mutating func show(_ count: Int, _ what: String, fraction: @autoclosure () -> Double? = nil) {
    let passed = Self.now() - started
    show(ProgressText.line(count, what, fraction: fraction(), milliseconds: Int(passed)))
  }

  /// Starts the clock again, for another pass.
  mutating func restart() { started = Self.now() }

  /// Shows a text, at most ten times a second.
  mutating func show(_ text: @autoclosure () -> String) {
    guard isShown else { return }
    let now = Self.now()
    guard now - lastShown > 100 else { return }
    lastShown = now
    showNow(text())
  }

  /// Shows a text immediately, cut to the width of the terminal.
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

  /// The seconds since the start.
  var seconds: Double { Double(Self.now() - started) / 1000 }

  /// Returns the milliseconds of the monotonic clock.
  static func now() -> Int64 {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }
}
