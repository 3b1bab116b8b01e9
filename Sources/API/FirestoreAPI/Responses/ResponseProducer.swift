import DatabaseService
import Transport
import WireFormat

/// A producer of the messages of a streamed response, as fast as the client reads them.
protocol ResponseProducer: AnyObject {
  associatedtype Message: EncodableMessage
  /// Calls `emit` for each message until it returns `false` or no messages are left. Returns whether none are left.
  /// The values that a message borrows are valid only during the call of `emit`.
  func produce(_ emit: (Message) throws -> Bool) throws -> Bool
  /// Whether the producer waits for a resource of the server, so that it would produce nothing. If so, calls `wake`
  /// once, on any thread, when it can continue.
  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool
}

extension ResponseProducer {
  /// Never waits.
  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { false }
}

/// An encoder of a response's messages in one format.
protocol ResponseEncoder {
  /// The number of encoded bytes that were not taken yet.
  var byteCount: Int { get }
  /// Begins the response.
  mutating func begin()
  /// Encodes a message.
  mutating func append(_ message: some EncodableMessage) throws
  /// Writes something without meaning, if the format allows it, so that a disconnected client is noticed during a
  /// long search.
  mutating func idle()
  /// Ends the response.
  mutating func end()
  /// Ends a response that has begun but cannot be completed.
  mutating func fail(_ status: Status)
  /// Appends the encoded bytes to `out` and removes them.
  mutating func take(into out: inout [UInt8])
  /// Adds the trailer fields of a response that has ended or failed.
  func addTrailers(to trailers: inout HeaderWriter)
}

extension ResponseEncoder {
  /// Writes nothing.
  mutating func idle() {}
  /// Adds nothing.
  func addTrailers(to trailers: inout HeaderWriter) {}
}
