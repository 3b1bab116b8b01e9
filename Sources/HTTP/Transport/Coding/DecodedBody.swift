import Glibc

/// A file of gzip members as the body of a reply, decoded on its way: for clients that do not take the coding. Content
/// that is no gzip cuts the reply; ask ``canBegin(_:count:)`` first. Belongs to the exchange's loop, and keeps about
/// 100 KB while it is sent.
package final class DecodedBody: BodySource {
  private let file: FileBody
  private let decoder = GzipDecoder()
  private var coded: [UInt8] = []
  /// How much of `coded` was decoded.
  private var position = 0
  private var isFileRead = false

  /// Decodes what a file holds.
  package init(_ file: FileBody) { self.file = file }

  /// Whether the first `count` bytes of a file can be gzip, as far as their first 64 KiB tell, or as much of them as
  /// holds 64 KiB. Nothing at all is taken for gzip of nothing. Waits for the disk.
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
      // What is cut off in the midst of a member may go on; what ends there does not.
      if position == wanted, wanted < count || decoder.isMemberOver { return true }
      guard decoder.decode(coded, from: &position, into: &decoded) else { return false }
    }
    return true
  }

  /// Appends up to 64 KiB of what the file holds.
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
    // Bytes may still be inside the decoder when its input is over.
    if position == coded.count {
      if !isFileRead { return .more }
      if decoder.isMemberOver { return .finished }
    }
    guard decoder.decode(coded, from: &position, into: &out) else { return .failed }
    return isFileRead && position == coded.count && decoder.isMemberOver ? .finished : .more
  }
}
