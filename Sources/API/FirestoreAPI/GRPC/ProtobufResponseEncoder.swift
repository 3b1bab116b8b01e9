import DatabaseService
import Transport
import WireFormat

/// Encodes a streamed response as gRPC messages.
struct ProtobufResponseEncoder: ResponseEncoder {
  private var bytes: [UInt8] = []
  private let compression: GRPCCompression
  private var failure: Status?

  init(_ compression: GRPCCompression) { self.compression = compression }

  var byteCount: Int { bytes.count }

  mutating func begin() {}

  mutating func append(_ message: some EncodableMessage) throws {
    try compression.frame(in: &bytes) { (out) throws(WireError) in try message.appendProtobuf(to: &out) }
  }

  mutating func end() {}

  mutating func fail(_ status: Status) { failure = status }

  mutating func take(into out: inout [UInt8]) {
    guard !out.isEmpty else { return swap(&out, &bytes) }
    out.append(contentsOf: bytes)
    bytes.removeAll(keepingCapacity: bytes.count <= Exchange.sliceBytes)
  }

  func addTrailers(to trailers: inout HeaderWriter) {
    if let failure {
      GRPCStatus.add(failure, to: &trailers)
    } else {
      GRPCStatus.addOK(to: &trailers)
    }
  }
}

/// The compression of a response's messages.
struct GRPCCompression {
  /// The exchange whose loop compresses, or `nil` for no compression.
  let exchange: Exchange?

  /// Smaller messages, in bytes, are not compressed.
  private static let messageBytesMin = 1024

  /// Fills in the head of the message that starts at `start`, and compresses the message if that is enabled and
  /// pays off.
  func end(_ start: Int, in out: inout [UInt8]) {
    guard let exchange, out.count - start >= Self.messageBytesMin else { return GRPCFrame.end(start, in: &out) }
    GRPCFrame.end(start, in: &out) { exchange.compress($0) }
  }

  /// Appends a framed message whose content `write` appends. Appends nothing if `write` throws.
  func frame<E: Error>(in out: inout [UInt8], _ write: (inout [UInt8]) throws(E) -> Void) throws(E) {
    let start = GRPCFrame.begin(in: &out)
    do throws(E) {
      try write(&out)
    } catch {
      out.removeLast(out.count - start + GRPCFrame.headBytes)
      throw error
    }
    end(start, in: &out)
  }
}
