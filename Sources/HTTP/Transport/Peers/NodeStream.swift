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

/// A stream with a connection of its own. Belongs to its loop.
final class NodeStreamSender {
  private let connection: PeerConnection
  private let loop: EventLoop
  private let stream: LoopStream
  /// Called once, when the request has ended.
  var onEnd: (() -> Void)?

  init(
    _ connection: PeerConnection, _ loop: EventLoop, receive: @escaping @Sendable (UnsafeRawBufferPointer) -> Void
  ) {
    self.connection = connection
    self.loop = loop
    stream = LoopStream(connection, consumesAtOnce: false, receive: receive) { [unowned connection] in
      connection.close()
    }
  }

  func start(_ path: String) {
    connection.onEnd = { [weak self] _ in self?.ended() }
    guard stream.start(path) else { return close() }
    tickLater()
    connection.start()
  }

  func send(_ bytes: [UInt8]) { stream.send(bytes) }

  func widen(_ count: Int) { stream.consumed(count) }

  func close() { connection.close() }

  private func tickLater() {
    loop.schedule(afterMilliseconds: EventLoop.sweepMilliseconds) { [weak self] in
      guard let self, onEnd != nil else { return }
      connection.tick()
      tickLater()
    }
  }

  private func ended() {
    let action = onEnd
    onEnd = nil
    action?()
  }
}
