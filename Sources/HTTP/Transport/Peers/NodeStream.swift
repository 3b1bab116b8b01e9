import Synchronization

/// A request of this node to another one. Any thread may use it.
package final class NodeStream: Sendable {
  private let loop: EventLoop
  private let receive: @Sendable (UnsafeRawBufferPointer) -> Void
  private let end: @Sendable () -> Void
  private let sender = Mutex<LoopBound<NodeStreamSender>?>(nil)

  private struct Unsent {
    var bytes: [UInt8] = []
    var isScheduled = false
  }

  private let unsent = Mutex(Unsent())

  init(
    _ loop: EventLoop, receive: @escaping @Sendable (UnsafeRawBufferPointer) -> Void,
    end: @escaping @Sendable () -> Void
  ) {
    self.loop = loop
    self.receive = receive
    self.end = end
  }

  /// Sends more of the body, or the beginning before the stream is opened. The caller bounds the bytes that the other node has
  /// not answered.
  package func send(_ bytes: [UInt8]) {
    let isFirst = unsent.withLock { unsent in
      unsent.bytes += bytes
      defer { unsent.isScheduled = true }
      return !unsent.isScheduled
    }
    guard isFirst else { return }
    loop.execute { [self] in sendUnsent() }
  }

  /// Sends the bytes that wait. Before the stream is opened, they wait for that.
  private func sendUnsent() {
    let sender = sender.withLock { $0 }?.value(on: loop)
    let bytes = unsent.withLock { unsent -> [UInt8] in
      unsent.isScheduled = false
      guard sender != nil else { return [] }
      defer { unsent.bytes = [] }
      return unsent.bytes
    }
    if !bytes.isEmpty { sender?.send(bytes) }
  }

  /// Lets the other node send as many bytes more.
  package func consumed(_ count: Int) {
    loop.execute { [self] in sender.withLock { $0 }?.value(on: loop).widen(count) }
  }

  /// Ends the request. `end` is called, unless it was before.
  package func close() {
    loop.execute { [self] in sender.withLock { $0 }?.value(on: loop).close() }
  }

  // MARK: On the loop

  /// Connects and sends the head.
  func start(_ path: String, at address: NodeAddress, _ context: TLSContext, _ parts: NodeClientParts) {
    guard let connection = PeerConnection(to: address, on: loop, context, parts.callbacks, parts.buffers) else {
      return fail()
    }
    let made = NodeStreamSender(connection, loop, receive: receive)
    made.onEnd = { [self, unowned made] in
      parts.remove(made)
      sender.withLock { $0 = nil }
      end()
    }
    parts.add(made)
    sender.withLock { $0 = LoopBound(made, to: loop) }
    made.start(path)
    sendUnsent()
  }

  /// Reports that the request could not begin.
  func fail() { end() }
}

/// The connection of a stream. Belongs to its loop.
final class NodeStreamSender: PeerStreamOwner {
  private let connection: PeerConnection
  private let loop: EventLoop
  private let receive: @Sendable (UnsafeRawBufferPointer) -> Void
  /// Called once, when the request has ended.
  var onEnd: (() -> Void)?
  private var stream: PeerStream?
  private var unsent: [UInt8] = []
  private var received: [UInt8] = []

  init(
    _ connection: PeerConnection, _ loop: EventLoop, receive: @escaping @Sendable (UnsafeRawBufferPointer) -> Void
  ) {
    self.connection = connection
    self.loop = loop
    self.receive = receive
  }

  func start(_ path: String) {
    connection.onEnd = { [weak self] _ in self?.ended() }
    stream = connection.session.submit(RelayedHead(ofNode: path), hasBody: true, owner: self)
    guard stream != nil else { return close() }
    tickLater()
    connection.start()
  }

  func send(_ bytes: [UInt8]) {
    unsent += bytes
    guard let stream, stream.isDeferred else { return }
    connection.session.resumeUpload(stream)
    connection.sendSoon()
  }

  func widen(_ count: Int) {
    guard let stream else { return }
    connection.session.widen(stream, by: count)
    connection.sendSoon()
  }

  func close() { connection.close() }

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
    if stream.take(.max, into: &received) > 0 { received.withUnsafeBytes(receive) }
    if stream.isEnded { close() }
  }

  func streamFailed(_ stream: PeerStream, _ failure: PeerFailure) { close() }

  private func tickLater() {
    loop.schedule(afterMilliseconds: EventLoop.sweepMilliseconds) { [weak self] in
      guard let self, onEnd != nil else { return }
      connection.tick()
      tickLater()
    }
  }

  private func ended() {
    stream = nil
    let action = onEnd
    onEnd = nil
    action?()
  }
}
