import CZlib

/// Decodes gzip members, one after the other, a slice at a time. Keeps about 40 KB.
final class GzipDecoder {
  /// Decoded at a time, however small the coded bytes are.
  static let sliceBytes = 64 << 10

  private let inflater = Inflater()
  /// Whether what was decoded ends with a whole member, or is nothing.
  private(set) var isMemberOver = true

  /// Appends up to 64 KiB of what bytes decode to, and moves the position behind those that were read. Without bytes it
  /// appends what is still inside; call it so only at the end of all, and where no member is over.
  /// - Returns: whether they are gzip.
  func decode(_ coded: [UInt8], from position: inout Int, into out: inout [UInt8]) -> Bool {
    let isInputOver = position == coded.count
    if isMemberOver {
      guard inflater.reset() else { return false }
      isMemberOver = false
    }
    let status = inflateSlice(coded, from: &position, into: &out)
    isMemberOver = status == Z_STREAM_END
    return status == Z_OK || isMemberOver || status == Z_BUF_ERROR && !isInputOver
  }

  private func inflateSlice(_ coded: [UInt8], from position: inout Int, into out: inout [UInt8]) -> Int32 {
    let stream = inflater.stream
    var status = Z_OK
    let start = position
    let decoded = [UInt8](unsafeUninitializedCapacity: Self.sliceBytes) { space, count in
      coded.withUnsafeBytes { bytes in
        let input = bytes.assumingMemoryBound(to: UInt8.self)
        stream.pointee.next_in = input.baseAddress.map { UnsafeMutablePointer(mutating: $0 + start) }
        stream.pointee.avail_in = UInt32(input.count - start)
        stream.pointee.next_out = space.baseAddress
        stream.pointee.avail_out = UInt32(space.count)
        status = inflate(stream, Z_NO_FLUSH)
        count = space.count - Int(stream.pointee.avail_out)
      }
    }
    position = coded.count - Int(stream.pointee.avail_in)
    out.append(contentsOf: decoded)
    return status
  }
}
