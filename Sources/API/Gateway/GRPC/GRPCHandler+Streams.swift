import DatabaseService
import DocumentModel
import Transport
import WireFormat

// Listen, Write and Watch (of the server's health).
extension GRPCHandler {
  /// Starts a bidirectional stream. Returns `nil` if the path is another method, or after an error response.
  func openBody(
    _ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ exchange: Exchange
  ) -> (any BodySink)? {
    guard let method = GRPCStreamMethods(path), Self.isGRPC(request) else { return nil }
    let call = GRPCCall(exchange, GRPCRequestHead(request))
    do {
      try call.head.check()
      call.caller = try authenticator.caller(of: request)
      let database = StreamDatabase(request)
      let stream =
        switch method {
        case .listen: GRPCStream(call, GRPCListen(self, call, database))
        case .write: GRPCStream(call, GRPCWrite(self, call, database))
        case .watchHealth: GRPCStream(call, GRPCHealthWatch(call))
        }
      call.stream(stream)
      call.watchDeadline()
      return stream
    } catch {
      call.fail(error)
      return nil
    }
  }
}

/// The methods whose requests are read message by message.
private enum GRPCStreamMethods {
  case listen, write, watchHealth

  init?(_ path: UnsafeRawBufferPointer) {
    if path.elementsEqual("/google.firestore.v1.Firestore/Listen".utf8) {
      self = .listen
    } else if path.elementsEqual("/google.firestore.v1.Firestore/Write".utf8) {
      self = .write
    } else if path.elementsEqual("/grpc.health.v1.Health/Watch".utf8) {
      self = .watchHealth
    } else {
      return nil
    }
  }
}

/// Handles the method Listen: the targets of a client.
private final class GRPCListen: GRPCStreamMethod {
  private let handler: GRPCHandler
  private let call: GRPCCall
  private var database: StreamDatabase
  private var opened: (stream: ListenStream, encoder: StreamProtobufEncoder)?
  private var stopReason: Status?

  init(_ handler: GRPCHandler, _ call: GRPCCall, _ database: StreamDatabase) {
    self.handler = handler
    self.call = call
    self.database = database
  }

  var hasRoom: Bool { true }
  var isSettled: Bool { opened?.stream.isSettled ?? true }

  func receive(_ message: UnsafeRawBufferPointer) throws {
    let id = try database.of(try ProtobufMessageDecoder.streamDatabase(message))
    let request = try handler.decode(message, for: id, call) { try $0.listenRequest(message, in: id) }
    let stream = try opened?.stream ?? ListenStream(handler.service, in: id, as: call.caller, wake: call.wake)
    if opened == nil { opened = (stream, StreamProtobufEncoder(id)) }
    try stream.receive(request)
  }

  func pull(into out: inout [UInt8]) throws -> Bool {
    if let stopReason { throw stopReason }
    guard let (stream, encoder) = opened else { return false }
    let start = out.count
    let progress = try stream.pull { event in
      try call.compression.frame(in: &out) { try encoder.append(event, to: &$0) }
      return out.count - start < Exchange.sliceBytes
    }
    return progress == .more
  }

  func stop(_ status: Status) { stopReason = status }

  func end() { opened?.stream.end() }
}

/// Handles the method Write: a sequence of commits.
private final class GRPCWrite: GRPCStreamMethod {
  private let handler: GRPCHandler
  private let call: GRPCCall
  private var database: StreamDatabase
  private var opened: (stream: WriteStream, encoder: StreamProtobufEncoder)?
  private var stopReason: Status?

  init(_ handler: GRPCHandler, _ call: GRPCCall, _ database: StreamDatabase) {
    self.handler = handler
    self.call = call
    self.database = database
  }

  var hasRoom: Bool { opened?.stream.hasRoom ?? true }
  var isSettled: Bool { opened?.stream.isIdle ?? true }

  func receive(_ message: UnsafeRawBufferPointer) throws {
    let id = try database.of(try ProtobufMessageDecoder.streamDatabase(message))
    let request = try handler.decode(message, for: id, call) { try $0.writeStreamRequest(message, in: id) }
    let stream = try opened?.stream ?? WriteStream(handler.service, in: id, as: call.caller, wake: call.wake)
    if opened == nil { opened = (stream, StreamProtobufEncoder(id)) }
    try stream.receive(request)
  }

  func pull(into out: inout [UInt8]) throws -> Bool {
    if let stopReason, opened == nil { throw stopReason }
    guard let (stream, encoder) = opened else { return false }
    let start = out.count
    while let response = try stream.next() {
      call.compression.frame(in: &out) { encoder.append(response, to: &$0) }
      if out.count - start >= Exchange.sliceBytes { return true }
    }
    return false
  }

  func stop(_ status: Status) {
    stopReason = status
    opened?.stream.stop(status)
  }

  func end() { opened?.stream.end() }
}
