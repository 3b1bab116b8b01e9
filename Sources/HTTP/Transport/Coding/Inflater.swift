import CZlib

/// A state of zlib that reads gzip members, one after the other.
final class Inflater {
  /// What zlib's calls take; its fields are the caller's to set.
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

  /// Begins a member; `false` where zlib had no memory for the state.
  func reset() -> Bool { isReady && inflateReset(stream) == Z_OK }
}
