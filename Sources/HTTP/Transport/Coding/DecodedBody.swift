import Glibc

/// The body of a response that decodes a file of gzip members while sending it, for clients that do not accept gzip.
/// If the content is not gzip, the response is cut, so call ``canBegin(_:count:)`` first. Belongs to the exchange's
/// loop and uses about 100 KB while it is sent.
package final class DecodedBody: BodySource {
  private let file: FileBody
  private let decoder = GzipDecoder()
  private var coded: [UInt8] = []
  /// The number of decoded bytes in `coded`.
  private var position = 0
  private var isFileRead = false

  /// Creates a body with the decoded content of a file.
  package init(_ file: FileBody) { self.file = file }

  /// Whether the first `count` bytes of a file can be gzip. Decodes at most 64 KiB of input, and stops after 64 KiB
  /// of output. An empty file counts as gzip of an empty content. Waits for the disk.
  package static func canBegin(_ descriptor: Int32, count: Int) -> Bool {
    let wanted = min(count, FileBody.copiedBytesMax)
    let coded = [UInt8](unsafeUninitializedCapacity: wanted) { space, read in
      while read < wanted {
        let more = pread(descriptor, space.baseAddress.map { $0 + read }, wanted - read, off_t(read))
        if more < 0 && errno == EINTR { continue }
        if more <= 0 { return }
        read += more
      }
    }
    guard coded.count == wanted else { return false }
    let decoder = GzipDecoder()
    var position = 0
    var decoded: [UInt8] = []
    while decoded.count < GzipDecoder.sliceBytes {
      // Input that was cut at 64 KiB may end inside a member. The end of the file may not.
      if position == wanted, wanted < count || decoder.isMemberOver { return true }
      guard decoder.decode(coded, from: &position, into: &decoded) else { return false }
    }
    return true
  }

  /// Appends up to 64 KiB of decoded content.
  package func nextSlice(into out: inout [UInt8]) -> BodyProgress {
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
    // The decoder may still hold output after its input has ended.
    if position == coded.count {
      if !isFileRead { return .more }
      if decoder.isMemberOver { return .finished }
    }
    guard decoder.decode(coded, from: &position, into: &out) else { return .failed }
    return isFileRead && position == coded.count && decoder.isMemberOver ? .finished : .more
  }
}
