import CZlib
import Glibc

/// The reason why compressed bytes cannot be decoded.
package enum GzipError: Error, Equatable, Sendable {
  /// The bytes are not complete gzip members.
  case malformed
  /// The content exceeds the caller's limit.
  case tooLarge
}

/// A compressor of response bodies that keeps one zlib state for the life of a loop.
final class GzipCompressor {
  /// Smaller bodies are sent uncompressed, since the saving is not worth the work.
  static let bodyBytesMin = 1024
  /// Favors speed over size: the first levels bring most of the gain for JSON.
  private static let level: Int32 = 3

  private let stream: UnsafeMutablePointer<z_stream>
  private let isReady: Bool

  init() {
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    isReady = czlib_deflate_init_gzip(stream, Self.level) == Z_OK
  }

  deinit {
    if isReady { deflateEnd(stream) }
    stream.deallocate()
  }

  /// Returns the compressed form of `body`, or `nil` if that is not smaller.
  func compress(_ body: [UInt8]) -> [UInt8]? {
    body.withUnsafeBytes { compress($0) }
  }

  /// Returns the compressed form of `body`, or `nil` if that is not smaller.
  func compress(_ body: UnsafeRawBufferPointer) -> [UInt8]? {
    let input = body.assumingMemoryBound(to: UInt8.self)
    guard isReady, body.count > 1, body.count < Int(UInt32.max), deflateReset(stream) == Z_OK else { return nil }
    // One byte less than the body: a result that does not fit is not worth sending.
    let compressed = [UInt8](unsafeUninitializedCapacity: body.count - 1) { space, count in
      stream.pointee.next_in = UnsafeMutablePointer(mutating: input.baseAddress)
      stream.pointee.avail_in = UInt32(input.count)
      stream.pointee.next_out = space.baseAddress
      stream.pointee.avail_out = UInt32(space.count)
      if deflate(stream, Z_FINISH) == Z_STREAM_END { count = space.count - Int(stream.pointee.avail_out) }
    }
    return compressed.isEmpty ? nil : compressed
  }
}

/// A decompressor of request bodies that keeps one zlib state for the life of a loop.
final class GzipDecompressor {
  private let inflater = Inflater()

  /// Returns the decoded body, followed by `InputBuffer.paddingBytes` zero bytes, which the array contains too.
  ///
  /// - Throws: ``GzipError/malformed`` if the body is not complete gzip members, ``GzipError/tooLarge`` if it holds
  ///   more than `bodyBytesMax` decoded bytes.
  func decompress(_ body: UnsafeRawBufferPointer, bodyBytesMax: Int) throws(GzipError) -> [UInt8] {
    guard !body.isEmpty, inflater.reset() else { throw .malformed }
    let stream = inflater.stream
    let bytes = body.assumingMemoryBound(to: UInt8.self)
    stream.pointee.next_in = UnsafeMutablePointer(mutating: bytes.baseAddress)
    stream.pointee.avail_in = UInt32(bytes.count)
    var out: [UInt8] = []
    var piece = max(4096, min(body.count * 4, 256 * 1024))
    while true {
      let room = min(piece, bodyBytesMax + 1 - out.count)
      guard room > 0 else { throw .tooLarge }
      var status = Z_OK
      out.append(addingCapacity: room) { space in
        stream.pointee.next_out = space.baseAddress
        stream.pointee.avail_out = UInt32(room)
        status = inflate(stream, Z_NO_FLUSH)
        return room - Int(stream.pointee.avail_out)
      }
      if out.count > bodyBytesMax { throw .tooLarge }
      if status == Z_STREAM_END {
        if stream.pointee.avail_in == 0 { break }
        guard inflater.reset() else { throw .malformed }
      } else if status != Z_OK || (stream.pointee.avail_in == 0 && stream.pointee.avail_out > 0) {
        throw .malformed
      }
      piece = min(piece * 2, 1024 * 1024)
    }
    out.append(contentsOf: repeatElement(0, count: InputBuffer.paddingBytes))
    return out
  }
}

extension [UInt8] {
  /// Appends the bytes that `write` puts into `count` bytes of uninitialized space. `write` returns their number.
  fileprivate mutating func append(
    addingCapacity count: Int, _ write: (UnsafeMutableBufferPointer<UInt8>) -> Int
  ) {
    append(contentsOf: [UInt8](unsafeUninitializedCapacity: count) { space, written in written = write(space) })
  }
}
