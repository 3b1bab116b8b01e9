import DatabaseService
import DocumentModel

/// The call that a channel carries, `Listen` or `Write`: JSON texts in, JSON texts out. Belongs to the channel's loop.
protocol ChannelStream: AnyObject {
  /// The database the call is for, once that is known: errors name documents in it.
  var database: DatabaseID? { get }

  /// Whether it takes another request now; where not, it does after messages were pulled.
  var hasRoom: Bool { get }

  /// Takes a request, the JSON of one `ListenRequest` or `WriteRequest`.
  /// - Throws: what ends the call.
  func receive(_ request: [UInt8]) throws

  /// Calls `emit` with the JSON of each message there is, until it returns `false`.
  /// - Throws: what ends the call.
  func pull(_ emit: (UnsafeRawBufferPointer) -> Bool) throws -> ChannelStreamProgress

  /// Has a pull throw an error, as soon as that harms nothing: what was begun is answered first.
  func stop(_ status: Status)

  /// Ends the call; nothing is asked of it any more.
  func end()
}

/// How a pull ended.
enum ChannelStreamProgress {
  /// There may be more: pull again, after others had their turn.
  case more
  /// There is nothing now; the call says so when there is.
  case waiting
  /// The call came to its end.
  case finished
}

/// What a channel carries, by its path.
enum ChannelMethod: Sendable {
  case listen, write
}

/// A call that fails at once: the handshake has succeeded then, since only a channel can carry the code of an error.
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
