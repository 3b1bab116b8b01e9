import DatabaseService
import Transport

/// Length-prefixed messages: a flag for compression, four bytes of length, the message (firestore-api.md, section 1.6).
enum GRPCFrame {
  /// Bytes before each message.
  static let headBytes = 5

  /// The one message of a unary request's body, and whether it is compressed.
  /// - Throws: `INTERNAL` where the frame is cut short, has an unknown flag, or is not alone.
  static func single(_ body: UnsafeRawBufferPointer) throws -> (message: UnsafeRawBufferPointer, isCompressed: Bool) {
    guard body.count >= headBytes else { throw Status(.internal, "The request holds no message.") }
    guard body[0] <= 1 else { throw Status(.internal, "The request's message has an unknown flag.") }
    let length = Int(UInt32(bigEndian: body.loadUnaligned(fromByteOffset: 1, as: UInt32.self)))
    guard length <= body.count - headBytes else { throw Status(.internal, "The request's message is cut short.") }
    guard length == body.count - headBytes else { throw Status(.internal, "The request holds more than one message.") }
    return (UnsafeRawBufferPointer(rebasing: body[headBytes...]), body[0] == 1)
  }

  /// Appends room for the head of a message; returns where the message starts, for ``end(_:in:)``.
  static func begin(in out: inout [UInt8]) -> Int {
    for _ in 0..<headBytes { out.append(0) }
    return out.count
  }

  /// Fills in the head of the message that starts at `start` and ends here.
  static func end(_ start: Int, in out: inout [UInt8]) {
    let length = UInt32(truncatingIfNeeded: out.count - start)
    for byte in 0..<4 { out[start - 4 + byte] = UInt8(truncatingIfNeeded: length >> (24 - 8 * UInt32(byte))) }
  }

  /// As ``end(_:in:)``, with the message compressed by `compress` where that makes it smaller.
  static func end(_ start: Int, in out: inout [UInt8], _ compress: (UnsafeRawBufferPointer) -> [UInt8]?) {
    let compressed = out.withUnsafeBytes { compress(UnsafeRawBufferPointer(rebasing: $0[start...])) }
    if let compressed {
      out.removeLast(out.count - start)
      out.append(contentsOf: compressed)
      out[start - headBytes] = 1
    }
    end(start, in: &out)
  }
}
