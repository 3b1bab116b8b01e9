import CNGHTTP2

/// The settings of nghttp2, and the callbacks that pass its events to the multiplexer and its streams. Each loop has
/// one. nghttp2 copies both parts for each connection.
final class HTTP2Callbacks {
  let options: OpaquePointer
  let table: OpaquePointer

  /// - Returns: `nil` if memory is exhausted.
  init?() {
    var options: OpaquePointer?
    var table: OpaquePointer?
    guard nghttp2_option_new(&options) == 0, let options else { return nil }
    guard nghttp2_session_callbacks_new(&table) == 0, let table else {
      nghttp2_option_del(options)
      return nil
    }
    self.options = options
    self.table = table
    // Windows reopen when handlers take the body, not when it arrives.
    nghttp2_option_set_no_auto_window_update(options, 1)
    nghttp2_option_set_max_deflate_dynamic_table_size(options, HTTP2Limits.encoderTableBytes)
    nghttp2_option_set_max_continuations(options, HTTP2Limits.continuationsMax)
    // `HTTP2FloodGuard` counts resets, including those that the server has to send.
    nghttp2_option_set_stream_reset_rate_limit(options, 1_000_000, 1_000_000)
    // Without this, nghttp2 skips unknown frames silently.
    for type in Self.unknownFrames { nghttp2_option_set_user_recv_extension_type(options, type) }
    Self.listen(to: table)
  }

  /// The types of frames that RFC 9113 does not define.
  private static let unknownFrames: ClosedRange<UInt8> = 10...255

  deinit {
    nghttp2_option_del(options)
    nghttp2_session_callbacks_del(table)
  }

  private static func listen(to table: OpaquePointer) {
    nghttp2_session_callbacks_set_on_begin_frame_callback(table) { _, header, owner in
      guard let header, let multiplexer = HTTP2Callbacks.multiplexer(owner) else { return HTTP2Callbacks.failure }
      return HTTP2Callbacks.frameBegins(header.pointee, multiplexer)
    }
    nghttp2_session_callbacks_set_unpack_extension_callback(table) { _, _, _, _ in
      Int32(NGHTTP2_ERR_CANCEL.rawValue)
    }
    nghttp2_session_callbacks_set_on_begin_headers_callback(table) { _, frame, owner in
      guard let frame, let multiplexer = HTTP2Callbacks.multiplexer(owner) else { return HTTP2Callbacks.failure }
      if frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST { multiplexer.open(frame.pointee.hd.stream_id) }
      return 0
    }
    nghttp2_session_callbacks_set_on_header_callback(table) { session, frame, name, nameCount, value, count, _, owner in
      guard let frame, let multiplexer = HTTP2Callbacks.multiplexer(owner), multiplexer.mayExpand(by: nameCount + count)
      else { return HTTP2Callbacks.failure }
      // Trailers of requests are ignored.
      guard frame.pointee.headers.cat == NGHTTP2_HCAT_REQUEST,
        let stream = HTTP2Callbacks.stream(session, frame.pointee.hd.stream_id)
      else { return 0 }
      stream.received(
        name: UnsafeRawBufferPointer(start: name, count: nameCount),
        value: UnsafeRawBufferPointer(start: value, count: count))
      return 0
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(table) { session, _, id, bytes, count, owner in
      guard let multiplexer = HTTP2Callbacks.multiplexer(owner) else { return HTTP2Callbacks.failure }
      if let stream = HTTP2Callbacks.stream(session, id) {
        stream.received(UnsafeRawBufferPointer(start: bytes, count: count))
      } else {
        multiplexer.consume(count, of: nil)
      }
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(table) { session, frame, owner in
      guard let frame, let multiplexer = HTTP2Callbacks.multiplexer(owner) else { return HTTP2Callbacks.failure }
      HTTP2Callbacks.frameEnded(frame.pointee, session, multiplexer)
      return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(table) { session, id, _, owner in
      guard let multiplexer = HTTP2Callbacks.multiplexer(owner) else { return HTTP2Callbacks.failure }
      if let stream = HTTP2Callbacks.stream(session, id) { multiplexer.close(stream) }
      return 0
    }
    nghttp2_session_callbacks_set_send_data_callback(table) { _, _, header, count, source, owner in
      guard let header, let multiplexer = HTTP2Callbacks.multiplexer(owner), let pointer = source?.pointee.ptr
      else { return HTTP2Callbacks.failure }
      let stream = Unmanaged<HTTP2Stream>.fromOpaque(pointer).takeUnretainedValue()
      multiplexer.out.append(contentsOf: UnsafeBufferPointer(start: header, count: 9))
      stream.append(count, to: &multiplexer.out)
      return multiplexer.out.count < multiplexer.outBytesMax ? 0 : Int32(NGHTTP2_ERR_PAUSE.rawValue)
    }
    nghttp2_session_callbacks_set_on_frame_send_callback(table) { _, frame, owner in
      guard let frame, let multiplexer = HTTP2Callbacks.multiplexer(owner) else { return HTTP2Callbacks.failure }
      HTTP2Callbacks.frameSent(frame.pointee.hd, code: frame.pointee.rst_stream.error_code, multiplexer)
      return 0
    }
  }

  /// Asks a stream for the next frame of its response.
  static let read: nghttp2_data_source_read_callback = { _, _, _, bytesMax, flags, source, _ in
    guard let flags, let pointer = source?.pointee.ptr else { return Int(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue) }
    let stream = Unmanaged<HTTP2Stream>.fromOpaque(pointer).takeUnretainedValue()
    return stream.nextFrame(bytesMax: bytesMax, flags: &flags.pointee)
  }

  private static let failure = Int32(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)

  private static func multiplexer(_ owner: UnsafeMutableRawPointer?) -> HTTP2Multiplexer? {
    owner.map { Unmanaged<HTTP2Multiplexer>.fromOpaque($0).takeUnretainedValue() }
  }

  private static func stream(_ session: OpaquePointer?, _ id: Int32) -> HTTP2Stream? {
    nghttp2_session_get_stream_user_data(session, id).map {
      Unmanaged<HTTP2Stream>.fromOpaque($0).takeUnretainedValue()
    }
  }

  /// Charges the client for frames without useful content, which includes frames of unknown types.
  private static func frameBegins(_ header: nghttp2_frame_hd, _ multiplexer: HTTP2Multiplexer) -> Int32 {
    let cost: Int
    switch nghttp2_frame_type(UInt32(header.type)) {
    case NGHTTP2_HEADERS, NGHTTP2_CONTINUATION:
      cost = 0
      multiplexer.headerBlockReceived(header.length, isFirst: header.type == UInt8(NGHTTP2_HEADERS.rawValue))
    case NGHTTP2_DATA: cost = header.length == 0 && header.flags & endStream == 0 ? HTTP2FloodGuard.controlCost : 0
    case NGHTTP2_WINDOW_UPDATE: cost = HTTP2FloodGuard.windowCost
    case NGHTTP2_RST_STREAM: cost = HTTP2FloodGuard.resetCost
    case _ where header.type == PeerSession.endFrame && multiplexer.server.isOfPeers:
      // The node that faces the client stops, so an endless response should end.
      cost = 0
      multiplexer.streams.first { $0.id == header.stream_id }?.exchange.announceShutdown()
    default: cost = HTTP2FloodGuard.controlCost
    }
    return cost == 0 || multiplexer.charge(cost) ? 0 : failure
  }

  private static func frameEnded(_ frame: nghttp2_frame, _ session: OpaquePointer?, _ multiplexer: HTTP2Multiplexer) {
    let header = frame.hd
    let isEnd = header.flags & endStream != 0
    switch nghttp2_frame_type(UInt32(header.type)) {
    case NGHTTP2_HEADERS:
      multiplexer.headSinceMilliseconds = nil
      guard let stream = stream(session, header.stream_id) else { return }
      if frame.headers.cat == NGHTTP2_HCAT_REQUEST { stream.headEnded() }
      if isEnd { stream.requestEnded() }
    case NGHTTP2_DATA:
      if isEnd, let stream = stream(session, header.stream_id) { stream.requestEnded() }
    case NGHTTP2_PING:
      if header.flags & acknowledgement != 0 { multiplexer.onPingAnswered() }
    default: break
    }
  }

  private static func frameSent(_ header: nghttp2_frame_hd, code: UInt32, _ multiplexer: HTTP2Multiplexer) {
    switch nghttp2_frame_type(UInt32(header.type)) {
    case NGHTTP2_DATA, NGHTTP2_HEADERS:
      multiplexer.guardian.gain(HTTP2FloodGuard.responseGain)
      if header.flags & endStream != 0 { multiplexer.responseSent(header.stream_id) }
    case NGHTTP2_RST_STREAM where code != NGHTTP2_NO_ERROR.rawValue:
      _ = multiplexer.charge(HTTP2FloodGuard.resetCost)
    case NGHTTP2_GOAWAY:
      multiplexer.announcementSent()
    default: break
    }
  }

  private static let endStream = UInt8(NGHTTP2_FLAG_END_STREAM.rawValue)
  private static let acknowledgement = UInt8(NGHTTP2_FLAG_ACK.rawValue)
}
