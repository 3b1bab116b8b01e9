import Files
import Glibc

/// A file of this machine that is read to its end, parts of it perhaps more than once, with the checksum of what was
/// read.
final class LocalSource {
  private static let pieceBytes = 256 << 10

  /// Its path.
  let path: String
  /// Its size when it was opened, in bytes.
  let size: Int
  /// Where the next bytes come from.
  private(set) var position = 0
  /// Why reading ended too early.
  private(set) var failure: CommandFailure?
  private let descriptor: Int32
  private var sum: UInt32 = 0
  /// Bytes that the sum is of.
  private var summedBytes = 0

  /// Opens a file; `follows` a symbolic link.
  /// - Throws: ``CommandFailure`` where it is no file that can be read.
  init(_ path: String, follows: Bool = true) throws {
    self.path = path
    // A pipe or a device must not hold it up; it is refused below.
    descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | (follows ? 0 : O_NOFOLLOW))
    var status = stat()
    let isOpen = descriptor >= 0 && fstat(descriptor, &status) == 0
    let reason = String(cString: strerror(errno))
    size = isOpen ? Int(status.st_size) : 0
    guard isOpen else { throw CommandFailure.data("\(path): \(reason)") }
    guard status.st_mode & S_IFMT == S_IFREG else {
      let isFolder = status.st_mode & S_IFMT == S_IFDIR
      throw CommandFailure.data(isFolder ? "\(path) is a folder; add --recursive" : "\(path) is no file")
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Reads on from a place that was passed. The sum stays that of the bytes as they were read first.
  func goBack(to place: Int) { position = min(place, summedBytes) }

  /// The next bytes, at most so many; none at the end, and where it cannot be read on.
  func next(atMost countMax: Int) -> [UInt8] {
    let wanted = min(Self.pieceBytes, countMax, size - position)
    guard wanted > 0, failure == nil else { return [] }
    let piece = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
      repeat {
        count = max(-1, pread(descriptor, buffer.baseAddress, wanted, off_t(position)))
      } while count < 0 && errno == EINTR
      if count < 0 { failure = .failed("\(path): \(String(cString: strerror(errno)))") }
      if count == 0 { failure = .failed("\(path) became shorter while it was read; copy it again") }
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

  /// The checksum of what was read, in base64.
  var crc32c: String { Crc32c.text(sum) }
}
