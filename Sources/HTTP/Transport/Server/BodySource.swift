/// What a producer says after it was asked for a slice.
package enum BodyProgress: Sendable {
  /// There may be more: ask again when there is room.
  case more
  /// Nothing to send now: ask again after `Exchange.resume()`.
  case waiting
  /// The slice was the last one.
  case finished
  /// The reply cannot be completed: the connection is cut, over HTTP/2 the stream reset, so that the client does not
  /// take it for whole.
  case failed
}

/// Produces a streamed reply, slice by slice, only as fast as the client reads. Belongs to the exchange's loop.
package protocol BodySource: AnyObject {
  /// Appends up to about `Exchange.sliceBytes` to `out`, and touches nothing that was in it before.
  func nextSlice(into out: inout [UInt8]) -> BodyProgress

  /// Adds the fields that follow the body. Asked once, after `.finished`, and only over HTTP/2.
  func addTrailers(to trailers: inout HeaderWriter)
}

extension BodySource {
  /// Adds nothing.
  package func addTrailers(to trailers: inout HeaderWriter) {}
}
