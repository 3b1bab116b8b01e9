import Replication
import Transport

/// Asks the owner how far the log is, on the connection that a loop has to it. Belongs to the loop.
///
/// So neither a question nor its answer changes the thread, in contrast to those of a ``LogFollower``.
final class IndexLine: IndexSource {
  private let relay: Relay
  private let loop: EventLoop
  private var isWatching = false
  private var stream: LoopStream?
  private var received: [UInt8] = []
  /// The questions without an answer, in the order of their numbers.
  private var asked: [(number: UInt64, done: (ReadIndex?) -> Void)] = []
  private var lastNumber: UInt64 = 0
  /// The time before which no stream is opened, because the last one ended. An owner of an earlier version refuses it.
  private var restsUntil = Int.min

  private static let restMilliseconds = 250
  /// The time after which a stream with a question without an answer is closed: other responses may be in its way.
  private static let patienceMilliseconds = 500

  /// Creates a line that connects with the first question.
  init(_ relay: Relay, on loop: EventLoop) {
    self.relay = relay
    self.loop = loop
  }

  func ask(_ done: @escaping (ReadIndex?) -> Void) -> Bool {
    guard let stream = stream ?? open() else { return false }
    lastNumber += 1
    asked.append((lastNumber, done))
    stream.send(withUnsafeBytes(of: lastNumber.littleEndian) { Array($0) })
    if asked.count == 1 { watch() }
    return true
  }

  /// Closes the stream if the first question gets no answer in time.
  private func watch() {
    guard !isWatching else { return }
    isWatching = true
    let (number, stream) = (asked.first?.number, stream)
    loop.schedule(afterMilliseconds: Self.patienceMilliseconds) { [weak self] in
      guard let self else { return }
      isWatching = false
      if let number, asked.first?.number == number { stream?.close() } else if !asked.isEmpty { watch() }
    }
  }

  private func open() -> LoopStream? {
    guard loop.nowMilliseconds >= restsUntil else { return nil }
    received = []
    stream = relay.open(
      ReadIndexHandler.path, on: loop, receive: { [weak self] in self?.received($0) },
      end: { [weak self] in self?.ended() })
    return stream
  }

  private func received(_ bytes: UnsafeRawBufferPointer) {
    received.append(contentsOf: bytes)
    while received.count >= ReadIndex.answerBytes {
      let (number, index) = received.withUnsafeBytes(ReadIndex.decode)
      received.removeFirst(ReadIndex.answerBytes)
      // An owner answers in order.
      guard let first = asked.first, first.number == number else {
        stream?.close()
        return
      }
      asked.removeFirst()
      first.done(index)
    }
  }

  private func ended() {
    stream = nil
    restsUntil = loop.nowMilliseconds + Self.restMilliseconds
    let unanswered = asked
    asked = []
    for question in unanswered { question.done(nil) }
  }
}
