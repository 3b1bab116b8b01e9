import Glibc
import Transport
import WireFormat

extension ServerClient {
  /// How long to wait before the feed is asked for again, in seconds: it doubles from one failure to the next.
  private static let waits: ClosedRange<Double> = 0.25...15

  /// Follows a feed and hands on its messages, each as its line and parsed. Where the connection breaks it goes on
  /// behind the last token.
  /// - Throws: ``CommandFailure`` where the server cannot be reached to begin with, or refuses for good; and what
  ///   `take` throws.
  func follow(
    _ request: FeedRequest, since token: String?, _ take: (_ line: [UInt8], _ root: JSONValue) throws -> Void
  ) throws {
    var token = token
    var wait = Self.waits.lowerBound
    var hasHeard = false
    while true {
      var isOver = false
      do {
        let message = try request.message(since: token)
        var lines = FeedLines()
        try stream(message.method, message.target, message.body) { piece in
          try lines.feed(piece) { line in
            try parse(line) { root in
              try Self.checkForError(root, address)
              try take(line, root)
              hasHeard = true
              wait = Self.waits.lowerBound
              let change = root.member("targetChange") ?? root
              token = change.member("resumeToken")?.text ?? token
              isOver = isOver || request.isOver(root)
            }
            if isOver { throw FeedOver() }
          }
        }
        if request.isOnce { return }
      } catch is FeedOver {
        return
      } catch {
        guard hasHeard, Self.mayPass(error) else { throw error }
        if Terminal.error.isTerminal {
          let reason = TerminalText.line(CommandFailure(error).message)
          Terminal.error.write(Terminal.error.faint("\(reason); trying again\n"))
        }
      }
      usleep(UInt32(wait * 1_000_000))
      wait = min(wait * 2, Self.waits.upperBound)
    }
  }

  /// Everything was told.
  private struct FeedOver: Error {}

  /// Whether asking again later may help.
  private static func mayPass(_ error: any Error) -> Bool {
    if error is HTTPClientError { return true }
    return (error as? CommandFailure)?.mayPass ?? false
  }

  /// Throws what a message says went wrong.
  private static func checkForError(_ root: JSONValue, _ address: String) throws {
    if let error = root.member("error") {
      var failure = CommandFailure.failed(
        "\(address) broke off: \(error.member("status")?.text ?? ""): \(error.member("message")?.text ?? "")")
      failure.mayPass = CommandFailure.mayPass(httpStatus: error.member("code")?.integer ?? 0)
      throw failure
    }
    guard let cause = root.member("targetChange")?.member("cause") else { return }
    var failure = CommandFailure.failed("\(address) broke off: \(cause.member("message")?.text ?? "")")
    // Cancelled, unknown, deadline exceeded, resource exhausted, aborted, internal, unavailable.
    failure.mayPass = [1, 2, 4, 8, 10, 13, 14].contains(cause.member("code")?.integer ?? 0)
    throw failure
  }
}

/// Cuts lines out of a text that arrives in pieces, so that memory holds one line at a time.
struct FeedLines {
  private var line: [UInt8] = []

  /// Hands on every line that a piece completes; empty ones are left out.
  /// - Throws: ``CommandFailure`` for a line that is too long, and what `body` throws.
  mutating func feed(_ piece: [UInt8], _ body: ([UInt8]) throws -> Void) throws {
    var rest = piece[...]
    while let end = rest.firstIndex(of: UInt8(ascii: "\n")) {
      line += rest[..<end]
      rest = rest[(end + 1)...]
      guard !line.isEmpty else { continue }
      defer { line.removeAll(keepingCapacity: line.capacity <= 1 << 20) }
      try body(line)
    }
    line += rest
    guard line.count <= ArrayElements.bytesMax else {
      throw CommandFailure.failed("the server sent a message longer than \(ArrayElements.bytesMax) bytes")
    }
  }
}
