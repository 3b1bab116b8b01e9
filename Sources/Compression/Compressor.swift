import CZlib
import CZstd

/// Compresses a stream piece by piece into one gzip member or one zstd frame.
///
/// Memory: about 300 KB for gzip and 2 MB for zstd, and the output of one piece.
package final class Compressor {
  private enum State {
    case gzip(UnsafeMutablePointer<z_stream>)
    case zstd(OpaquePointer)
  }

  /// The default of the `gzip` and `zstd` commands: a compromise of speed and size.
  private static let gzipLevel: Int32 = 6
  private static let zstdLevel: Int32 = 3
  private static let pieceBytes = 128 << 10

  private let state: State

  /// Creates the state for one stream.
  /// - Throws: ``CompressionError/noMemory``.
  package init(_ format: CompressionFormat) throws(CompressionError) {
    switch format {
    case .gzip:
      let stream = UnsafeMutablePointer<z_stream>.allocate(capacity: 1)
      stream.initialize(to: z_stream())
      guard czlib_deflate_init_gzip(stream, Self.gzipLevel) == Z_OK else {
        stream.deallocate()
        throw .noMemory
      }
      state = .gzip(stream)
    case .zstd:
      guard let stream = ZSTD_createCStream() else { throw .noMemory }
      _ = ZSTD_CCtx_setParameter(stream, ZSTD_c_compressionLevel, Self.zstdLevel)
      _ = ZSTD_CCtx_setParameter(stream, ZSTD_c_checksumFlag, 1)
      state = .zstd(stream)
    }
  }

  deinit {
    switch state {
    case .gzip(let stream):
      deflateEnd(stream)
      stream.deallocate()
    case .zstd(let stream):
      ZSTD_freeCStream(stream)
    }
  }

  /// Compresses bytes and returns the output that is ready, which may be empty. With `isLast`, returns the rest of the
  /// stream. Nothing may follow then.
  /// - Throws: ``CompressionError`` if the library fails.
  package func encode(_ bytes: [UInt8], isLast: Bool = false) throws(CompressionError) -> [UInt8] {
    var out: [UInt8] = []
    var position = 0
    var isDone = false
    while !isDone {
      var failure: CompressionError?
      let piece = [UInt8](unsafeUninitializedCapacity: Self.pieceBytes) { space, count in
        bytes.withUnsafeBytes { input in
          do throws(CompressionError) {
            (count, isDone) = try step(input, from: &position, into: UnsafeMutableRawBufferPointer(space), isLast)
          } catch { failure = error }
        }
      }
      if let failure { throw failure }
      out += piece
    }
    return out
  }

  /// Fills `output` once. Returns the number of bytes written and whether all input is taken and all output is written.
  private func step(
    _ input: UnsafeRawBufferPointer, from position: inout Int, into output: UnsafeMutableRawBufferPointer,
    _ isLast: Bool
  ) throws(CompressionError) -> (Int, Bool) {
    switch state {
    case .gzip(let stream):
      let start = input.baseAddress.map { UnsafeMutableRawPointer(mutating: $0 + position) }
      let count = min(input.count - position, Int(UInt32.max))
      stream.pointee.next_in = start?.assumingMemoryBound(to: UInt8.self)
      stream.pointee.avail_in = UInt32(count)
      stream.pointee.next_out = output.baseAddress?.assumingMemoryBound(to: UInt8.self)
      stream.pointee.avail_out = UInt32(output.count)
      let isFinal = isLast && position + count == input.count
      let status = deflate(stream, isFinal ? Z_FINISH : Z_NO_FLUSH)
      guard status != Z_STREAM_ERROR else { throw .damaged("deflate failed") }
      position += count - Int(stream.pointee.avail_in)
      let isDone = isFinal ? status == Z_STREAM_END : position == input.count && stream.pointee.avail_out > 0
      return (output.count - Int(stream.pointee.avail_out), isDone)
    case .zstd(let stream):
      var source = ZSTD_inBuffer(src: input.baseAddress, size: input.count, pos: position)
      var target = ZSTD_outBuffer(dst: output.baseAddress, size: output.count, pos: 0)
      let rest = ZSTD_compressStream2(stream, &target, &source, isLast ? ZSTD_e_end : ZSTD_e_continue)
      guard ZSTD_isError(rest) == 0 else { throw .damaged(String(cString: ZSTD_getErrorName(rest))) }
      position = source.pos
      return (target.pos, isLast ? rest == 0 : position == input.count)
    }
  }
}
