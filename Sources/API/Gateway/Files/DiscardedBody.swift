import Transport

/// Reads a body to its end and answers then: clients that send all before they read would miss an answer in between.
final class DiscardedBody: BodySink {
  /// Longer bodies are not waited for: the answer comes at once, and ends an HTTP/1 connection.
  static let bytesMax = 16 << 20

  private let answer: () -> Void

  init(answer: @escaping () -> Void) { self.answer = answer }

  /// Has an answer given when the body is over, or at once where that would take long or nobody can tell.
  static func answering(_ request: borrowing HTTPRequest, _ answer: @escaping () -> Void) -> DiscardedBody? {
    let length = request.text("content-length").flatMap { Int($0) }
    if let length, length <= bytesMax { return DiscardedBody(answer: answer) }
    answer()
    return nil
  }

  func received(_ bytes: UnsafeRawBufferPointer) {}
  func ended() { answer() }
}
