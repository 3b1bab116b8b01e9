import Basics
import Glibc

/// Sends mail with a shell command that reads each message from its standard input, such as `sendmail -t`.
package final class MailCommand: Sendable {
  private let command: String
  private let sender: String
  private let queue = BoundedWorkers("mail", unfinishedMax: WorkerLimits.mailsUnfinishedMax)
  private let failed: @Sendable (String) -> Void

  /// Creates a sender that runs a shell command.
  /// - Parameters:
  ///   - sender: the address of the `From` header.
  ///   - failed: called with the reason if a mail cannot be sent. The reason contains neither the recipient nor the
  ///     text.
  package init(_ command: String, sender: String, failed: @escaping @Sendable (String) -> Void = { _ in }) {
    self.command = command
    self.sender = sender
    self.failed = failed
  }

  /// Queues the mail of a code, and returns before it is sent.
  /// - Throws: ``AccountError`` `QUOTA_EXCEEDED` if too many mails are waiting.
  package func send(_ code: ActionCode) throws(AccountError) {
    let message = Array(Self.message(code, from: sender).utf8)
    let (command, failed) = (command, failed)
    guard
      queue.run({
        if let reason = Self.run(command, message) { failed("the mail command \(reason)") }
      })
    else { throw AccountError(.quotaExceeded, "Too many mails are waiting to be sent.") }
  }

  /// The message, headers first. The addresses have been validated and contain no line breaks.
  static func message(_ code: ActionCode, from sender: String) -> String {
    let (subject, text) =
      switch code.kind {
      case .resetPassword:
        ("Reset your password", "Follow this link to choose a new password:")
      case .verifyEmail: ("Verify your e-mail address", "Follow this link to verify your e-mail address:")
      case .emailSignIn: ("Sign in", "Follow this link to sign in:")
      case .verifyAndChangeEmail:
        ("Verify your new e-mail address", "Follow this link to make this the e-mail address of your account:")
      case .recoverEmail:
        ("Your e-mail address was changed", "If it was not you who changed it, follow this link to undo that:")
      }
    let recipient = code.kind == .verifyAndChangeEmail ? code.newEmail ?? code.email : code.email
    return """
      From: \(sender)
      To: \(recipient)
      Subject: \(subject)
      MIME-Version: 1.0
      Content-Type: text/plain; charset=utf-8
      Content-Transfer-Encoding: 8bit
      Auto-Submitted: auto-generated

      \(text)

      \(code.link)

      If you did not ask for this, you can ignore this message.

      """
  }

  /// Runs the command with `text` as its standard input. Returns what failed, or `nil` on success.
  private static func run(_ command: String, _ text: [UInt8]) -> String? {
    // A socket pair is created close-on-exec, so processes started concurrently do not inherit it.
    var ends: [Int32] = [-1, -1]
    guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
      return "could not get a socket for its input: \(String(cString: strerror(errno)))"
    }
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    posix_spawn_file_actions_adddup2(&actions, ends[0], STDIN_FILENO)
    defer { posix_spawn_file_actions_destroy(&actions) }
    var process: pid_t = 0
    let words: [UnsafeMutablePointer<CChar>?] = [strdup("sh"), strdup("-c"), strdup(command), nil]
    defer { words.forEach { free($0) } }
    let status = posix_spawn(&process, "/bin/sh", &actions, nil, words, environ)
    close(ends[0])
    guard status == 0 else {
      close(ends[1])
      return "could not be started: \(String(cString: strerror(status)))"
    }
    var offset = 0
    while offset < text.count {
      let count = text[offset...].withUnsafeBytes { Glibc.send(ends[1], $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL)) }
      if count > 0 { offset += count } else if errno != EINTR { break }
    }
    close(ends[1])
    return outcome(of: process)
  }

  private static func outcome(of process: pid_t) -> String? {
    var status: Int32 = 0
    // A command that hangs is killed, so the next mail can be sent.
    for _ in 0..<600 {
      let ended = waitpid(process, &status, WNOHANG)
      if ended == process { return status == 0 ? nil : "ended with status \(status >> 8)" }
      if ended < 0, errno != EINTR { return "could not be waited for: \(String(cString: strerror(errno)))" }
      usleep(50_000)
    }
    kill(process, SIGKILL)
    waitpid(process, &status, 0)
    return "did not end within 30 seconds and was killed"
  }
}
