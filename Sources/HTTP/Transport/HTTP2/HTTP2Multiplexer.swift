import CNGHTTP2

/// The streams of one HTTP/2 connection, freed of its socket: bytes go in, requests go to the handler, bytes come out.
/// nghttp2 does the framing, the compression and the windows; what it reports is in `HTTP2Callbacks.swift`.
final class HTTP2Multiplexer {
  let server: LoopServer
  let socket: Int32
  /// Called when there is something to send that was not there when `send` ended.
  var onOutput: () -> Void = {}
  /// Called when the client answers a PING.
  var onPingAnswered: () -> Void = {}
  private(set) var streams: [HTTP2Stream] = []
  /// Bytes of finished replies that were not sent.
  var unsentBytes = 0
  var guardian: HTTP2FloodGuard
  /// When the client last sent anything, and when the last stream ended, on the loop's clock.
  private(set) var receivedMilliseconds: Int
  private(set) var idleSinceMilliseconds: Int
  /// Since when a head is incomplete.
  var headSinceMilliseconds: Int?
  private(set) var isBroken = false
  private(set) var isClosed = false
  /// Where frames are written while `send` runs.
  var out: [UInt8] = []
  var outBytesMax = 0

  private let raw: OpaquePointer
  /// Whole requests that wait until the client has taken replies.
  private var waiting: [HTTP2Stream] = []
  /// Memory of a reply that was sent.
  private var spare: [UInt8] = []
  private var isInsideLibrary = false
  private var isAnnouncing = false

  /// - Returns: `nil` when there is no memory.
  init?(_ server: LoopServer, socket: Int32) {
    self.server = server
    self.socket = socket
    let now = server.loop.nowMilliseconds
    guardian = HTTP2FloodGuard(nowMilliseconds: now)
    receivedMilliseconds = now
    idleSinceMilliseconds = now
    var session: OpaquePointer?
    // The session is given its owner below: only then is there one.
    guard let callbacks = server.http2,
      nghttp2_session_server_new2(&session, callbacks.table, nil, callbacks.options) == 0, let session
    else { return nil }
    raw = session
    nghttp2_session_set_user_data(raw, Unmanaged.passUnretained(self).toOpaque())
    let settings = HTTP2Limits.settings(server.configuration)
    nghttp2_submit_settings(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), settings, settings.count)
    nghttp2_session_set_local_window_size(
      raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(HTTP2Limits.connectionWindowBytes))
  }

  deinit {
    nghttp2_session_del(raw)
  }

  // MARK: - Bytes

  /// Takes what the client sent.
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
    swap(&bytes, &out)
    outBytesMax = bytesMax
    isInsideLibrary = true
    while out.count < bytesMax {
      var piece: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(raw, &piece)
      guard count > 0 else {
        if count < 0 { isBroken = true }
        break
      }
      out.append(contentsOf: UnsafeBufferPointer(start: piece, count: count))
    }
    isInsideLibrary = false
    swap(&bytes, &out)
  }

  /// Whether the connection has a future: something may be received or sent.
  var isAlive: Bool {
    !isClosed && (nghttp2_session_want_write(raw) != 0 || (!isBroken && nghttp2_session_want_read(raw) != 0))
  }

  var wantsToSend: Bool { !isClosed && nghttp2_session_want_write(raw) != 0 }

  /// Frames made and not sent.
  var queuedFrames: Int { nghttp2_session_get_outbound_queue_size(raw) }

  /// Tells the client that the connection ends because of what it did, or because nothing goes on.
  func end(_ code: nghttp2_error_code) {
    nghttp2_session_terminate_session(raw, code.rawValue)
  }

  /// Announces the end: requests that were begun will be answered.
  func announceEnd() {
    isAnnouncing = true
    nghttp2_submit_shutdown_notice(raw)
  }

  /// The announcement is on its way; the answer to a PING behind it shows that the client has it.
  func announcementSent() {
    guard isAnnouncing else { return }
    isAnnouncing = false
    ping()
  }

  /// Takes no further request.
  func refuseFurther() {
    nghttp2_submit_goaway(
      raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), nghttp2_session_get_last_proc_stream_id(raw),
      NGHTTP2_NO_ERROR.rawValue, nil, 0)
  }

  /// Charges the client for work that it makes; `false` when it had its share, and the connection ends.
  func charge(_ cost: Int) -> Bool {
    guard !isBroken else { return false }
    if guardian.spend(cost, nowMilliseconds: server.loop.nowMilliseconds) { return true }
    isBroken = true
    end(NGHTTP2_ENHANCE_YOUR_CALM)
    return false
  }

  /// Asks the client for a sign of life.
  func ping() {
    nghttp2_submit_ping(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
  }

  /// The connection is gone.
  func close() {
    guard !isClosed else { return }
    isClosed = true
    waiting = []
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
  }

  /// Forgets a stream that is over, in constant time.
  func close(_ stream: HTTP2Stream) {
    nghttp2_session_set_stream_user_data(raw, stream.id, nil)
    stream.close()
    let last = streams.removeLast()
    if last !== stream {
      streams[stream.index] = last
      last.index = stream.index
    }
    if streams.isEmpty { idleSinceMilliseconds = server.loop.nowMilliseconds }
  }

  /// Hands a whole request on, now or when the client has taken enough of its replies.
  func begin(_ stream: HTTP2Stream) {
    if unsentBytes > HTTP2Limits.unsentBytesMax || !waiting.isEmpty {
      waiting.append(stream)
    } else {
      stream.dispatch()
    }
  }

  private func beginWaiting() {
    guard !waiting.isEmpty else { return }
    var begun = 0
    while begun < waiting.count, unsentBytes <= HTTP2Limits.unsentBytesMax {
      let stream = waiting[begun]
      begun += 1
      stream.dispatch()
    }
    waiting.removeFirst(min(begun, waiting.count))
  }

  /// Stops a stream that gets nowhere.
  func reset(_ stream: HTTP2Stream, _ code: nghttp2_error_code) {
    nghttp2_submit_rst_stream(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, code.rawValue)
    stream.close()
  }

  /// Once its reply is sent, has a client stop that still sends the request.
  func responseSent(_ id: Int32) {
    guard nghttp2_session_get_stream_remote_close(raw, id) == 0 else { return }
    nghttp2_submit_rst_stream(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), id, NGHTTP2_NO_ERROR.rawValue)
  }

  // MARK: - Replies

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

  /// The client may send so many bytes more: on the connection, and on a stream if it is given.
  func consume(_ count: Int, of stream: HTTP2Stream?) {
    guard count > 0 else { return }
    nghttp2_session_consume_connection(raw, count)
    if let stream, !stream.isClosed { nghttp2_session_consume_stream(raw, stream.id, count) }
  }

  /// Makes up for bytes of a stream that were withheld.
  func widen(_ stream: HTTP2Stream, by count: Int) {
    guard !isClosed else { return }
    nghttp2_session_consume_stream(raw, stream.id, count)
    reportOutput()
  }

  private func reportOutput() {
    if !isInsideLibrary { onOutput() }
  }
}
