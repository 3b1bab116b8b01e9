import DatabaseService
import DocumentModel
import Transport

/// The stream that a channel carries, `Listen` or `Write`, with JSON requests and responses. Use it on the
/// channel's loop only.
protocol ChannelStream {
  /// The stream's database, once it is known. Errors name documents in it.
  var database: DatabaseID? { get }

  /// Whether the stream can accept a request now. If not, it can after messages were pulled.
  var hasRoom: Bool { get }

  /// Handles a request: the JSON of one `ListenRequest` or `WriteRequest`.
  ///
  /// - Throws: an error that ends the stream.
  mutating func receive(_ request: [UInt8]) throws

  /// Calls `emit` with the JSON of each available message until it returns `false`. After `more`, the channel pulls
  /// again when other requests had their turn; after `waiting`, when the stream wakes it.
  ///
  /// - Throws: an error that ends the stream.
  mutating func pull(_ emit: (UnsafeRawBufferPointer) -> Bool) throws -> BodyProgress

  /// Makes a later pull throw an error, after the responses to accepted requests.
  mutating func stop(_ status: Status)

  /// Ends the stream. It is not used afterwards.
  func end()
}

/// The method that a channel carries.
package enum ChannelMethod: CaseIterable, Sendable {
  case listen, write

  /// The path of the method's channels.
  var path: StaticString {
    switch self {
    case .listen: "/google.firestore.v1.Firestore/Listen/channel"
    case .write: "/google.firestore.v1.Firestore/Write/channel"
    }
  }
}

/// A stream that fails at once. Its handshake still succeeds, because only a channel can carry an error's code.
struct FailedStream: ChannelStream {
  let status: Status

  var database: DatabaseID? { nil }
  var hasRoom: Bool { true }
  func receive(_ request: [UInt8]) throws {}
  func pull(_ emit: (UnsafeRawBufferPointer) -> Bool) throws -> BodyProgress { throw status }
  func stop(_ status: Status) {}
  func end() {}
}
