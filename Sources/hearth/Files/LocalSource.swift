import Files
import Glibc

/// A file of this machine that is read to its end once, with the checksum of what was read.
final class LocalSource {
  private static let pieceBytes = 256 << 10

  /// Its path.
  let path: String
  /// Its size when it was opened, in bytes.
  let size: Int
  /// Bytes read so far.
  private(set) var readBytes = 0
  /// Why reading ended too early.
  private(set) var failure: CommandFailure?
  private let descriptor: Int32
  private var sum: UInt32 = 0

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

  /// The next bytes; none at the end, and where it cannot be read on.
  func next() -> [UInt8] {
    let wanted = min(Self.pieceBytes, size - readBytes)
    guard wanted > 0, failure == nil else { return [] }
    let piece = [UInt8](unsafeUninitializedCapacity: wanted) { buffer, count in
      repeat { count = max(-1, read(descriptor, buffer.baseAddress, wanted)) } while count < 0 && errno == EINTR
      if count < 0 { failure = .failed("\(path): \(String(cString: strerror(errno)))") }
      if count == 0 { failure = .failed("\(path) became shorter while it was read; copy it again") }
      count = max(0, count)
    }
    readBytes += piece.count
    sum = piece.withUnsafeBytes { Crc32c.extend(sum, $0) }
    return piece
  }

  /// The checksum of what was read, in base64.
  var crc32c: String { Crc32c.text(sum) }
}
