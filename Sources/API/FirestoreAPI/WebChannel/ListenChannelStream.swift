import DatabaseService
import DocumentModel
import WireFormat

/// A `Listen` stream on a channel.
final class ListenChannelStream: ChannelStream {
  private let decoder: StreamRequestDecoder
  private let session: ListenSession
  private var target = StreamDatabase()
  private var encoder: StreamJSONEncoder?
  private var message: [UInt8] = []
  private var stopReason: Status?
  private(set) var database: DatabaseID?

  /// The largest buffer that is kept for the next message, in bytes.
  private static let bytesKept = 4 << 10

  init(
    _ service: FirestoreService, _ decoder: StreamRequestDecoder, as caller: Caller,
    wake: @escaping @Sendable () -> Void
  ) {
    self.decoder = decoder
    session = ListenSession(service, as: caller, wake: wake)
  }

  var hasRoom: Bool { true }

  func receive(_ request: [UInt8]) throws {
    let (request, id) = try decoder.decode(request, &target) { (decoder, root, id) throws(WireError) in
      try decoder.listenRequest(root, in: id)
    }
    if encoder == nil {
      database = id
      encoder = StreamJSONEncoder(id)
    }
    try session.receive(request, in: id)
  }

  func pull(_ emit: (UnsafeRawBufferPointer) -> Bool) throws -> ChannelStreamProgress {
    if let stopReason { throw stopReason }
    guard let encoder else { return .waiting }
    defer { if message.capacity > Self.bytesKept { message = [] } }
    let progress = try session.pull { event in
      message.removeAll(keepingCapacity: true)
      try encoder.append(event, to: &message)
      return message.withUnsafeBytes(emit)
    }
    return switch progress {
    case .more: .more
    case .waiting: .waiting
    }
  }

  func stop(_ status: Status) { stopReason = status }

  func end() { session.end() }
}
