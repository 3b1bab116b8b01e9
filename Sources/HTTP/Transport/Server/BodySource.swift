/// The outcome of a request for a slice.
package enum BodyProgress: Sendable {
  /// There may be more bytes. Ask again as soon as the output has room.
  case more
  /// Nothing to send now. Ask again after `Exchange.resume()`.
  case waiting
  /// The slice was the last one.
  case finished
  /// The response cannot be completed. The server cuts the HTTP/1 connection or resets the HTTP/2 stream, so that
  /// the client does not take the response for complete.
  case failed
}

/// A producer of a streamed response. It is asked for slices only as fast as the client reads. Belongs to the
/// exchange's loop.
package protocol BodySource: AnyObject {
  /// Appends up to about `Exchange.sliceBytes` to `out`. Must not change the bytes already in `out`.
  func nextSlice(into out: inout [UInt8]) -> BodyProgress

  /// Bytes that were produced but not passed to `nextSlice` yet. They count toward the bytes that the connection holds.
  var heldBytes: Int { get }

  /// Adds the fields that follow the body. Called once, after `.finished`, and only over HTTP/2.
  func addTrailers(to trailers: inout HeaderWriter)
}

extension BodySource {
  /// Holds no bytes.
  package var heldBytes: Int { 0 }

  /// Adds no trailers.
  package func addTrailers(to trailers: inout HeaderWriter) {}
}
