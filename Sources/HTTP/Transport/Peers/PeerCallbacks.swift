import CNGHTTP2

/// The options and the table of callbacks that pass the events of nghttp2 to a ``PeerSession``. A loop's relay has one.
final class PeerCallbacks {
  let options: OpaquePointer
  let table: OpaquePointer

  /// The most bytes of a request's head. Peers accept 80 KiB, and the library overestimates.
  private static let headBytesMax = 256 * 1024

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
    nghttp2_option_set_no_auto_window_update(options, 1)
    nghttp2_option_set_max_send_header_block_length(options, Self.headBytesMax)
    // The peer allows more with its settings. Until these arrive, no request should wait.
    nghttp2_option_set_peer_max_concurrent_streams(options, 1024)
    Self.listen(to: table)
  }

  deinit {
    nghttp2_option_del(options)
    nghttp2_session_callbacks_del(table)
  }

  private static func listen(to table: OpaquePointer) {
    nghttp2_session_callbacks_set_on_header_callback(table) { _, frame, name, nameCount, value, count, _, owner in
      guard let frame, let session = PeerCallbacks.session(owner) else { return PeerCallbacks.failure }
      guard let stream = session.stream(frame.pointee.hd.stream_id) else { return 0 }
      let isTaken = stream.received(
        name: UnsafeRawBufferPointer(start: name, count: nameCount),
        value: UnsafeRawBufferPointer(start: value, count: count))
      return isTaken ? 0 : Int32(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue)
    }
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(table) { _, _, id, bytes, count, owner in
      guard let session = PeerCallbacks.session(owner) else { return PeerCallbacks.failure }
      session.received(UnsafeRawBufferPointer(start: bytes, count: count), of: id)
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_recv_callback(table) { _, frame, owner in
      guard let frame, let session = PeerCallbacks.session(owner) else { return PeerCallbacks.failure }
      PeerCallbacks.frameEnded(frame.pointee, session)
      return 0
    }
    nghttp2_session_callbacks_set_on_stream_close_callback(table) { _, id, code, owner in
      PeerCallbacks.session(owner)?.closed(id, code: code)
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_send_callback(table) { _, frame, owner in
      guard let frame, frame.pointee.hd.type == UInt8(NGHTTP2_HEADERS.rawValue) else { return 0 }
      PeerCallbacks.session(owner)?.stream(frame.pointee.hd.stream_id)?.isSent = true
      return 0
    }
    nghttp2_session_callbacks_set_on_frame_not_send_callback(table) { _, frame, _, owner in
      guard let frame, frame.pointee.hd.type == UInt8(NGHTTP2_HEADERS.rawValue) else { return 0 }
      PeerCallbacks.session(owner)?.notSent(frame.pointee.hd.stream_id)
      return 0
    }
    // The only extension frame has no payload.
    nghttp2_session_callbacks_set_pack_extension_callback(table) { _, _, _, _, _ in 0 }
  }

  /// Asks the owner of a stream for the next bytes of the request's body.
  static let read: nghttp2_data_source_read_callback = { _, id, space, count, flags, _, owner in
    guard let flags, let space, let session = PeerCallbacks.session(owner), let stream = session.stream(id),
      let sender = stream.owner
    else { return Int(NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE.rawValue) }
    let next = sender.nextUpload(into: UnsafeMutableRawBufferPointer(start: space, count: count))
    if next.isLast {
      flags.pointee |= UInt32(NGHTTP2_DATA_FLAG_EOF.rawValue)
    } else if next.count == 0 {
      stream.isDeferred = true
      return Int(NGHTTP2_ERR_DEFERRED.rawValue)
    }
    return next.count
  }

  private static let failure = Int32(NGHTTP2_ERR_CALLBACK_FAILURE.rawValue)

  private static func session(_ owner: UnsafeMutableRawPointer?) -> PeerSession? {
    owner.map { Unmanaged<PeerSession>.fromOpaque($0).takeUnretainedValue() }
  }

  private static func frameEnded(_ frame: nghttp2_frame, _ session: PeerSession) {
    let header = frame.hd
    let isEnd = header.flags & UInt8(NGHTTP2_FLAG_END_STREAM.rawValue) != 0
    switch nghttp2_frame_type(UInt32(header.type)) {
    case NGHTTP2_HEADERS, NGHTTP2_DATA:
      guard let stream = session.stream(header.stream_id) else { return }
      if header.type == UInt8(NGHTTP2_HEADERS.rawValue) { stream.headEnded() }
      if isEnd { stream.responseEnded() }
      session.note(stream)
    case NGHTTP2_PING:
      if header.flags & UInt8(NGHTTP2_FLAG_ACK.rawValue) != 0 { session.onPingAnswered() }
    case NGHTTP2_GOAWAY: session.goAwayReceived()
    default: break
    }
  }
}
