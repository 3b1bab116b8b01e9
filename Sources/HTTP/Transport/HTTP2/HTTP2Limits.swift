import CNGHTTP2

/// The bounds that HTTP/2 adds to those of the configuration.
enum HTTP2Limits {
  /// Bytes of one request's body that a client may send ahead of what was taken.
  static let streamWindowBytes = 256 * 1024
  /// The same for all requests of a connection together.
  static let connectionWindowBytes = 1024 * 1024
  /// Bytes of finished replies that wait for a client to take them; above it, further requests are not begun.
  static let unsentBytesMax = 1024 * 1024
  /// Frames that wait to be sent; above it, a connection is not read until the client has read.
  static let queuedFramesMax = 2048
  /// Compression state of replies: they repeat few fields, so a small table serves them. That of requests has the
  /// protocol's 4,096 bytes.
  static let encoderTableBytes = 1024
  /// Frames a header block may be continued by, beyond those its size needs.
  static let continuationsMax = 8
  /// Bytes of one request's head that are not charged to the loop's budget.
  static let headBytesFree = 2048
  /// While a server drains: how long clients have to learn of it before further requests are turned away.
  static let drainNoticeMilliseconds = 1000

  /// What every connection is told at its start.
  static func settings(_ configuration: TransportConfiguration) -> [nghttp2_settings_entry] {
    [
      entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, configuration.streamsMax),
      entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, streamWindowBytes),
      entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, configuration.headerBytesMax),
      // The old priorities would let a client make the server keep a tree of its streams.
      entry(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
    ]
  }

  private static func entry(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
    nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(value))
  }
}
