import Glibc
import WebClient
import WireFormat

extension ServerClient {
  /// The seconds to wait before the next request for the feed. They double with each failure.
  private static let waits: ClosedRange<Double> = 0.25...15

  /// Follows a feed and passes each message to `take`, as its line and parsed. If the connection breaks, it resumes
  /// after the last token.
  /// - Throws: ``CommandFailure`` if the first connection fails or the server rejects permanently, or the error of
  ///   `take`.
  func follow(
    _ request: FeedRequest, since token: String?, _ take: (_ line: [UInt8], _ root: JSONValue) throws -> Void
  ) throws {
    var token = token
    var wait = Self.waits.lowerBound
    var hasResponded = false
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
              hasResponded = true
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
        guard hasResponded, Self.isTemporary(error) else { throw error }
        if Terminal.error.isTerminal {
          let reason = TerminalText.line(CommandFailure(error).message)
          Terminal.error.write(Terminal.error.faint("\(reason); retrying\n"))
        }
      }
      usleep(UInt32(wait * 1_000_000))
      wait = min(wait * 2, Self.waits.upperBound)
    }
  }

  /// Ends the stream of a feed that is complete.
  private struct FeedOver: Error {}

  /// Returns whether the same request may succeed later.
  private static func isTemporary(_ error: any Error) -> Bool {
    if error is HTTPClientError { return true }
    return (error as? CommandFailure)?.isTemporary ?? false
  }

  /// Throws the error that a message contains, if any.
  private static func checkForError(_ root: JSONValue, _ address: String) throws {
    if let error = root.member("error") {
      var failure = CommandFailure.failed(
        "\(address) ended the feed: \(error.member("status")?.text ?? ""): \(error.member("message")?.text ?? "")")
      failure.isTemporary = CommandFailure.isTemporary(httpStatus: error.member("code")?.integer ?? 0)
      throw failure
    }
    guard let cause = root.member("targetChange")?.member("cause") else { return }
    var failure = CommandFailure.failed("\(address) ended the feed: \(cause.member("message")?.text ?? "")")
    // Cancelled, unknown, deadline exceeded, resource exhausted, aborted, internal, unavailable.
    failure.isTemporary = [1, 2, 4, 8, 10, 13, 14].contains(cause.member("code")?.integer ?? 0)
    throw failure
  }
}

/// Splits a text that arrives in pieces into lines. Memory: one line at a time.
struct FeedLines {
  private var line: [UInt8] = []

  /// Passes every line that a piece completes to `body`, except empty ones.
  /// - Throws: ``CommandFailure`` if a line is too long, or the error of `body`.
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
