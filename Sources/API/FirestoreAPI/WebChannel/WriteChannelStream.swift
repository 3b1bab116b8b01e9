import DatabaseService
import DocumentModel
import WireFormat

/// A `Write` stream on a channel.
final class WriteChannelStream: ChannelStream {
  private let service: FirestoreService
  private let decoder: StreamRequestDecoder
  private let caller: Caller
  private let wake: @Sendable () -> Void
  private var target = StreamDatabase()
  private var opened: (stream: WriteStream, encoder: StreamJSONEncoder)?
  private var stopReason: Status?
  private(set) var database: DatabaseID?

  init(
    _ service: FirestoreService, _ decoder: StreamRequestDecoder, as caller: Caller,
    wake: @escaping @Sendable () -> Void
  ) {
    self.service = service
    self.decoder = decoder
    self.caller = caller
    self.wake = wake
  }

  var hasRoom: Bool { opened?.stream.hasRoom ?? true }

  func receive(_ request: [UInt8]) throws {
    let (request, id) = try decoder.decode(request, &target) { (decoder, root, id) throws(WireError) in
      try decoder.writeStreamRequest(root, in: id)
    }
    database = id
    let stream = try opened?.stream ?? WriteStream(service, in: id, as: caller, wake: wake)
    if opened == nil { opened = (stream, StreamJSONEncoder(id)) }
    try stream.receive(request)
  }

  func pull(_ emit: (UnsafeRawBufferPointer) -> Bool) throws -> ChannelStreamProgress {
    if let stopReason, opened == nil { throw stopReason }
    guard let (stream, encoder) = opened else { return .waiting }
    var message: [UInt8] = []
    while let response = try stream.next() {
      message.removeAll(keepingCapacity: true)
      try encoder.append(response, to: &message)
      guard message.withUnsafeBytes(emit) else { return .more }
    }
    return .waiting
  }

  func stop(_ status: Status) {
    stopReason = status
    // The client would repeat a commit that was applied without a response.
    opened?.stream.stop(status)
  }

  func end() { opened?.stream.end() }
}
