import Glibc

/// An incremental decoder of the chunked transfer coding, as a value. Moves the chunks together in place. Stricter
/// than the RFC requires: lines end with CR LF only, so that no proxy can see other chunk boundaries.
struct ChunkedDecoder {
  /// The most bytes of leading zeros and extensions in one chunk, or of all trailer fields. They are read and
  /// discarded.
  static let overheadBytesMax = 4 * 1024

  private enum State {
    case size, sizeDigits, extensions, sizeLineFeed
    case data, dataReturn, dataLineFeed
    case trailerStart, trailer, trailerLineFeed, lastLineFeed
  }

  private let bodyBytesMax: Int
  private var state = State.size
  private var remaining = 0
  private var overheadBytes = 0

  init(bodyBytesMax: Int) {
    self.bodyBytesMax = bodyBytesMax
  }

  /// Consumes bytes from `cursor` up to `limit` or to the end of the body, and appends the chunk data at `bodyEnd`,
  /// which never passes the cursor.
  ///
  /// - Returns: whether the body is complete. Otherwise all bytes were consumed.
  /// - Throws: ``Refusal`` if the coding is malformed or the body too large.
  mutating func decode(
    _ message: UnsafeMutableRawPointer, from cursor: inout Int, to limit: Int, bodyEnd: inout Int
  ) throws(Refusal) -> Bool {
    let bodyStart = bodyEnd - bodyBytes
    while cursor < limit {
      if state == .data {
        let count = min(remaining, limit - cursor)
        if bodyEnd != cursor { memmove(message + bodyEnd, message + cursor, count) }
        bodyEnd += count
        cursor += count
        remaining -= count
        if remaining == 0 { state = .dataReturn }
        continue
      }
      let byte = message.load(fromByteOffset: cursor, as: UInt8.self)
      cursor += 1
      if try step(byte) {
        bodyBytes = bodyEnd - bodyStart
        return true
      }
      if state == .data, bodyEnd - bodyStart + remaining > bodyBytesMax { throw .bodyTooLarge }
    }
    bodyBytes = bodyEnd - bodyStart
    return false
  }

  /// The number of body bytes decoded so far.
  private var bodyBytes = 0

  /// Consumes one byte of framing. Returns `true` after the last one.
  private mutating func step(_ byte: UInt8) throws(Refusal) -> Bool {
    switch state {
    case .size:
      remaining = 0
      overheadBytes = 0
      guard try addDigit(byte) else { throw .badChunk }
      state = .sizeDigits
    case .sizeDigits:
      if try addDigit(byte) { break }
      switch byte {
      case 0x0d: state = .sizeLineFeed
      case 0x3b, 0x20, 0x09: state = .extensions
      default: throw .badChunk
      }
    case .extensions:
      if byte == 0x0d { state = .sizeLineFeed } else { try addOverhead(byte) }
    case .sizeLineFeed:
      guard byte == 0x0a else { throw .badChunk }
      state = remaining == 0 ? .trailerStart : .data
    case .dataReturn:
      guard byte == 0x0d else { throw .badChunk }
      state = .dataLineFeed
    case .dataLineFeed:
      guard byte == 0x0a else { throw .badChunk }
      state = .size
    case .trailerStart:
      if byte == 0x0d {
        state = .lastLineFeed
      } else {
        try addOverhead(byte)
        state = .trailer
      }
    case .trailer:
      if byte == 0x0d { state = .trailerLineFeed } else { try addOverhead(byte) }
    case .trailerLineFeed:
      guard byte == 0x0a else { throw .badChunk }
      state = .trailerStart
    case .lastLineFeed:
      guard byte == 0x0a else { throw .badChunk }
      return true
    case .data: break
    }
    return false
  }

  /// Adds a hexadecimal digit to the size. Returns `false` for any other byte.
  private mutating func addDigit(_ byte: UInt8) throws(Refusal) -> Bool {
    let digit: UInt8
    switch byte {
    case 0x30...0x39: digit = byte - 0x30
    case 0x41...0x46: digit = byte - 0x37
    case 0x61...0x66: digit = byte - 0x57
    default: return false
    }
    // Leading zeros count as overhead, since otherwise a client could send them without end.
    if remaining == 0 && digit == 0 { try addOverhead(byte) }
    guard remaining <= bodyBytesMax else { throw .bodyTooLarge }
    remaining = remaining * 16 + Int(digit)
    return true
  }

  private mutating func addOverhead(_ byte: UInt8) throws(Refusal) {
    guard byte >= 0x20 || byte == 0x09, byte != 0x7f else { throw .badChunk }
    overheadBytes += 1
    guard overheadBytes <= Self.overheadBytesMax else { throw .headTooLarge }
  }
}
