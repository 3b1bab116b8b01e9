import CUV
import Glibc

/// The protocol logic of a connection. The connection moves bytes and the session interprets them.
protocol ConnectionSession: AnyObject {
  /// The total size of the message being received, if known: a hint for the size of the input buffer.
  var expectedBytes: Int? { get }
  /// Whether no request is running and none is complete except for its body.
  var isIdle: Bool { get }
  /// New input has arrived.
  func received()
  /// All output was sent, so there is room again.
  func outputDrained()
  /// The client will send no more.
  func peerEnded()
  /// Whether the connection may wait for memory for more input, without a wait for other clients or for the handler.
  var canAwaitMemory: Bool { get }
  /// The input buffer cannot grow, because the server holds too many large requests and none of them ended in time.
  func inputRefused()
  /// `Connection.deadline` has passed.
  func deadlinePassed()
  /// The server is about to stop. Close the connection if it is idle, otherwise after the running requests.
  func drain()
  /// Ends the running requests whose chosen handler matches.
  func cancelRequests(where isCanceled: (any RequestHandler) -> Bool)
  /// Ends the responses of which the client has taken nothing for the longest time, one by one, while `isNeeded`. Returns
  /// `false` if the whole connection must end instead.
  func endSlowest(while isNeeded: () -> Bool) -> Bool
  /// The connection is closed.
  func closed()
}

extension ConnectionSession {
  var canAwaitMemory: Bool { true }
  func endSlowest(while isNeeded: () -> Bool) -> Bool { false }
}

/// The protocols that a connection can use.
enum ApplicationProtocol { case http1, http2 }

/// One client's byte stream, on the same loop for its whole life: buffers, writing, and the ways to close.
final class Connection {
  private enum State { case open, lingering, closed }

  /// Output memory kept for the next response.
  private static let outputBytesKept = 64 * 1024

  let server: LoopServer
  let socket: Int32
  /// Whether the client connected to the admin socket.
  let isFromAdminSocket: Bool
  /// Whether the client may be a proxy whose headers are trusted.
  private(set) lazy var isFromProxy = server.configuration.trustedProxies.contains(peerOf: socket)
  /// The session of the current protocol, which `speak` chooses.
  private(set) lazy var session: any ConnectionSession = PrefaceSession(self)
  /// The position in the loop's list of connections.
  var index = 0
  /// The time on the loop's clock at which to call the session's `deadlinePassed`, or `.max` for never.
  var deadline = Int.max
  var input = InputBuffer()
  private(set) var isPeerEnded = false
  private(set) var isWritePending = false

  private let handle: UnsafeMutablePointer<uv_tcp_t>
  /// Created with the first bytes of the client, so that a connection without any costs little.
  private var tls: TLSChannel?
  /// When the TLS handshake began, on the loop's clock, while it is under way.
  var handshakeMilliseconds: Int?
  /// The bytes of the handshake that wait for their turn. The connection does not read meanwhile.
  private var waitingHandshake: [UInt8] = []
  /// The most bytes of a handshake that wait. A client's first message has about 2 KiB.
  private static let handshakeBytes = 8 * 1024
  /// The first byte of a TLS record with handshake messages.
  private static let handshakeRecord: UInt8 = 22
  private var output: [UInt8] = []
  private var state = State.open
  private var isReading = false
  private var closesWhenSent = false
  private var lingeredBytes = 0
  /// The time on the loop's clock at which the client is cut off after the last response, even if it still sends.
  private var lingerEnd = Int.max
  /// The place in the line of connections that wait for memory. The connection does not read meanwhile.
  private var placeInLine: Int?
  private var writeDeadline = Int.max
  private var unsentBytes = 0
  private var pendingBytes = 0
  private var sessionBytes = 0
  /// The bytes that the client has not taken yet.
  private(set) var held = HeldBytes()

  private var stream: UnsafeMutablePointer<uv_stream_t> {
    UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_stream_t.self)
  }

  /// Attaches a connected socket to the server's loop. If libuv refuses it, returns `nil` and the caller keeps the
  /// socket.
  init?(socket: Int32, server: LoopServer, isFromAdminSocket: Bool = false) {
    self.server = server
    self.socket = socket
    self.isFromAdminSocket = isFromAdminSocket
    handle = .allocate(capacity: 1)
    uv_tcp_init(server.loop.raw, handle)
    guard uv_tcp_open(handle, socket) == 0 else {
      uv_close(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)) { handle in
        UnsafeMutableRawPointer(handle)?.deallocate()
      }
      return nil
    }
    // libuv serves any stream socket as TCP. A Unix socket ignores this option.
    uv_tcp_nodelay(handle, 1)
    // The handle keeps the connection alive until libuv has released it.
    handle.pointee.data = Unmanaged.passRetained(self).toOpaque()
  }

  func start() {
    let configuration = server.configuration
    var seconds = configuration.idleSeconds
    if !isPlain { seconds = configuration.handshakeSeconds }
    deadline = server.loop.nowMilliseconds + seconds * 1000
    if server.isDraining { close() } else { startReading() }
  }

  /// Starts the session of a protocol, once the client's first bytes have shown which one it uses.
  func speak(_ chosen: ApplicationProtocol) {
    switch chosen {
    case .http1:
      session = HTTP1Session(self)
    case .http2:
      guard let http2 = HTTP2Session(self) else { return close() }
      session = http2
    }
    session.received()
  }

  var isClosed: Bool { state == .closed }
  var isOpen: Bool { state == .open }
  var outputBytes: Int { output.count }

  // MARK: - Reading

  func startReading() {
    guard !isReading, !isPeerEnded, placeInLine == nil, state != .closed else { return }
    let status = uv_read_start(
      stream,
      { handle, _, buffer in
        guard let buffer else { return }
        guard let space = Connection.from(handle?.pointee.data)?.readSpace() else {
          // libuv reports an empty buffer as UV_ENOBUFS.
          buffer.pointee = uv_buf_init(nil, 0)
          return
        }
        buffer.pointee = uv_buf_init(space.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32(space.count))
      },
      { stream, count, _ in Connection.from(stream?.pointee.data)?.didRead(count) })
    isReading = status == 0
    if status != 0 { close() }
  }

  func stopReading() {
    guard isReading else { return }
    isReading = false
    uv_read_stop(stream)
  }

  private func readSpace() -> UnsafeMutableRawBufferPointer? {
    if state == .lingering { return server.sealedInput }
    if isPlain { return plainSpace() }
    // Bytes that are read must find room after TLS has decrypted them.
    if tls?.isEstablished == true { return plainSpace().map { _ in server.sealedInput } }
    return UnsafeMutableRawBufferPointer(
      rebasing: server.sealedInput[..<(Self.handshakeBytes - waitingHandshake.count)])
  }

  private func plainSpace() -> UnsafeMutableRawBufferPointer? {
    let expected = session.expectedBytes
    if let space = input.readSpace(expected: expected, pool: server.pool) { return space }
    guard input.isEmpty else { return nil }
    // Others keep memory with incomplete heads.
    server.evictIncomplete(except: self)
    return input.readSpace(expected: expected, pool: server.pool)
  }

  /// Waits for memory for more input, so that the client has to wait with its bytes. If that is of no use, the session
  /// ends the request.
  private func awaitMemory() {
    guard session.canAwaitMemory, input.canHold(session.expectedBytes, pool: server.pool) else {
      return session.inputRefused()
    }
    stopReading()
    placeInLine = server.memoryLine.add(self)
  }

  /// Continues to read if there is memory for the input now. Returns `false` if it must wait longer.
  func takeAwaitedMemory() -> Bool {
    guard input.takeAwaited(session.expectedBytes, pool: server.pool) else { return false }
    placeInLine = nil
    startReading()
    return true
  }

  /// Ends a wait for memory that took too long.
  func refuseAwaitedMemory() {
    placeInLine = nil
    session.inputRefused()
  }

  private func leaveMemoryLine() {
    guard let place = placeInLine else { return }
    placeInLine = nil
    server.memoryLine.remove(place)
  }

  private func didRead(_ count: Int) {
    guard state != .closed else { return }
    if count > 0 { server.counters.add(count, to: server.counters.receivedBytes) }
    if state == .lingering {
      discard(count)
    } else if count > 0 {
      if isPlain {
        input.received(count)
        session.received()
      } else {
        let sealed = UnsafeRawBufferPointer(rebasing: server.sealedInput[..<count])
        if let tls, tls.isEstablished { open(sealed, tls) } else { awaitHandshake(sealed) }
      }
    } else if count == Int(UV_EOF.rawValue) {
      stopReading()
      isPeerEnded = true
      session.peerEnded()
    } else if count == Int(UV_ENOBUFS.rawValue) {
      awaitMemory()
    } else if count < 0 {
      close()
    }
    if state != .closed { input.releaseIfEmpty(to: server.pool) }
  }

  private func awaitHandshake(_ sealed: UnsafeRawBufferPointer) {
    guard server.pool.reserve(sealed.count, for: .start) else { return close() }
    waitingHandshake.append(raw: sealed)
    guard tls != nil || hasFirstMessage else { return }
    stopReading()
    server.handshakes.received(self)
  }

  /// Whether the client's first record is complete, or so long that the rest must be read later, or not the start of a
  /// handshake. Before that, the connection needs no memory for a handshake.
  private var hasFirstMessage: Bool {
    guard waitingHandshake[0] == Self.handshakeRecord else { return true }
    guard waitingHandshake.count >= 5 else { return false }
    let recordBytes = 5 + Int(waitingHandshake[3]) << 8 + Int(waitingHandshake[4])
    return waitingHandshake.count >= min(recordBytes, Self.handshakeBytes)
  }

  private func forgetHandshake() {
    server.pool.release(waitingHandshake.count)
    waitingHandshake = []
  }

  /// Passes the client's messages to the handshake. The loop calls this when there is time.
  func continueHandshake() {
    guard state == .open, let channel = tls ?? server.credentials.flatMap({ TLSChannel($0.current) }) else {
      return close()
    }
    tls = channel
    let sealed = waitingHandshake
    forgetHandshake()
    sealed.withUnsafeBytes { open($0, channel) }
    guard state != .closed else { return }
    input.releaseIfEmpty(to: server.pool)
    // The session of a protocol has already decided whether to read.
    if state == .open, session is PrefaceSession { startReading() }
  }

  /// Decrypts all of the received bytes, so that the connection keeps less than one TLS record.
  private func open(_ sealed: UnsafeRawBufferPointer, _ tls: TLSChannel) {
    var isDone = false
    tls.receive(sealed) {
      while state == .open && !isDone {
        guard let space = plainSpace() else { return session.inputRefused() }
        let wasEstablished = tls.isEstablished
        let opened = tls.open(into: space)
        if case .bytes(let count) = opened { input.received(count) }
        if !wasEstablished && tls.isEstablished { chooseProtocol(tls) }
        switch opened {
        case .bytes:
          if state == .open { session.received() }
        case .wantsMore:
          isDone = true
        case .ended:
          isDone = true
          stopReading()
          isPeerEnded = true
          session.peerEnded()
        case .failed:
          isDone = true
          // TLS sends the client an alert with the reason, if it can.
          finish()
        }
      }
    }
    guard state == .open, !tls.unsent.isEmpty else { return }
    // Close the connection of a client that keeps causing handshake messages without reading them.
    if isWritePending && tls.unsent.count > Self.outputBytesKept { close() } else { flush() }
  }

  private func chooseProtocol(_ tls: TLSChannel) {
    server.handshakes.ended(self)
    deadline = server.loop.nowMilliseconds + server.configuration.idleSeconds * 1000
    if server.isOfPeers { return tls.isPeer ? speak(.http2) : close() }
    if let choseHTTP2 = tls.choseHTTP2 { speak(choseHTTP2 ? .http2 : .http1) }
  }

  /// A client that sends the rest of a refused body reads the response only after that. So it has time as long as it
  /// sends, up to the size of a body and the time for one.
  private func discard(_ count: Int) {
    lingeredBytes += max(count, 0)
    // The bytes were not marked as received, so they are already discarded.
    if count < 0 || lingeredBytes > server.configuration.bodyBytesMax { return close() }
    deadline = min(lingerEnd, server.loop.nowMilliseconds + server.configuration.lingerSeconds * 1000)
  }

  // MARK: - Writing

  /// Returns the output buffer to append to. Return it with `returnOutput`. The caller holds it in a local variable,
  /// so a producer that calls back into the connection meets no half-written state.
  func takeOutput() -> [UInt8] {
    var taken: [UInt8] = []
    if output.isEmpty && server.spareOutput.capacity > output.capacity {
      swap(&taken, &server.spareOutput)
    } else {
      swap(&taken, &output)
    }
    return taken
  }

  func returnOutput(_ bytes: consuming [UInt8]) {
    output = bytes
  }

  /// Sends the output: immediately as much as the socket takes, and the rest when it can.
  func flush() {
    guard !isWritePending, state == .open else { return }
    if let tls, !tls.seal(&output, isLast: closesWhenSent, spare: &server.sealedOutput) { return close() }
    guard !output.isEmpty else {
      if closesWhenSent { linger() }
      return
    }
    let count = output.count
    let sent = output.withUnsafeMutableBytes { bytes -> Int in
      var buffer = uv_buf_init(
        bytes.baseAddress?.assumingMemoryBound(to: CChar.self), UInt32(truncatingIfNeeded: min(count, 1 << 30)))
      return Int(uv_try_write(stream, &buffer, 1))
    }
    if sent > 0 {
      server.counters.add(sent, to: server.counters.sentBytes)
      held.taken(sent)
    }
    if sent == count {
      outputSent()
      if closesWhenSent { linger() }
    } else if sent >= 0 || sent == Int(UV_EAGAIN.rawValue) {
      queue(from: max(sent, 0))
    } else {
      close()
    }
  }

  /// Whether bytes go to the socket unencrypted.
  var isPlain: Bool { isFromAdminSocket || server.credentials == nil }

  /// Sends part of a file directly from the page cache to the socket. Use it only on a plain connection whose output
  /// has been sent.
  /// - Returns: the number of bytes sent, which is less than requested if the socket takes no more, or 0 if it takes
  ///   none now. `nil` on failure and at the end of the file.
  func send(file: Int32, from offset: Int, count: Int) -> Int? {
    guard state == .open, output.isEmpty, !isWritePending else { return 0 }
    var position = off_t(offset)
    let sent = sendfile(socket, file, &position, count)
    if sent > 0 {
      server.counters.add(sent, to: server.counters.sentBytes)
      return sent
    }
    return sent < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : nil
  }

  /// Closes in an orderly way once the output is sent, so that the client can read all of it.
  func finish() {
    guard state == .open else { return }
    closesWhenSent = true
    deadline = .max
    flush()
  }

  private func queue(from start: Int) {
    let request = PendingWrite.make(output[start...])
    server.counters.add(output.count - start, to: server.counters.sentBytes)
    outputSent()
    var buffer = request.buffer
    let status = uv_write(request.raw, stream, &buffer, 1) { raw, status in
      let connection = Connection.from(raw?.pointee.handle?.pointee.data)
      PendingWrite.free(raw)
      connection?.didWrite(status)
    }
    guard status == 0 else {
      PendingWrite.free(request.raw)
      close()
      return
    }
    isWritePending = true
    pendingBytes = request.buffer.len
    countHeld()
    unsentBytes = .max
    writeDeadline = server.loop.nowMilliseconds + server.configuration.writeStallSeconds * 1000
  }

  private func didWrite(_ status: Int32) {
    isWritePending = false
    writeDeadline = .max
    held.taken(pendingBytes)
    pendingBytes = 0
    countHeld()
    guard state == .open else { return }
    guard status == 0 else {
      close()
      return
    }
    flush()
    if state == .open && !isWritePending { session.outputDrained() }
  }

  /// Empties the output and passes its memory on, unless a large response made it large.
  private func outputSent() {
    var memory: [UInt8] = []
    swap(&memory, &output)
    guard memory.capacity <= Self.outputBytesKept else { return }
    memory.removeAll(keepingCapacity: true)
    if memory.capacity > server.spareOutput.capacity { swap(&memory, &server.spareOutput) }
  }

  // MARK: - Unsent bytes

  /// Counts the bytes that the session holds for the client, besides those passed to this connection.
  func holds(_ bytes: Int) {
    guard bytes != sessionBytes else { return }
    sessionBytes = bytes
    countHeld()
  }

  private func countHeld() {
    guard state == .open else { return }
    let before = held.count
    held.update(pendingBytes + sessionBytes, nowMilliseconds: server.loop.nowMilliseconds)
    server.hold(held.count - before)
  }

  /// The milliseconds that the client would need for what it has not taken, at the pace it had so far.
  func drainMilliseconds(_ now: Int) -> Int {
    let sent = isWritePending ? pendingBytes - Int(uv_stream_get_write_queue_size(stream)) : 0
    return held.drainMilliseconds(now, takenBytes: sent)
  }

  // MARK: - Closing

  /// Ends the sending side and gives the client time to close first. Closing with unread input would reset the
  /// connection, and the client could lose the response.
  private func linger() {
    holds(0)
    leaveMemoryLine()
    state = .lingering
    deadline = server.loop.nowMilliseconds + server.configuration.lingerSeconds * 1000
    lingerEnd = server.loop.nowMilliseconds + server.configuration.bodySeconds * 1000
    session.closed()
    input.release(to: server.pool)
    if isPeerEnded || shutdown(socket, Int32(SHUT_WR)) != 0 {
      close()
    } else {
      startReading()
    }
  }

  /// Closes immediately. Output that was not sent yet may be lost.
  func close() {
    guard state != .closed else { return }
    let wasOpen = state == .open
    leaveMemoryLine()
    server.hold(-held.count)
    held = HeldBytes()
    state = .closed
    deadline = .max
    writeDeadline = .max
    if wasOpen { session.closed() }
    if !isPlain {
      server.handshakes.ended(self)
      forgetHandshake()
    }
    server.remove(self)
    input.release(to: server.pool)
    output = []
    uv_close(UnsafeMutableRawPointer(handle).assumingMemoryBound(to: uv_handle_t.self)) { handle in
      guard let data = handle?.pointee.data else { return }
      UnsafeMutableRawPointer(handle)?.deallocate()
      Unmanaged<Connection>.fromOpaque(data).release()
    }
  }

  /// Closes so that the client sees an error instead of a normal end.
  func abort() {
    guard state != .closed else { return }
    var hard = Glibc.linger(l_onoff: 1, l_linger: 0)
    setsockopt(socket, SOL_SOCKET, SO_LINGER, &hard, socklen_t(MemoryLayout<Glibc.linger>.size))
    close()
  }

  // MARK: - Time

  func needsSweep(_ now: Int) -> Bool { deadline <= now || isWritePending }

  func sweep(_ now: Int) {
    if isWritePending {
      let unsent = uv_stream_get_write_queue_size(stream)
      if unsent < unsentBytes {
        unsentBytes = unsent
        writeDeadline = now + server.configuration.writeStallSeconds * 1000
      } else if writeDeadline <= now {
        abort()
        return
      }
    }
    guard deadline <= now else { return }
    deadline = .max
    if state == .lingering { close() } else { session.deadlinePassed() }
  }

  @inline(__always)
  private static func from(_ data: UnsafeMutableRawPointer?) -> Connection? {
    data.map { Unmanaged<Connection>.fromOpaque($0).takeUnretainedValue() }
  }
}

/// A queued write: libuv's request followed by the bytes, which must not move until the write is done.
private struct PendingWrite {
  let raw: UnsafeMutablePointer<uv_write_t>
  let buffer: uv_buf_t

  static func make(_ bytes: ArraySlice<UInt8>) -> PendingWrite {
    let headBytes = MemoryLayout<uv_write_t>.stride
    let memory = UnsafeMutableRawPointer.allocate(
      byteCount: headBytes + bytes.count, alignment: MemoryLayout<uv_write_t>.alignment)
    let space = UnsafeMutableRawBufferPointer(start: memory + headBytes, count: bytes.count)
    bytes.withUnsafeBytes { space.copyMemory(from: $0) }
    return PendingWrite(
      raw: memory.bindMemory(to: uv_write_t.self, capacity: 1),
      buffer: uv_buf_init((memory + headBytes).assumingMemoryBound(to: CChar.self), UInt32(bytes.count)))
  }

  static func free(_ raw: UnsafeMutablePointer<uv_write_t>?) {
    UnsafeMutableRawPointer(raw)?.deallocate()
  }
}
