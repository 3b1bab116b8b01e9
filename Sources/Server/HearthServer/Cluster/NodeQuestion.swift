import Synchronization
import Transport

/// A question that a node asks the others, such as which one owns the project. One round is under way at a time; each question
/// ends with its connection, which takes at most a few seconds.
final class NodeQuestion: Sendable {
  private let client: NodeClient
  private let path: String
  private let answered: @Sendable (NodeAddress, _ answer: [UInt8]) -> Void
  /// The questions without an answer.
  private let unanswered = Mutex(0)

  /// Creates a question with a path of the nodes. `answered` is called with each answer that is not empty, on the thread of the
  /// client, and must return quickly.
  init(
    _ path: String, by client: NodeClient, answered: @escaping @Sendable (NodeAddress, _ answer: [UInt8]) -> Void
  ) {
    self.client = client
    self.path = path
    self.answered = answered
  }

  /// Asks the nodes at some addresses, unless earlier questions are under way.
  func ask(_ addresses: [NodeAddress]) {
    let isBegun = unanswered.withLock { unanswered in
      guard unanswered == 0 else { return false }
      unanswered = addresses.count
      return true
    }
    guard isBegun else { return }
    for address in addresses { ask(address) }
  }

  private func ask(_ address: NodeAddress) {
    let answer = NodeAnswer()
    let stream = client.makeStream(
      receive: { answer.append($0) },
      end: { [weak self] in
        guard let self else { return }
        unanswered.withLock { $0 -= 1 }
        if !answer.bytes.isEmpty { answered(address, answer.bytes) }
      })
    client.open(stream, path, at: address)
  }
}

/// The bytes of an answer.
private final class NodeAnswer: Sendable {
  private static let bytesMax = 512

  private let received = Mutex<[UInt8]>([])

  func append(_ more: UnsafeRawBufferPointer) {
    received.withLock { received in
      received.append(contentsOf: more.prefix(Self.bytesMax - received.count))
    }
  }

  var bytes: [UInt8] { received.withLock { $0 } }
}
