import Synchronization
import Transport

/// Asks the other nodes which one owns the project, while PostgreSQL does not answer this node. Otherwise a node that is cut
/// off from PostgreSQL alone could pass no request to an owner that it has not seen there.
///
/// Only the owner itself answers (``LogStreamHandler/ownerPath``), while its lease holds. One round is under way at a time;
/// each question ends with its connection, which takes at most a few seconds.
final class OwnerSearch: Sendable {
  private let client: NodeClient
  private let found: @Sendable (NodeAddress, _ epoch: UInt64) -> Void
  /// The questions without an answer.
  private let unanswered = Mutex(0)

  /// Creates a search. `found` is called on the thread of the client, and must return quickly.
  init(_ client: NodeClient, found: @escaping @Sendable (NodeAddress, _ epoch: UInt64) -> Void) {
    self.client = client
    self.found = found
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
    let answer = OwnerAnswer()
    let stream = client.makeStream(
      receive: { answer.append($0) },
      end: { [weak self] in
        guard let self else { return }
        unanswered.withLock { $0 -= 1 }
        if let epoch = answer.epoch { found(address, epoch) }
      })
    client.open(stream, LogStreamHandler.ownerPath, at: address)
  }
}

/// The bytes of an answer.
private final class OwnerAnswer: Sendable {
  private let bytes = Mutex<[UInt8]>([])

  func append(_ more: UnsafeRawBufferPointer) { bytes.withLock { if $0.count < 8 { $0.append(contentsOf: more) } } }

  /// The epoch, if the answer is complete.
  var epoch: UInt64? {
    bytes.withLock { $0.count == 8 ? $0.reversed().reduce(0) { $0 << 8 | UInt64($1) } : nil }
  }
}
