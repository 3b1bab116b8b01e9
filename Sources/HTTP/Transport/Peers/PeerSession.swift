import CNGHTTP2

/// The client side of an HTTP/2 connection, independent of its socket: takes requests and received bytes, and returns
/// bytes to send. nghttp2 does the framing, the header compression and the flow control. Belongs to its loop.
final class PeerSession {
  /// Bytes of one response that may wait for its client.
  static let streamWindowBytes = 256 * 1024
  /// The same for all responses together. The window reopens when bytes arrive, so no response stops the others.
  static let connectionWindowBytes = 16 * 1024 * 1024
  /// The type of the frame that asks a peer to end an endless response, because the client's node stops.
  static let endFrame: UInt8 = 0xf0

  /// Called when the peer answers a PING.
  var onPingAnswered: () -> Void = {}
  /// The streams by id.
  private(set) var streams: [Int32: PeerStream] = [:]
  /// Whether the peer accepts no further requests on this connection.
  private(set) var isDraining = false
  private(set) var isBroken = false
  /// The streams whose owners must learn that more has arrived.
  private var noted: [PeerStream] = []
  /// The complete ones among them, which the library has closed.
  private var gone: Set<Int32> = []
  private var failed: [(PeerStream, PeerFailure)] = []
  private let raw: OpaquePointer
  private let callbacks: PeerCallbacks

  /// - Returns: `nil` if memory is exhausted.
  init?(_ callbacks: PeerCallbacks) {
    var session: OpaquePointer?
    guard nghttp2_session_client_new2(&session, callbacks.table, nil, callbacks.options) == 0, let session else {
      return nil
    }
    raw = session
    self.callbacks = callbacks
    nghttp2_session_set_user_data(raw, Unmanaged.passUnretained(self).toOpaque())
    var settings = [
      nghttp2_settings_entry(
        settings_id: Int32(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE.rawValue), value: UInt32(Self.streamWindowBytes)),
      nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_ENABLE_PUSH.rawValue), value: 0),
      nghttp2_settings_entry(settings_id: Int32(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES.rawValue), value: 1),
    ]
    nghttp2_submit_settings(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), &settings, settings.count)
    nghttp2_session_set_local_window_size(
      raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), 0, Int32(Self.connectionWindowBytes))
  }

  deinit {
    nghttp2_session_del(raw)
  }

  // MARK: - Requests

  /// Begins a request. Returns `nil` if the connection takes none.
  ///
  /// - Parameters:
  ///   - hasBody: whether the owner is asked for a body. If not, the head ends the request.
  ///   - mayPassOn: whether the peer may pass the request on to the owner of the project.
  func submit(
    _ head: RelayedHead, hasBody: Bool, mayPassOn: Bool = false, owner: any PeerStreamOwner
  ) -> PeerStream? {
    guard !isDraining, !isBroken else { return nil }
    var provider = nghttp2_data_provider()
    provider.read_callback = PeerCallbacks.read
    let id = head.withFields(mayPassOn: mayPassOn) { list, count in
      if hasBody { return nghttp2_submit_request(raw, nil, list, count, &provider, nil) }
      return nghttp2_submit_request(raw, nil, list, count, nil, nil)
    }
    guard id > 0 else {
      // The ids of the connection are used up, or memory is exhausted.
      isDraining = true
      return nil
    }
    let stream = PeerStream(id: id, owner: owner)
    streams[id] = stream
    return stream
  }

  /// Continues the body of a request whose owner had nothing to send.
  func resumeUpload(_ stream: PeerStream) {
    guard stream.isDeferred, !stream.isClosed else { return }
    stream.isDeferred = false
    nghttp2_session_resume_data(raw, stream.id)
  }

  /// Lets the peer send as many bytes more of a response.
  func widen(_ stream: PeerStream, by count: Int) {
    guard !stream.isClosed, count > 0 else { return }
    nghttp2_session_consume_stream(raw, stream.id, count)
  }

  /// Ends a stream whose owner has left.
  func cancel(_ stream: PeerStream) {
    guard !stream.isClosed else { return }
    _ = stream.close()
    streams[stream.id] = nil
    nghttp2_submit_rst_stream(
      raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, NGHTTP2_CANCEL.rawValue)
  }

  /// Asks the peer to end an endless response.
  func announceEnd(of stream: PeerStream) {
    guard !stream.isClosed else { return }
    nghttp2_submit_extension(raw, Self.endFrame, UInt8(NGHTTP2_FLAG_NONE.rawValue), stream.id, nil)
  }

  func ping() {
    nghttp2_submit_ping(raw, UInt8(NGHTTP2_FLAG_NONE.rawValue), nil)
  }

  /// Ends the connection in an orderly way.
  func end() {
    isDraining = true
    nghttp2_session_terminate_session(raw, NGHTTP2_NO_ERROR.rawValue)
  }

  // MARK: - Bytes

  /// Processes bytes of the peer. Call ``deliver()`` after it.
  func receive(_ bytes: UnsafeRawBufferPointer) {
    guard !isBroken else { return }
    let count = nghttp2_session_mem_recv(raw, bytes.assumingMemoryBound(to: UInt8.self).baseAddress, bytes.count)
    if count < 0 { isBroken = true }
  }

  /// Appends up to about `bytesMax` bytes to send. Call ``deliver()`` after it.
  func send(into out: inout [UInt8], bytesMax: Int) {
    while out.count < bytesMax, !isBroken {
      var piece: UnsafePointer<UInt8>?
      let count = nghttp2_session_mem_send(raw, &piece)
      guard count > 0 else {
        if count < 0 { isBroken = true }
        return
      }
      out.append(contentsOf: UnsafeBufferPointer(start: piece, count: count))
    }
  }

  /// Whether the connection can still receive or send.
  var isAlive: Bool {
    !isBroken && (nghttp2_session_want_read(raw) != 0 || nghttp2_session_want_write(raw) != 0)
  }

  /// Tells the owners of streams about what has happened to these.
  func deliver() {
    while !noted.isEmpty || !failed.isEmpty {
      let advanced = noted
      noted = []
      for stream in advanced {
        stream.isNoted = false
        stream.owner?.responseAdvanced(stream)
        if gone.contains(stream.id) { release(stream) }
      }
      let ended = failed
      failed = []
      for (stream, failure) in ended { stream.close()?.streamFailed(stream, failure) }
    }
  }

  /// Ends all streams, because the connection is lost.
  func close() {
    deliver()
    isBroken = true
    for stream in streams.values.sorted(by: { $0.id < $1.id }) { fail(stream) }
    deliver()
  }

  // MARK: - Events of nghttp2

  func stream(_ id: Int32) -> PeerStream? { streams[id] }

  func received(_ bytes: UnsafeRawBufferPointer, of id: Int32) {
    nghttp2_session_consume_connection(raw, bytes.count)
    guard let stream = streams[id] else { return }
    stream.received(bytes)
    note(stream)
  }

  func note(_ stream: PeerStream) {
    guard !stream.isNoted else { return }
    stream.isNoted = true
    noted.append(stream)
  }

  func goAwayReceived() { isDraining = true }

  /// Called when the library has closed a stream.
  func closed(_ id: Int32, code: UInt32) {
    guard let stream = streams[id] else { return }
    if stream.isEnded {
      gone.insert(id)
      if !stream.isNoted { release(stream) }
    } else {
      fail(stream, isRefused: code == NGHTTP2_REFUSED_STREAM.rawValue)
    }
  }

  /// Called when the head of a request cannot be sent.
  func notSent(_ id: Int32) {
    guard let stream = streams[id] else { return }
    fail(stream, isRefused: true)
  }

  /// Forgets a stream whose response is complete. Its owner may still take the rest of it.
  private func release(_ stream: PeerStream) {
    gone.remove(stream.id)
    streams[stream.id] = nil
    _ = stream.close()
  }

  private func fail(_ stream: PeerStream, isRefused: Bool = false) {
    streams[stream.id] = nil
    if stream.isEnded { return release(stream) }
    failed.append((stream, isRefused || !stream.isSent ? .notProcessed : .mayHaveRun))
  }
}
