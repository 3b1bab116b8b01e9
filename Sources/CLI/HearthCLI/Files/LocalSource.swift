import Digests
import Files
import Glibc

/// A file of this machine that is read for an upload, and its checksum. Parts can be read again.
final class LocalSource {
  private static let pieceBytes = 256 << 10

  let path: String
  /// The size when the file was opened, in bytes.
  let size: Int
  /// The offset of the next bytes.
  private(set) var position = 0
  /// The error that ended reading too early, if any.
  private(set) var failure: CommandFailure?
  private let descriptor: Int32
  private var sum: UInt32 = 0
  /// The number of bytes that the checksum covers.
  private var summedBytes = 0

  /// Opens a file. If `follows`, the path may be a symbolic link.
  /// - Throws: ``CommandFailure`` if the path is not a regular file or cannot be read.
  init(_ path: String, follows: Bool = true) throws {
    self.path = path
    // Opening a pipe or a device must not block. It is refused below.
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follows ? 0 : O_NOFOLLOW))
    var status = stat()
    let isOpen = descriptor >= 0 && fstat(descriptor, &status) == 0
    let reason = String(cString: strerror(errno))
    size = isOpen ? Int(status.st_size) : 0
    guard isOpen else { throw CommandFailure.data("\(path): \(reason)") }
    guard status.st_mode & S_IFMT == S_IFREG else {
      let isFolder = status.st_mode & S_IFMT == S_IFDIR
      throw CommandFailure.data(isFolder ? "\(path) is a folder; add --recursive" : "\(path) is not a regular file")
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Continues reading at an earlier position. The checksum still covers each byte as it was read first.
  func seek(to place: Int) { position = min(place, summedBytes) }

  /// Returns the next bytes, at most `countMax`; none at the end or if reading fails (see ``failure``).
  func next(atMost countMax: Int) -> [UInt8] {
    let wanted = min(Self.pieceBytes, countMax, size - position)
    guard wanted > 0, failure == nil else { return [] }
    let piece = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
      repeat {
        count = max(-1, pread(descriptor, buffer.baseAddress, wanted, off_t(position)))
      } while count < 0 && errno == EINTR
      if count < 0 { failure = .failed("\(path): \(String(cString: strerror(errno)))") }
      if count == 0 { failure = .failed("\(path) was truncated while it was read; copy it again") }
      count = max(0, count)
    }
    position += piece.count
    if position > summedBytes {
      sum = piece.withUnsafeBytes { bytes in
        Crc32c.extend(sum, UnsafeRawBufferPointer(rebasing: bytes.suffix(position - summedBytes)))
      }
      summedBytes = position
    }
    return piece
  }

  /// The CRC-32C of the bytes that were read, in base64.
  var crc32c: String { Crc32c.text(sum) }
}
