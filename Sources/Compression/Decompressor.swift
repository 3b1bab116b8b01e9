import CZlib
import CZstd

/// Decodes a compressed stream piece by piece. Consecutive members or frames decode to the concatenation of their
/// contents.
///
/// Memory: about 40 KB for gzip and deflate, and the window of the frame for zstd, at most 128 MiB. The length of the content has
/// no limit, since it is never in memory as a whole.
package final class Decompressor {
  private enum State {
    case gzip(UnsafeMutablePointer<z_stream>)
    case deflate(UnsafeMutablePointer<z_stream>)
    case zstd(OpaquePointer)
  }

  private let state: State
  /// Whether the input so far is empty or ends with a complete member or frame. For raw deflated bytes: whether the
  /// stream has ended.
  package private(set) var isComplete = true
  /// Whether a gzip member ended, so that zero bytes may follow, as tapes and block devices append them.
  private var isAfterMember = false

  /// Creates the state for one stream.
  /// - Throws: ``CompressionError/noMemory``.
  package init(_ format: CompressionFormat) throws(CompressionError) {
    switch format {
    case .gzip: state = .gzip(try Self.makeStream(czlib_inflate_init_gzip))
    case .zstd:
      guard let stream = ZSTD_createDStream() else { throw .noMemory }
      _ = ZSTD_DCtx_setParameter(stream, ZSTD_d_windowLogMax, Int32(CompressionLimits.zstdWindowLogMax))
      state = .zstd(stream)
    }
  }

  private init(_ state: State) {
    self.state = state
    isComplete = false
  }

  /// Returns the state for one raw deflated stream (RFC 1951), as the entries of zip archives contain it. The stream has
  /// no checksum. Bytes after its end stay unread.
  /// - Throws: ``CompressionError/noMemory``.
  package static func rawDeflate() throws(CompressionError) -> Decompressor {
    Decompressor(.deflate(try makeStream(czlib_inflate_init_raw)))
  }

  private static func makeStream(
    _ start: (UnsafeMutablePointer<z_stream>) -> Int32
  ) throws(CompressionError) -> UnsafeMutablePointer<z_stream> {
    let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
    stream.initialize(to: z_stream())
    guard start(stream) == Z_OK else {
      stream.deallocate()
      throw .noMemory
    }
    return stream
  }

  deinit {
    switch state {
    case .gzip(let stream), .deflate(let stream):
      inflateEnd(stream)
      stream.deallocate()
    case .zstd(let stream):
      ZSTD_freeDStream(stream)
    }
  }

  /// Decodes bytes of `input` from `position` on, moves `position` after them, and writes their content to the start of
  /// `output`. Returns the number of bytes written. If `position` is at the end of `input`, writes content that the
  /// state still holds.
  /// - Throws: ``CompressionError`` if the input is not valid.
  package func decode(
    _ input: UnsafeRawBufferPointer, from position: inout Int, into output: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) -> Int {
    switch state {
    case .gzip(let stream): try inflateMembers(stream, input, from: &position, into: output)
    case .deflate(let stream): isComplete ? 0 : try inflate(stream, input, from: &position, into: output)
    case .zstd(let stream): try decompress(stream, input, from: &position, into: output)
    }
  }

  private func inflateMembers(
    _ stream: UnsafeMutablePointer<z_stream>, _ input: UnsafeRawBufferPointer, from position: inout Int,
    into output: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) -> Int {
    if isAfterMember {
      while position < input.count, input[position] == 0 { position += 1 }
      guard position < input.count else { return 0 }
      isAfterMember = false
      guard inflateReset(stream) == Z_OK else { throw .noMemory }
    }
    guard position < input.count || !isComplete else { return 0 }
    isComplete = false
    let count = try inflate(stream, input, from: &position, into: output)
    isAfterMember = isComplete
    return count
  }

  /// Decodes bytes, and sets ``isComplete`` at the end of the stream.
  private func inflate(
    _ stream: UnsafeMutablePointer<z_stream>, _ input: UnsafeRawBufferPointer, from position: inout Int,
    into output: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) -> Int {
    let room = min(output.count, Int(UInt32.max))
    let start = input.baseAddress.map { UnsafeMutableRawPointer(mutating: $0 + position) }
    stream.pointee.next_in = start?.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_in = UInt32(min(input.count - position, Int(UInt32.max)))
    stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
    stream.pointee.avail_out = UInt32(room)
    let before = stream.pointee.avail_in
    let status = CZlib.inflate(stream, Z_NO_FLUSH)
    position += Int(before - stream.pointee.avail_in)
    switch status {
    case Z_STREAM_END: isComplete = true
    case Z_OK, Z_BUF_ERROR: break
    case Z_MEM_ERROR: throw .noMemory
    default: throw .damaged(stream.pointee.msg.map { String(cString: $0) } ?? "invalid deflated data")
    }
    return room - Int(stream.pointee.avail_out)
  }

  private func decompress(
    _ stream: OpaquePointer, _ input: UnsafeRawBufferPointer, from position: inout Int,
    into output: UnsafeMutableRawBufferPointer
  ) throws(CompressionError) -> Int {
    guard position < input.count || !isComplete else { return 0 }
    var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: position)
    var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
    let result = ZSTD_decompressStream(stream, &target, &source)
    position = source.pos
    if ZSTD_isError(result) != 0 {
      let reason = String(cString: ZSTD_getErrorName(result))
      throw reason.contains("too much memory") ? .windowTooLarge : .damaged(reason)
    }
    isComplete = result == 0
    return target.pos
  }
}
