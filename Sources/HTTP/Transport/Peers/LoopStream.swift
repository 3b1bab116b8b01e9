/// A request of this node itself on the connection of a ``Relay`` on one loop, with a body and a response of any length. In
/// contrast to a ``NodeStream``, no other thread is involved. Belongs to the loop.
package final class LoopStream: PeerStreamOwner {
  private let connection: PeerConnection
  private let receive: (UnsafeRawBufferPointer) -> Void
  private var end: (() -> Void)?
  private var stream: PeerStream?
  private var unsent: [UInt8] = []
  private var received: [UInt8] = []

  init(
    _ connection: PeerConnection, receive: @escaping (UnsafeRawBufferPointer) -> Void, end: @escaping () -> Void
  ) {
    self.connection = connection
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
      connection.session.widen(stream, by: count)
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
