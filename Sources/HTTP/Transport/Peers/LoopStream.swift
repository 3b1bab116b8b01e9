/// A request of this node itself to another one, with a body and a response of any length. Belongs to the loop of its
/// connection, which other requests may share. Any thread can use a ``NodeStream``.
package final class LoopStream: PeerStreamOwner {
  private let connection: PeerConnection
  private let consumesAtOnce: Bool
  private let receive: (UnsafeRawBufferPointer) -> Void
  private var end: (() -> Void)?
  private var stream: PeerStream?
  private var unsent: [UInt8] = []
  private var received: [UInt8] = []

  /// Creates a request that is not begun. Without `consumesAtOnce`, the peer sends at most 256 KiB that ``consumed(_:)`` has
  /// not counted.
  init(
    _ connection: PeerConnection, consumesAtOnce: Bool = true, receive: @escaping (UnsafeRawBufferPointer) -> Void,
    end: @escaping () -> Void
  ) {
    self.connection = connection
    self.consumesAtOnce = consumesAtOnce
    self.receive = receive
    self.end = end
  }

  /// Sends the head. Returns `false` if the connection takes no request.
  func start(_ path: String) -> Bool {
    stream = connection.session.submit(RelayedHead(ofNode: path), hasBody: true, owner: self)
    guard stream != nil else { return false }
    connection.sendSoon()
    return true
  }

  /// Sends more of the body. The caller bounds the bytes that the other node has not answered.
  package func send(_ bytes: [UInt8]) {
    unsent += bytes
    guard let stream, stream.isDeferred else { return }
    connection.session.resumeUpload(stream)
    connection.sendSoon()
  }

  /// Lets the peer send as many bytes more.
  func consumed(_ count: Int) {
    guard let stream else { return }
    connection.session.widen(stream, by: count)
    connection.sendSoon()
  }

  /// Ends the request. Its end is reported, unless it was before.
  package func close() {
    if let stream {
      connection.session.cancel(stream)
      connection.sendSoon()
    }
    ended()
  }

  func nextUpload(into space: UnsafeMutableRawBufferPointer) -> (count: Int, isLast: Bool) {
    let count = min(space.count, unsent.count)
    unsent.withUnsafeBytes { space.copyMemory(from: UnsafeRawBufferPointer(rebasing: $0[..<count])) }
    unsent.removeFirst(count)
    return (count, false)
  }

  func responseAdvanced(_ stream: PeerStream) {
    guard stream === self.stream, stream.hasHead else { return }
    guard stream.status == 200 else { return close() }
    received.removeAll(keepingCapacity: true)
    let count = stream.take(.max, into: &received)
    if count > 0 {
      if consumesAtOnce { connection.session.widen(stream, by: count) }
      received.withUnsafeBytes(receive)
    }
    if stream.isEnded { ended() }
  }

  func streamFailed(_ stream: PeerStream, _ failure: PeerFailure) { ended() }

  private func ended() {
    stream = nil
    let action = end
    end = nil
    action?()
  }
}
