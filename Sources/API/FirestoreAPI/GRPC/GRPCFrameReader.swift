import DatabaseService
import DocumentModel

/// Splits a body that arrives in pieces into its framed messages.
struct GRPCFrameReader {
  private let messageBytesMax: Int
  private var bytes: [UInt8] = []
  private var start = 0

  /// The largest buffer that is kept for later pieces, in bytes.
  private static let bytesKept = 16 << 10

  /// Creates a reader that accepts messages of up to `messageBytesMax` bytes, as transmitted.
  init(messageBytesMax: Int) { self.messageBytesMax = messageBytesMax }

  /// The number of bytes received that do not belong to a message returned so far.
  var unreadBytes: Int { bytes.count - start }

  /// Appends a piece. Costs a copy of the piece, and after messages were returned also one of the unread bytes.
  mutating func append(_ piece: UnsafeRawBufferPointer) {
    if start > 0 {
      bytes.removeFirst(start)
      start = 0
    }
    bytes.append(raw: piece)
  }

  /// Calls `body` with the next message if it has arrived completely. Returns whether it has.
  ///
  /// - Throws: `INTERNAL` if the flag is unknown, `RESOURCE_EXHAUSTED` as soon as the head announces a message that
  ///   is too large, and the errors of `body`.
  mutating func next(_ body: (UnsafeRawBufferPointer, _ isCompressed: Bool) throws -> Void) throws -> Bool {
    let unread = unreadBytes
    guard unread >= GRPCFrame.headBytes else { return false }
    let flag = bytes[start]
    guard flag <= 1 else { throw Status(.internal, "A message of the request has an unknown flag.") }
    let length = bytes[(start + 1)..<(start + GRPCFrame.headBytes)].reduce(0) { $0 << 8 | Int($1) }
    guard length <= messageBytesMax else {
      throw Status(.resourceExhausted, "A message of the request is larger than \(messageBytesMax) bytes.")
    }
    guard length <= unread - GRPCFrame.headBytes else { return false }
    let messageStart = start + GRPCFrame.headBytes
    start = messageStart + length
    try bytes.withUnsafeBytes { bytes in
      try body(UnsafeRawBufferPointer(rebasing: bytes[messageStart..<start]), flag == 1)
    }
    if start == bytes.count {
      bytes.removeAll(keepingCapacity: bytes.capacity <= Self.bytesKept)
      start = 0
    }
    return true
  }
}
