import Basics

/// The fuzzing entry of the HTTP/1 parser. Needs no socket. A broken invariant traps.
package enum HTTPFuzz {
  private struct Summary: Equatable {
    var requests: [[UInt8]] = []
    // The status is left out, because the first limit that is exceeded depends on the pieces.
    var isRefused = false
  }

  /// Parses `bytes` as a client's stream, once complete and once in pieces, and requires the same requests. Costs a
  /// few passes over the bytes.
  package static func run(_ bytes: UnsafeRawBufferPointer) {
    // The first byte sets the size of the pieces, so that one input reproduces one case.
    guard let first = bytes.first else { return }
    let stream = UnsafeRawBufferPointer(rebasing: bytes.dropFirst())
    let whole = read(stream, pieceBytes: stream.count)
    let pieces = read(stream, pieceBytes: Int(first % 16) + 1)
    precondition(whole == pieces, "the requests depend on how their bytes arrive")
  }

  private static func read(_ stream: UnsafeRawBufferPointer, pieceBytes: Int) -> Summary {
    var summary = Summary()
    let parser = HTTP1Parser(
      limits: HTTP1Parser.Limits(
        headerBytesMax: 1024, headerFieldsMax: 16, targetBytesMax: 256, bodyBytesMax: 1024))
    let pool = BufferPool(MemoryShare(bytesMax: 16 * 1024 * 1024))
    let decompressor = GzipDecompressor()
    var input = InputBuffer()
    defer { input.release(to: pool) }
    var position = 0
    while position < stream.count {
      guard let space = input.readSpace(expected: parser.expectedBytes, pool: pool) else { return summary }
      let count = min(pieceBytes, stream.count - position, space.count)
      space.copyBytes(from: stream[position..<(position + count)])
      position += count
      input.received(count)
      while !input.isEmpty, let message = input.bytes {
        var kept = input.count
        let outcome = parser.parse(message, count: &kept)
        precondition(kept <= input.count)
        input.truncate(to: kept)
        if case .incomplete = outcome { break }
        if case .refused = outcome {
          summary.isRefused = true
          return summary
        }
        summary.requests.append(describe(parser, message, count: kept, decompressor))
        input.consume(parser.messageBytes)
        parser.reset()
      }
    }
    return summary
  }

  /// Returns all parts of the request that a handler can see, as bytes to compare.
  private static func describe(
    _ parser: HTTP1Parser, _ message: UnsafeMutableRawPointer, count: Int, _ decompressor: GzipDecompressor
  ) -> [UInt8] {
    let bytes = UnsafeRawBufferPointer(start: message, count: count)
    var seen = Array(bytes[parser.target])
    precondition(!seen.isEmpty && parser.messageBytes <= count)
    for field in parser.fields {
      for (start, length) in [(field.nameStart, field.nameCount), (field.valueStart, field.valueCount)] {
        let range = Int(start)..<(Int(start) + Int(length))
        precondition(range.upperBound <= parser.bodyStart)
        seen.append(contentsOf: bytes[range])
        seen.append(0)
      }
    }
    let body = UnsafeRawBufferPointer(rebasing: bytes[parser.bodyStart..<(parser.bodyStart + parser.bodyCount)])
    seen.append(contentsOf: body)
    if parser.contentCoding == .gzip, let decoded = try? decompressor.decompress(body, bodyBytesMax: 4096) {
      precondition(decoded.count <= 4096 + InputBuffer.paddingBytes)
      seen.append(contentsOf: decoded)
    }
    return seen
  }
}
