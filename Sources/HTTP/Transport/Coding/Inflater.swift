import CZlib

/// A zlib state that decodes gzip members one after another.
final class Inflater {
  /// The stream for zlib's calls. The caller sets its fields.
  let stream: UnsafeMutablePointer<z_stream>
  private let isReady: Bool

  init() {
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    isReady = czlib_inflate_init_gzip(stream) == Z_OK
  }

  deinit {
    if isReady { inflateEnd(stream) }
    stream.deallocate()
  }

  /// Prepares for the next member. Returns `false` if zlib had no memory for the state.
  func reset() -> Bool { isReady && inflateReset(stream) == Z_OK }
}
