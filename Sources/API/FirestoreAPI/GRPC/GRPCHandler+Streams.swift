import DatabaseService
import DocumentModel
import GatewayCore
import Transport
import WireFormat

/// Handles the method Listen: the targets of a client.
final class GRPCListen: GRPCStreamMethod {
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
final class GRPCWrite: GRPCStreamMethod {
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
