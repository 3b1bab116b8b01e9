import DatabaseService
import DocumentModel

/// Cuts a body that arrives piece by piece into the messages that clients framed, wherever the pieces are cut.
struct GRPCFrameReader {
  private let messageBytesMax: Int
  private var bytes: [UInt8] = []
  private var start = 0

  /// Memory kept for what comes next, in bytes.
  private static let bytesKept = 16 << 10

  /// A reader of messages of at most so many bytes, as they are sent.
  init(messageBytesMax: Int) { self.messageBytesMax = messageBytesMax }

  /// Bytes that arrived and belong to no message that was handed out.
  var unreadBytes: Int { bytes.count - start }

  /// Takes a piece. Cost: a copy of it, and of what is unread the first time after messages were handed out.
  mutating func append(_ piece: UnsafeRawBufferPointer) {
    if start > 0 {
      bytes.removeFirst(start)
      start = 0
    }
    bytes.append(raw: piece)
  }

  /// Hands the next message to `body` if all of it is there; returns whether it was.
  /// - Throws: `INTERNAL` for an unknown flag, `RESOURCE_EXHAUSTED` for a message that is too large, as soon as its head
  ///   says so, and what `body` throws.
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
