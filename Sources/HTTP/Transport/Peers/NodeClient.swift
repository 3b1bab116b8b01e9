import Synchronization

/// Makes requests of this node itself to other nodes, each on a connection and with a body and a response of any length.
///
/// It has an event loop of its own, so a request is not delayed by those of clients.
package final class NodeClient: Sendable {
  private let loop: EventLoop
  private let context: TLSContext
  private let parts = Mutex<LoopBound<NodeClientParts>?>(nil)

  /// Starts the thread.
  /// - Throws: ``TransportError/resourceExhausted(what:reason:)`` if memory, descriptors or threads are exhausted.
  package init(key: NodeKey) throws(TransportError) {
    context = try TLSContext(key, isClient: true)
    loop = try EventLoop(name: "hearth.nodes")
    try loop.start()
  }

  /// Ends all streams and the thread. Call it once, not on the thread.
  package func stop() { loop.stopAndJoin() }

  /// Makes a stream for ``open(_:_:at:)``.
  ///
  /// `receive` gets the bytes of the response, if its status is 200, and `end` is called once, when the response or the
  /// connection has ended. Both run on the client's thread, and must return quickly. The node sends at most
  /// 256 KiB that ``NodeStream/consumed(_:)`` has not counted.
  package func makeStream(
    receive: @escaping @Sendable (UnsafeRawBufferPointer) -> Void, end: @escaping @Sendable () -> Void
  ) -> NodeStream {
    NodeStream(loop, receive: receive, end: end)
  }

  /// Connects a new stream to a node, and sends it a request with the method POST and a path.
  package func open(_ stream: NodeStream, _ path: String, at address: NodeAddress) {
    let isRunning = loop.execute { [self] in
      guard let parts = partsOnLoop() else { return stream.fail() }
      stream.start(path, at: address, context, parts)
    }
    if !isRunning { stream.fail() }
  }

  private func partsOnLoop() -> NodeClientParts? {
    parts.withLock { parts in
      if let parts { return parts.value(on: loop) }
      guard let made = NodeClientParts() else { return nil }
      loop.beforeEnd { made.closeAll() }
      parts = LoopBound(made, to: loop)
      return made
    }
  }
}

/// The memory and the callbacks that the streams of a client share. Belongs to its loop.
final class NodeClientParts {
  let callbacks: PeerCallbacks
  let buffers = PeerBuffers()
  private var senders: [ObjectIdentifier: NodeStreamSender] = [:]

  fileprivate init?() {
    guard let callbacks = PeerCallbacks() else { return nil }
    self.callbacks = callbacks
  }

  /// Retains a stream until its end.
  func add(_ sender: NodeStreamSender) { senders[ObjectIdentifier(sender)] = sender }

  func remove(_ sender: NodeStreamSender) { senders[ObjectIdentifier(sender)] = nil }

  fileprivate func closeAll() { for sender in Array(senders.values) { sender.close() } }
}
