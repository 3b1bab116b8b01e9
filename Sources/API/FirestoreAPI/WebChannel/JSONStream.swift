import DatabaseService
import DocumentModel
import Transport
import WireFormat

/// A `Listen` or `Write` stream on a channel. Its first request opens it.
struct JSONStream: ChannelStream {
  private enum Opened {
    case listen(ListenStream)
    case write(WriteStream)
  }

  private let method: ChannelMethod
  private let service: FirestoreService
  private let decoder: StreamRequestDecoder
  private let caller: Caller
  private let wake: @Sendable () -> Void
  private var streamDatabase = StreamDatabase()
  private var opened: Opened?
  private var encoder: StreamJSONEncoder?
  private var message: [UInt8] = []
  private var stopReason: Status?
  private(set) var database: DatabaseID?

  /// The largest buffer that is kept for the next message, in bytes.
  private static let bytesKept = 4 << 10

  init(
    _ method: ChannelMethod, _ service: FirestoreService, _ decoder: StreamRequestDecoder, as caller: Caller,
    wake: @escaping @Sendable () -> Void
  ) {
    self.method = method
    self.service = service
    self.decoder = decoder
    self.caller = caller
    self.wake = wake
  }

  var hasRoom: Bool {
    if case .write(let stream)? = opened { stream.hasRoom } else { true }
  }

  mutating func receive(_ request: [UInt8]) throws {
    switch method {
    case .listen:
      let (request, id) = try decoder.decode(request, &streamDatabase) { (decoder, root, id) throws(WireError) in
        try decoder.listenRequest(root, in: id)
      }
      use(id)
      opened = try opened ?? .listen(ListenStream(service, in: id, as: caller, wake: wake))
      if case .listen(let stream)? = opened { try stream.receive(request) }
    case .write:
      let (request, id) = try decoder.decode(request, &streamDatabase) { (decoder, root, id) throws(WireError) in
        try decoder.writeStreamRequest(root, in: id)
      }
      use(id)
      opened = try opened ?? .write(WriteStream(service, in: id, as: caller, wake: wake))
      if case .write(let stream)? = opened { try stream.receive(request) }
    }
  }

  private mutating func use(_ id: DatabaseID) {
    database = id
    encoder = encoder ?? StreamJSONEncoder(id)
  }

  mutating func pull(_ emit: (UnsafeRawBufferPointer) -> Bool) throws -> BodyProgress {
    if let stopReason, method == .listen || opened == nil { throw stopReason }
    guard let opened, let encoder else { return .waiting }
    defer { if message.capacity > Self.bytesKept { message = [] } }
    switch opened {
    case .listen(let stream):
      let progress = try stream.pull { event in
        message.removeAll(keepingCapacity: true)
        try encoder.append(event, to: &message)
        return message.withUnsafeBytes(emit)
      }
      return progress == .more ? .more : .waiting
    case .write(let stream):
      while let response = try stream.next() {
        message.removeAll(keepingCapacity: true)
        try encoder.append(response, to: &message)
        guard message.withUnsafeBytes(emit) else { return .more }
      }
      return .waiting
    }
  }

  mutating func stop(_ status: Status) {
    stopReason = status
    // The client would repeat a commit that was applied without a response.
    if case .write(let stream)? = opened { stream.stop(status) }
  }

  func end() {
    switch opened {
    case .listen(let stream)?: stream.end()
    case .write(let stream)?: stream.end()
    case nil: break
    }
  }
}
