import CUV
import Glibc

/// A connection to a peer: socket, TLS and the HTTP/2 session. Belongs to its loop.
///
/// If the peer takes nothing, output stays in the session, whose owners hold their bodies back. So at most one piece of
/// about ``pieceBytes`` waits here.
final class PeerConnection {
  private enum State { case resolving, connecting, handshaking, open, closed }

  /// Milliseconds until a connection must be established, including its handshake.
  static let connectMilliseconds = 2000
  /// Milliseconds of silence before the peer is sent a PING.
  static let pingMilliseconds = 500
  /// Milliseconds after an unanswered PING after which the peer is dead, if it has sent nothing else meanwhile.
  static let deadMilliseconds = 2000
  private static let pieceBytes = 64 * 1024
  /// The most pieces sent or received in one turn of the loop.
  private static let roundsPerTurn = 16

  let address: NodeAddress
  let session: PeerSession
  /// Called once, when the connection has ended, with whether it was ever established.
  var onEnd: (_ wasOpen: Bool) -> Void = { _ in }
  /// Called once, when the connection is established.
  var onOpen: () -> Void = {}

  private let loop: EventLoop
  private let tls: TLSChannel
  private let buffers: PeerBuffers
  private var state = State.resolving
  private var socket: Int32 = -1
  private var poll: UnsafeMutablePointer<uv_poll_t>?
  private var isPollingWrites = false
  private var output: [UInt8] = []
  private var outputStart = 0
  private var isScheduled = false
  private let begunMilliseconds: Int
  private var receivedMilliseconds: Int
  private var pingedMilliseconds: Int?

  /// - Returns: `nil` if memory is exhausted.
  init?(
    to address: NodeAddress, on loop: EventLoop, _ context: TLSContext, _ callbacks: PeerCallbacks,
    _ buffers: PeerBuffers
  ) {
    guard let session = PeerSession(callbacks), let tls = TLSChannel(context, isClient: true) else { return nil }
    self.address = address
    self.session = session
    self.tls = tls
    self.loop = loop
    self.buffers = buffers
    begunMilliseconds = loop.nowMilliseconds
    receivedMilliseconds = loop.nowMilliseconds
    session.onPingAnswered = { [unowned self] in pingedMilliseconds = nil }
  }

  /// Whether another request can begin.
  var isUsable: Bool { state != .closed && !session.isDraining && !session.isBroken }
  var isOpen: Bool { state == .open }

  // MARK: - Connecting

  /// Begins to connect.
  func start() {
    PeerLookup.run(address, on: loop) { [weak self] found in
      guard let self, state == .resolving else { return }
      guard var found, connect(to: &found) else { return close() }
    }
  }

  private func connect(to address: inout PeerLookup.Address) -> Bool {
    let type = Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
    socket = Glibc.socket(Int32(address.storage.ss_family), type, 0)
    guard socket >= 0 else { return false }
    var on: Int32 = 1
    setsockopt(socket, Int32(IPPROTO_TCP), TCP_NODELAY, &on, socklen_t(MemoryLayout<Int32>.size))
    let length = address.length
    let status = withUnsafePointer(to: &address.storage) { storage in
      storage.withMemoryRebound(to: sockaddr.self, capacity: 1) { Glibc.connect(socket, $0, length) }
    }
    guard status == 0 || errno == EINPROGRESS else { return false }
    let made = UnsafeMutablePointer<uv_poll_t>.allocate(capacity: 1)
    guard uv_poll_init(loop.raw, made, socket) == 0 else {
      made.deallocate()
      return false
    }
    // The handle keeps the connection alive until libuv has released it.
    made.pointee.data = Unmanaged.passRetained(self).toOpaque()
    poll = made
    state = .connecting
    watch(writes: true)
    return true
  }

  private func watch(writes: Bool) {
    guard let poll else { return }
    isPollingWrites = writes
    let events = Int32(UV_READABLE.rawValue) | (writes ? Int32(UV_WRITABLE.rawValue) : 0)
    uv_poll_start(poll, events) { handle, status, events in
      guard let data = handle?.pointee.data else { return }
      Unmanaged<PeerConnection>.fromOpaque(data).takeUnretainedValue().isReady(status, events)
    }
  }

  private func isReady(_ status: Int32, _ events: Int32) {
    guard state != .closed else { return }
    if state == .connecting {
      var code: Int32 = 0
      var length = socklen_t(MemoryLayout<Int32>.size)
      guard status == 0, getsockopt(socket, SOL_SOCKET, SO_ERROR, &code, &length) == 0, code == 0 else {
        return close()
      }
      state = .handshaking
      // Produces the first message.
      open(UnsafeRawBufferPointer(start: nil, count: 0))
      return flush()
    }
    guard status == 0 else { return close() }
    if events & Int32(UV_READABLE.rawValue) != 0 { read() }
    if state != .closed { flush() }
  }

  // MARK: - Reading

  private func read() {
    for _ in 0..<Self.roundsPerTurn {
      let count = Glibc.read(socket, buffers.sealed.baseAddress, buffers.sealed.count)
      if count < 0 && errno == EINTR { continue }
      if count < 0 && errno == EAGAIN { break }
      guard count > 0 else {
        session.deliver()
        return close()
      }
      receivedMilliseconds = loop.nowMilliseconds
      guard open(UnsafeRawBufferPointer(rebasing: buffers.sealed[..<count])) else { return }
      if count < buffers.sealed.count { break }
    }
    session.deliver()
    if state == .open && !session.isAlive { close() }
  }

  /// Decrypts received bytes. Returns `false` if the connection has ended.
  @discardableResult
  private func open(_ sealed: UnsafeRawBufferPointer) -> Bool {
    var isAlive = true
    tls.receive(sealed) {
      while isAlive {
        let opened = tls.open(into: buffers.plain)
        if state == .handshaking && tls.isEstablished {
          isAlive = tls.isPeer
          guard isAlive else { return }
          state = .open
          onOpen()
        }
        switch opened {
        case .bytes(let count): session.receive(UnsafeRawBufferPointer(rebasing: buffers.plain[..<count]))
        case .wantsMore: return
        case .ended, .failed: isAlive = false
        }
      }
    }
    if !isAlive {
      session.deliver()
      close()
    }
    return isAlive
  }

  // MARK: - Writing

  /// Sends what the session has at the end of the turn, together with what is added until then.
  func sendSoon() {
    guard !isScheduled, state == .open else { return }
    isScheduled = true
    loop.atNextTurn { [weak self] in
      guard let self else { return }
      isScheduled = false
      flush()
    }
  }

  private func flush() {
    for _ in 0..<Self.roundsPerTurn {
      guard state != .closed else { return }
      guard write() else { return }
      output.removeAll(keepingCapacity: true)
      outputStart = 0
      if state == .open { session.send(into: &output, bytesMax: Self.pieceBytes) }
      if output.isEmpty && tls.unsent.isEmpty {
        if isPollingWrites { watch(writes: false) }
        session.deliver()
        return
      }
      guard tls.seal(&output, isLast: false, spare: &buffers.spare) else { return close() }
    }
    guard write() else { return }
    session.deliver()
    sendSoon()
  }

  /// Writes the output to the socket. Returns `false` if some of it is left, or the connection has ended.
  private func write() -> Bool {
    while outputStart < output.count {
      let count = output.withUnsafeBytes { bytes -> Int in
        guard let start = bytes.baseAddress else { return 0 }
        return Glibc.send(socket, start + outputStart, bytes.count - outputStart, Int32(MSG_NOSIGNAL))
      }
      if count < 0 && errno == EINTR { continue }
      if count < 0 && errno == EAGAIN {
        if !isPollingWrites { watch(writes: true) }
        return false
      }
      guard count > 0 else {
        close()
        return false
      }
      outputStart += count
    }
    return true
  }

  // MARK: - Time and end

  /// Checks whether the peer is alive. Called at every sweep of the loop.
  func tick() {
    let now = loop.nowMilliseconds
    guard state == .open else {
      if state != .closed, now - begunMilliseconds >= Self.connectMilliseconds { close() }
      return
    }
    if let pinged = pingedMilliseconds {
      if now - max(pinged, receivedMilliseconds) >= Self.deadMilliseconds { close() }
    } else if now - receivedMilliseconds >= Self.pingMilliseconds {
      pingedMilliseconds = now
      session.ping()
      sendSoon()
    }
  }

  /// Closes the connection. Its streams fail.
  func close() {
    guard state != .closed else { return }
    let wasOpen = state == .open
    state = .closed
    if let poll {
      uv_poll_stop(poll)
      uv_close(UnsafeMutableRawPointer(poll).assumingMemoryBound(to: uv_handle_t.self)) { handle in
        guard let data = handle?.pointee.data else { return }
        UnsafeMutableRawPointer(handle)?.deallocate()
        Unmanaged<PeerConnection>.fromOpaque(data).release()
      }
    }
    if socket >= 0 { Glibc.close(socket) }
    output = []
    session.close()
    onEnd(wasOpen)
  }
}

/// The memory that the connections of one loop use while they are served.
final class PeerBuffers {
  let sealed = UnsafeMutableRawBufferPointer.allocate(byteCount: 64 * 1024, alignment: 16)
  let plain = UnsafeMutableRawBufferPointer.allocate(byteCount: 32 * 1024, alignment: 16)
  var spare: [UInt8] = []

  deinit {
    sealed.deallocate()
    plain.deallocate()
  }
}
