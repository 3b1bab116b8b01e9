import CZlib

/// A file of gzip members as the body of a reply, decoded on its way: for clients that do not take the coding. Content
/// that is no gzip cuts the reply. Belongs to the exchange's loop, and keeps about 100 KB while it is sent.
package final class DecodedBody: BodySource {
  /// Decoded at a time, however small the coded bytes are.
  private static let sliceBytes = 64 << 10

  private let file: FileBody
  private let stream: UnsafeMutablePointer<z_stream>
  private var isReady: Bool
  private var coded: [UInt8] = []
  /// How much of `coded` was decoded.
  private var position = 0
  private var isFileRead = false
  /// Whether what was decoded ends with a whole member, or is nothing.
  private var isMemberOver = true

  /// Decodes what a file holds.
  package init(_ file: FileBody) {
    self.file = file
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    isReady = czlib_inflate_init_gzip(stream) == Z_OK
  }

  deinit {
    if isReady { inflateEnd(stream) }
    stream.deallocate()
  }

  /// Appends up to 64 KiB of what the file holds.
  package func nextSlice(into out: inout [UInt8]) -> BodyProgress {
    guard isReady else { return .failed }
    if position == coded.count, !isFileRead {
      coded.removeAll(keepingCapacity: true)
      position = 0
      switch file.nextSlice(into: &coded) {
      case .more: break
      case .finished: isFileRead = true
      case .waiting: return .waiting
      case .failed: return .failed
      }
    }
    // Bytes may still be inside the decoder when its input is over.
    let isInputOver = position == coded.count
    if isInputOver, !isFileRead { return .more }
    if isInputOver, isMemberOver { return .finished }
    if isMemberOver {
      guard inflateReset(stream) == Z_OK else { return .failed }
      isMemberOver = false
    }
    let status = decode(into: &out)
    guard status == Z_OK || status == Z_STREAM_END || status == Z_BUF_ERROR && !isInputOver else { return .failed }
    isMemberOver = status == Z_STREAM_END
    if isFileRead, position == coded.count, isMemberOver { return .finished }
    return .more
  }

  private func decode(into out: inout [UInt8]) -> Int32 {
    var status = Z_OK
    let decoded = [UInt8](unsafeUninitializedCapacity: Self.sliceBytes) { space, count in
      coded.withUnsafeBytes { bytes in
        let input = bytes.assumingMemoryBound(to: UInt8.self)
        stream.pointee.next_in = input.baseAddress.map { UnsafeMutablePointer(mutating: $0 + position) }
        stream.pointee.avail_in = UInt32(input.count - position)
        stream.pointee.next_out = space.baseAddress
        stream.pointee.avail_out = UInt32(space.count)
        status = inflate(stream, Z_NO_FLUSH)
        position = input.count - Int(stream.pointee.avail_in)
        count = space.count - Int(stream.pointee.avail_out)
      }
    }
    out.append(contentsOf: decoded)
    return status
  }
}
