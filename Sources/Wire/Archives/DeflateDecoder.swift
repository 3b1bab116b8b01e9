import CZlib
import FixtureTree

/// A decoder of deflated bytes: gzip members, one after the other, or one raw stream as in a zip file.
final class DeflateDecoder {
  /// The framing of the deflated bytes.
  enum Framing {
    case gzip
    case raw
  }

  private static let outputBytes = 256 << 10

  private let stream: UnsafeMutablePointer<z_stream>
  private let framing: Framing
  private let file: String
  private let source: ByteStream.Next
  private var input: [UInt8] = []
  private var position = 0
  private var isReady: Bool
  private var isOver = false

  init(_ framing: Framing, file: String, _ source: @escaping ByteStream.Next) {
    self.framing = framing
    self.file = file
    self.source = source
    stream = .allocate(capacity: 1)
    stream.initialize(to: z_stream())
    isReady = (framing == .gzip ? czlib_inflate_init_gzip(stream) : czlib_inflate_init_raw(stream)) == Z_OK
  }

  deinit {
    if isReady { inflateEnd(stream) }
    stream.deallocate()
  }

  /// Returns the next decoded bytes, or an empty array at the end.
  /// - Throws: ``FixtureTreeError`` if the input is damaged or incomplete.
  func next() throws(FixtureTreeError) -> [UInt8] {
    guard isReady else { throw FixtureTreeError(file: file, message: "cannot be unpacked: out of memory") }
    while !isOver {
      if position == input.count {
        input = try source()
        position = 0
      }
      let isInputOver = input.isEmpty
      var status = Z_OK
      let output = [UInt8](unsafeUninitializedCapacity: Self.outputBytes) { space, count in
        input.withUnsafeBytes { bytes in
          let start = bytes.assumingMemoryBound(to: UInt8.self).baseAddress
          stream.pointee.next_in = start.map { UnsafeMutablePointer(mutating: $0 + position) }
          stream.pointee.avail_in = UInt32(input.count - position)
          stream.pointee.next_out = space.baseAddress
          stream.pointee.avail_out = UInt32(Self.outputBytes)
          status = inflate(stream, Z_NO_FLUSH)
          count = Self.outputBytes - Int(stream.pointee.avail_out)
        }
      }
      position = input.count - Int(stream.pointee.avail_in)
      switch status {
      case Z_STREAM_END: try endMember()
      case Z_OK: break
      case Z_BUF_ERROR where !isInputOver || !output.isEmpty: break
      case Z_BUF_ERROR:
        throw FixtureTreeError(file: file, message: "the archive is incomplete; copy or download it again")
      default: throw FixtureTreeError(file: file, message: "the archive is damaged; copy or download it again")
      }
      if !output.isEmpty { return output }
    }
    return []
  }

  /// Prepares for another gzip member, if one follows.
  private func endMember() throws(FixtureTreeError) {
    if position == input.count {
      input = try source()
      position = 0
    }
    // Some programs pad an archive with zeros.
    isOver = framing == .raw || input.isEmpty || input[position] == 0
    if !isOver { inflateReset(stream) }
  }
}
