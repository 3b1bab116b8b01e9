import CNGHTTP2

/// The limits for HTTP/2, in addition to those in the configuration.
enum HTTP2Limits {
  /// Bytes of one request's body that a client may send before the handler takes them.
  static let streamWindowBytes = 256 * 1024
  /// The same for all requests of a connection together.
  static let connectionWindowBytes = 1024 * 1024
  /// Bytes of responses that wait for the client to take them. Above this, the server starts no further requests of
  /// the connection and produces no more of the responses that have begun.
  static let unsentBytesMax = 1024 * 1024
  /// Seconds until the server ends a response of which the client takes no byte, while others of the connection wait
  /// because of `unsentBytesMax`.
  static let crowdedStallSeconds = 10
  /// Frames that wait to be sent. Above this, the server stops reading the connection until the client reads.
  static let queuedFramesMax = 2048
  /// Compression state for responses. They repeat few fields, so a small table suffices. The state for requests has
  /// the protocol's 4,096 bytes.
  static let encoderTableBytes = 1024
  /// Frames that may continue a header block, beyond those that its size requires.
  static let continuationsMax = 8
  /// Bytes of one request's head that are not charged to the loop's budget.
  static let headBytesFree = 2048
  /// Milliseconds between the announcement of a shutdown and the refusal of further requests.
  static let drainNoticeMilliseconds = 1000

  /// Returns the SETTINGS that the server sends at the start of every connection.
  static func settings(_ configuration: TransportConfiguration) -> [nghttp2_settings_entry] {
    [
      entry(NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, configuration.streamsMax),
      entry(NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, streamWindowBytes),
      entry(NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, configuration.headerBytesMax),
      // The old priorities would let a client make the server maintain a tree of its streams.
      entry(NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1),
    ]
  }

  private static func entry(_ id: nghttp2_settings_id, _ value: Int) -> nghttp2_settings_entry {
    nghttp2_settings_entry(settings_id: Int32(id.rawValue), value: UInt32(value))
  }
}
