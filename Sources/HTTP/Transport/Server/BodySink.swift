/// Receives a request's body piece by piece, possibly while the response is under way. Belongs to the exchange's
/// loop.
///
/// Use `Exchange.onClose` to learn that the client disconnected. After that, or after the response is complete, no
/// method of the sink is called.
package protocol BodySink: AnyObject {
  /// Takes the next bytes, at most 64 KiB, valid only during the call. The client may then send as many more, unless
  /// the handler called `Exchange.pauseBody()`.
  func received(_ bytes: UnsafeRawBufferPointer)

  /// Called once, after the last byte of the body.
  func ended()
}
