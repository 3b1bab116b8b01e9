import CZlib

/// A decoder of consecutive gzip members, one slice at a time. Uses about 40 KB.
final class GzipDecoder {
  /// The output of one call, regardless of how small the input is.
  static let sliceBytes = 64 << 10

  private let inflater = Inflater()
  /// Whether the decoded input is empty or ends with a complete member.
  private(set) var isMemberOver = true

  /// Appends up to 64 KiB of decoded bytes and moves `position` after the consumed input. If no input is left,
  /// appends output that the decoder still holds. Call it that way only at the end of the input and inside a member.
  /// - Returns: `false` if the input is not gzip.
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
