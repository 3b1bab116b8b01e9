import DatabaseService
import Transport
import WireFormat

// grpc.health.v1.Health, for the whole server or for its one service.
extension GRPCHandler {
  /// Handles the method Check.
  func checkHealth(_ message: UnsafeRawBufferPointer, _ call: GRPCCall) throws {
    guard try Self.isServed(message) else { throw Status(.notFound, "unknown service") }
    call.send { HealthStatus.serving.append(to: &$0) }
  }

  /// Whether the service in a HealthCheckRequest exists.
  fileprivate static func isServed(_ message: UnsafeRawBufferPointer) throws -> Bool {
    let service = try ProtobufMessageDecoder.text(1, of: message)
    return service.isEmpty || service.elementsEqual("google.firestore.v1.Firestore".utf8)
  }
}

/// The values of the status in a HealthCheckResponse.
private enum HealthStatus: Int64 {
  case serving = 1
  case notServing = 2
  case serviceUnknown = 3

  func append(to out: inout [UInt8]) { ProtobufWriter.int64(1, rawValue, to: &out) }
}

/// Handles the method Watch: sends the status, and again when the server stops.
final class GRPCHealthWatch: GRPCStreamMethod {
  private let call: GRPCCall
  private var isWatching = false
  private var unsent: [HealthStatus] = []
  private var stopReason: Status?

  init(_ call: GRPCCall) { self.call = call }

  var hasRoom: Bool { true }
  /// Whether the stream may end when the client has closed its side. Clients do so at once and continue to watch.
  var isSettled: Bool { !isWatching }

  func receive(_ message: UnsafeRawBufferPointer) throws {
    guard !isWatching else { throw Status(.internal, "The request has more than one message.") }
    isWatching = true
    unsent.append(try GRPCHandler.isServed(message) ? .serving : .serviceUnknown)
  }

  func pull(into out: inout [UInt8]) throws -> Bool {
    for status in unsent { call.compression.frame(in: &out) { status.append(to: &$0) } }
    unsent = []
    if let stopReason { throw stopReason }
    return false
  }

  func stop(_ status: Status) {
    stopReason = status
    if isWatching { unsent.append(.notServing) }
  }

  func end() {}
}
