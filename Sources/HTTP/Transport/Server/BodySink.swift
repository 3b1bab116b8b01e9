/// Takes the body of a request piece by piece while its reply may be under way. Belongs to the exchange's loop.
///
/// What became of the client is told by `Exchange.onClose`; after that, or once the reply is complete, nothing is called.
package protocol BodySink: AnyObject {
  /// Takes the next bytes, at most 64 KiB; they are gone when the call returns. The client may send as many more,
  /// unless `Exchange.pauseBody()` was called.
  func received(_ bytes: UnsafeRawBufferPointer)

  /// The body is whole.
  func ended()
}
