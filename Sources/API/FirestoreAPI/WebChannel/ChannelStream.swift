import DatabaseService
import DocumentModel

/// The stream that a channel carries, `Listen` or `Write`, with JSON requests and responses. Use it on the
/// channel's loop only.
protocol ChannelStream: AnyObject {
  /// The stream's database, once it is known. Errors name documents in it.
  var database: DatabaseID? { get }

  /// Whether the stream can accept a request now. If not, it can after messages were pulled.
  var hasRoom: Bool { get }

  /// Handles a request: the JSON of one `ListenRequest` or `WriteRequest`.
  ///
  /// - Throws: an error that ends the stream.
  func receive(_ request: [UInt8]) throws

  /// Calls `emit` with the JSON of each available message until it returns `false`.
  ///
  /// - Throws: an error that ends the stream.
  func pull(_ emit: (UnsafeRawBufferPointer) -> Bool) throws -> ChannelStreamProgress

  /// Makes a later pull throw an error, after the responses to accepted requests.
  func stop(_ status: Status)

  /// Ends the stream. It is not used afterwards.
  func end()
}

/// The result of a pull.
enum ChannelStreamProgress {
  /// More messages may be available. Pull again after other requests had their turn.
  case more
  /// No message is available. The stream wakes the channel when one is.
  case waiting
  /// The stream has ended.
  case finished
}

/// The method that a channel carries.
package enum ChannelMethod: Sendable {
  case listen, write
}

/// A stream that fails at once. Its handshake still succeeds, because only a channel can carry an error's code.
final class FailedChannelStream: ChannelStream {
  private let status: Status

  init(_ status: Status) { self.status = status }

  var database: DatabaseID? { nil }
  var hasRoom: Bool { true }
  func receive(_ request: [UInt8]) throws {}
  func pull(_ emit: (UnsafeRawBufferPointer) -> Bool) throws -> ChannelStreamProgress { throw status }
  func stop(_ status: Status) {}
  func end() {}
}
