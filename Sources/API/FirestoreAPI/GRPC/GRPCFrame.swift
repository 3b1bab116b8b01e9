import DatabaseService
import Transport

/// The framing of messages: a compression flag, four bytes of length, the message (firestore-api.md, section 1.6).
enum GRPCFrame {
  /// The number of bytes before each message.
  static let headBytes = 5

  /// Returns the only message in a unary request's body, and whether it is compressed.
  ///
  /// - Throws: `INTERNAL` if the frame is incomplete, has an unknown flag, or is not the only one.
  static func single(_ body: UnsafeRawBufferPointer) throws -> (message: UnsafeRawBufferPointer, isCompressed: Bool) {
    guard body.count >= headBytes else { throw Status(.internal, "The request has no message.") }
    guard body[0] <= 1 else { throw Status(.internal, "The request's message has an unknown flag.") }
    let length = Int(UInt32(bigEndian: body.loadUnaligned(fromByteOffset: 1, as: UInt32.self)))
    guard length <= body.count - headBytes else { throw Status(.internal, "The request's message is cut short.") }
    guard length == body.count - headBytes else { throw Status(.internal, "The request has more than one message.") }
    return (UnsafeRawBufferPointer(rebasing: body[headBytes...]), body[0] == 1)
  }

  /// Reserves space for the head of a message. Returns the message's position for ``end(_:in:)``.
  static func begin(in out: inout [UInt8]) -> Int {
    for _ in 0..<headBytes { out.append(0) }
    return out.count
  }

  /// Fills in the head of the message that starts at `start` and ends at the end of `out`.
  static func end(_ start: Int, in out: inout [UInt8]) {
    let length = UInt32(truncatingIfNeeded: out.count - start)
    for byte in 0..<4 { out[start - 4 + byte] = UInt8(truncatingIfNeeded: length >> (24 - 8 * UInt32(byte))) }
  }

  /// Fills in the head as ``end(_:in:)`` does, after compressing the message with `compress` if that makes it
  /// smaller.
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
