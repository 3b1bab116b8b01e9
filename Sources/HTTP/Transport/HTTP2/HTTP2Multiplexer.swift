import CNGHTTP2

/// The streams of one HTTP/2 connection, independent of its socket: takes received bytes, passes requests to the
/// handler and returns bytes to send. nghttp2 does the framing, the header compression and the flow control. Its
/// callbacks are in `HTTP2Callbacks.swift`.
final class HTTP2Multiplexer {
  let server: LoopServer
  let socket: Int32
  let isFromAdminSocket: Bool
  let isFromProxy: Bool
  /// Called when new output appears after `send` has ended.
  var onOutput: () -> Void = {}
  /// Called when the client answers a PING.
  var onPingAnswered: () -> Void = {}
  private(set) var streams: [HTTP2Stream] = []
  /// The bytes of responses that were produced but not sent.
  var unsentBytes = 0
  /// Those of them for which the clients of another node opened no window when everything else was sent. They do not keep
  /// other clients of that node from being served. ``LoopServer`` bounds them.
  private var stalledBytes = 0
  var guardian: HTTP2FloodGuard
  /// The time of the client's last bytes, on the loop's clock.
  private(set) var receivedMilliseconds: Int
  /// The time at which the last stream ended, on the loop's clock.
  private(set) var idleSinceMilliseconds: Int
  /// The time since which a head is incomplete, or `nil` if none is.
  var headSinceMilliseconds: Int?
  private(set) var isBroken = false
  private(set) var isClosed = false
  /// The buffer that frames are written to while `send` runs.
  var out: [UInt8] = []
  var outBytesMax = 0

  private let raw: OpaquePointer
  private var block = HTTP2HeaderBlock()
  /// Complete requests that wait until the client has taken earlier responses, or for the time of the loop.
  private var waiting: [HTTP2Stream] = []
  /// Streams whose responses wait until the client has taken others, in the order of their turns.
  private var blocked: [HTTP2Stream] = []
  /// The memory of a sent response, for reuse.
  private var spare: [UInt8] = []
  private var isInsideLibrary = false
  private var isAnnouncing = false

  /// - Returns: `nil` if memory is exhausted.
  init?(_ server: LoopServer, socket: Int32, isFromAdminSocket: Bool = false, isFromProxy: Bool = true) {
    self.server = server
    self.socket = socket
    self.isFromAdminSocket = isFromAdminSocket
    self.isFromProxy = isFromProxy
    let now = server.loop.nowMilliseconds
    guardian = HTTP2FloodGuard(nowMilliseconds: now)
    receivedMilliseconds = now
    idleSinceMilliseconds = now
    var session: OpaquePointer?
    // The session's user data, this object, is set below, after all properties are initialized.
    guard let callbacks = server.http2,
      nghttp2_session_server_new2(&session, callbacks.table, nil, callbacks.options) == 0, let session
    else { return nil }
    raw = session
    nghttp2_session_set_user_data(raw, Unmanaged.passUnretained(self).toOpaque())
    let settings = HTTP2Limits.settings(server.configuration)
    nghttp2_submit_settings(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
    nghttp2_session_set_local_window_size(
      raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0,
      Int32(server.isOfPeers ? PeerLimits.windowBytes : HTTP2Limits.connectionWindowBytes))
  }

  deinit {
    nghttp2_session_del(raw)
  }

  // MARK: - Bytes

  /// Processes bytes from the client.
  func receive(_ bytes: UnsafeRawBufferPointer) {
    guard !isBroken, !isClosed else { return }
    receivedMilliseconds = server.loop.nowMilliseconds
    isInsideLibrary = true
    let count = nghttp2_session_mem_recv(raw, bytes.assumingMemoryBound(to: UInt8.self).baseAddress, bytes.count)
    isInsideLibrary = false
    guard count < 0, !isBroken else { return }
    isBroken = true
    let isFlood = count == Int(NGHTTP2_ERR_FLOODED.rawValue)
    end(isFlood ? NGHTTP2_ENHANCE_YOUR_CALM : NGHTTP2_PROTOCOL_ERROR)
  }

  /// Appends up to about `bytesMax` bytes to send.
  func send(into bytes: inout [UInt8], bytesMax: Int) {
    guard !isClosed else { return }
    beginWaiting()
    resumeBlocked()
    swap(&bytes, &out)
    outBytesMax = bytesMax
    isInsideLibrary = true
    var isAllSent = false
    while out.count < bytesMax {
      var piece: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(raw, &piece)
      guard count > 0 else {
        if count < 0 { isBroken = true }
        isAllSent = true
        break
      }
      out.append(contentsOf: UnsafeBufferPointer(start: piece, count: count))
    }
    isInsideLibrary = false
    swap(&bytes, &out)
    if server.isOfPeers { noteStalled(isAllSent: isAllSent) }
  }

  /// Counts the bytes that wait for clients of another node, after what may be sent was sent.
  private func noteStalled(isAllSent: Bool) {
    // Without a window of the connection, the node itself takes nothing.
    let isTaking = isAllSent && nghttp2_session_get_remote_window_size(raw) > 0
    stalledBytes = isTaking ? unsentBytes : min(stalledBytes, unsentBytes)
  }

  /// Whether the connection can still receive or send.
  var isAlive: Bool {
    !isClosed && (nghttp2_session_want_write(raw) != 0 || (!isBroken && nghttp2_session_want_read(raw) != 0))
  }

  var wantsToSend: Bool { !isClosed && nghttp2_session_want_write(raw) != 0 }

  /// The number of frames that wait to be sent.
  var queuedFrames: Int { nghttp2_session_get_outbound_queue_size(raw) }

  /// Ends the connection with a GOAWAY, because of the client's behavior or because of a timeout.
  func end(_ code: nghttp2_error_code) {
    nghttp2_session_terminate_session(raw, code.rawValue)
  }

  /// Announces the end of the connection. Requests that have begun still get responses.
  func announceEnd() {
    isAnnouncing = true
    nghttp2_submit_shutdown_notice(raw)
  }

  /// Called when the announcement was sent. Sends a PING, whose answer shows that the client has received it.
  func announcementSent() {
    guard isAnnouncing else { return }
    isAnnouncing = false
    ping()
  }

  /// Rejects all further requests.
  func refuseFurther() {
    nghttp2_submit_goaway(
      raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(raw),
      NGHTTP2_NO_ERROR.rawValue, nil, 0)
  }

  /// Charges the client for work that it causes. Returns `false` if it has no tokens left; the connection then ends.
  func charge(_ cost: Int) -> Bool {
    guard !isBroken else { return false }
    // A node of the cluster sends what its clients cause, all on one connection.
    if server.isOfPeers { return true }
    if guardian.spend(cost, nowMilliseconds: server.loop.nowMilliseconds) { return true }
    isBroken = true
    end(NGHTTP2_ENHANCE_YOUR_CALM)
    return false
  }

  /// Counts a frame that begins or continues a header block.
  func headerBlockReceived(_ bytes: Int, isFirst: Bool) {
    if isFirst { block = HTTP2HeaderBlock() }
    block.received(bytes)
  }

  /// Charges the client for a field that is much longer than its compressed form. Returns `false` if the connection must
  /// end.
  func mayExpand(by bytes: Int) -> Bool {
    let cost = block.expanded(bytes)
    return cost == 0 || charge(cost)
  }

  /// Sends a PING, to check that the client is still there.
  func ping() {
    nghttp2_submit_ping(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
  }

  /// Called when the connection is closed.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    waiting = []
    blocked = []
    let ended = streams
    streams = []
    for stream in ended { stream.close() }
  }

  // MARK: - Streams

  func open(_ id: Int32) {
    let stream = HTTP2Stream(id: id, self)
    stream.index = streams.count
    streams.append(stream)
    headSinceMilliseconds = server.loop.nowMilliseconds
    nghttp2_session_set_stream_user_data(raw, id, Unmanaged.passUnretained(stream).toOpaque())
    // By default, nghttp2 would send one response after the other. Incremental ones take turns.
    var priority = nghttp2_extpri(urgency: UInt32(NGHTTP2_EXTPRI_DEFAULT_URGENCY), inc: 1)
    nghttp2_session_change_extpri_stream_priority(raw, id, &priority, 1)
  }

  /// Removes a finished stream, in constant time.
  func close(_ stream: HTTP2Stream) {
    nghttp2_session_set_stream_user_data(raw, stream.id, nil)
    stream.close()
    if !waiting.isEmpty { waiting.removeAll { $0 === stream } }
    if !blocked.isEmpty { blocked.removeAll { $0 === stream } }
    let last = streams.removeLast()
    if last !== stream {
      streams[stream.index] = last
      last.index = stream.index
    }
    if streams.isEmpty { idleSinceMilliseconds = server.loop.nowMilliseconds }
  }

  /// Passes a complete request to the handler, now or after the client has taken enough of its responses.
  func begin(_ stream: HTTP2Stream) {
    let mayBegin = waiting.isEmpty && server.loop.hasTimeForRequest || stream.isUrgent
    if isFull || !mayBegin {
      waiting.append(stream)
    } else {
      dispatch(stream)
    }
  }

  /// Keeps a request whose response may be long from producing it until the client has taken enough of others.
  func awaitRoomToBegin(_ stream: HTTP2Stream) {
    waiting.append(stream)
  }

  /// Whether the client has yet to take so much that nothing more may be produced for it.
  var isFull: Bool {
    server.isOfPeers
      ? unsentBytes - stalledBytes > PeerLimits.connectionBytesMax : unsentBytes > HTTP2Limits.unsentBytesMax
  }

  /// Whether requests or responses wait, but not for the client.
  var canProduce: Bool { !isFull && (!waiting.isEmpty || !blocked.isEmpty) }

  /// Whether requests or responses wait until the client takes others.
  var isCrowded: Bool { isFull && (!waiting.isEmpty || !blocked.isEmpty) }

  private func beginWaiting() {
    var begun = 0
    while begun < waiting.count, !isFull, begun == 0 || server.loop.hasTime {
      let stream = waiting[begun]
      begun += 1
      dispatch(stream)
    }
    if begun > 0 { waiting.removeFirst(min(begun, waiting.count)) }
  }

  private func dispatch(_ stream: HTTP2Stream) {
    let begun = EventLoop.microseconds()
    stream.dispatch()
    server.loop.countRequest(since: begun)
  }

  /// Keeps a stream from producing more until the client has taken enough of others.
  func awaitRoom(_ stream: HTTP2Stream) {
    blocked.append(stream)
  }

  private func resumeBlocked() {
    guard !blocked.isEmpty, !isFull else { return }
    let resumed = blocked
    blocked = []
    for stream in resumed { nghttp2_session_resume_data(raw, stream.id) }
  }

  /// Resets a stream that makes no progress.
  func reset(_ stream: HTTP2Stream, _ code: nghttp2_error_code) {
    nghttp2_submit_rst_stream(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, code.rawValue)
    stream.close()
  }

  /// Resets the streams that wait until the client takes a response. Returns whether there were any.
  func cancelBlocked() -> Bool {
    let canceled = streams.filter { $0.isBlocked } + waiting + blocked
    waiting = []
    blocked = []
    for stream in canceled where !stream.isClosed { reset(stream, NGHTTP2_CANCEL) }
    return !canceled.isEmpty
  }

  /// After the response is sent, resets the stream if the client still sends the request.
  func responseSent(_ id: Int32) {
    guard nghttp2_session_get_stream_remote_close(raw, id) == 0 else { return }
    nghttp2_submit_rst_stream(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, NGHTTP2_NO_ERROR.rawValue)
  }

  // MARK: - Responses

  func submit(_ fields: HTTP2ResponseFields, for stream: HTTP2Stream, hasBody: Bool) {
    guard !isClosed else { return }
    var provider = nghttp2_data_provider()
    provider.source.ptr = Unmanaged.passUnretained(stream).toOpaque()
    provider.read_callback = HTTP2Callbacks.read
    _ = fields.withFields { list, count in
      if hasBody {
        nghttp2_submit_response(raw, stream.id, list, count, &provider)
      } else {
        nghttp2_submit_response(raw, stream.id, list, count, nil)
      }
    }
    reportOutput()
  }

  func submitTrailers(_ fields: HTTP2ResponseFields, for stream: HTTP2Stream) {
    _ = fields.withFields { list, count in nghttp2_submit_trailer(raw, stream.id, list, count) }
  }

  func resume(_ stream: HTTP2Stream) {
    guard !isClosed else { return }
    nghttp2_session_resume_data(raw, stream.id)
    reportOutput()
  }

  func takeSpare() -> [UInt8] {
    var taken: [UInt8] = []
    swap(&taken, &spare)
    return taken
  }

  func giveSpare(_ memory: consuming [UInt8]) {
    if memory.capacity > spare.capacity { spare = memory }
  }

  // MARK: - Windows

  /// Lets the client send this many more bytes: on the connection and, if `stream` is not `nil`, on the stream.
  func consume(_ count: Int, of stream: HTTP2Stream?) {
    guard count > 0 else { return }
    nghttp2_session_consume_connection(raw, count)
    if let stream, !stream.isClosed { nghttp2_session_consume_stream(raw, stream.id, count) }
  }

  /// Grants the client bytes of a stream's window that were withheld.
  func widen(_ stream: HTTP2Stream, by count: Int) {
    guard !isClosed else { return }
    nghttp2_session_consume_stream(raw, stream.id, count)
    reportOutput()
  }

  /// Called when a response holds more bytes than before.
  func heldChanged() { reportOutput() }

  private func reportOutput() {
    if !isInsideLibrary { onOutput() }
  }
}
