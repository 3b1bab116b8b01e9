import Glibc

/// The local file of content that is being published, read in pieces.
package struct PublishedFile: ~Copyable {
  private let descriptor: Int32
  private let path: String
  private let size: Int
  private let pieceBytes: Int
  private var offset = 0

  /// Opens a file that must have `size` bytes.
  /// - Throws: ``SharedContentError/local(operation:path:code:)`` if it cannot be opened or is shorter or longer.
  package init(_ path: String, size: Int, pieceBytes: Int) throws(SharedContentError) {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw .local(operation: "open", path: path, code: errno) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, Int(status.st_size) == size else {
      close(descriptor)
      throw .local(operation: "fstat", path: path, code: EIO)
    }
    (self.descriptor, self.path, self.size, self.pieceBytes) = (descriptor, path, size, pieceBytes)
  }

  deinit { close(descriptor) }

  /// Returns the next piece, or `nil` after the last one. Only the last piece is shorter than the others.
  /// - Throws: ``SharedContentError/local(operation:path:code:)`` if the file cannot be read or is shorter now.
  package mutating func next() throws(SharedContentError) -> [UInt8]? {
    let wanted = min(pieceBytes, size - offset)
    guard wanted > 0 else { return nil }
    var code: Int32 = 0
    let piece = [UInt8](unsafeUninitializedCapacity: wanted) { [descriptor, offset] buffer, count in
      while count < wanted {
        let read = pread(descriptor, buffer.baseAddress.map { $0 + count }, wanted - count, off_t(offset + count))
        if read < 0, errno == EINTR { continue }
        guard read > 0 else {
          code = read < 0 ? errno : EIO
          return
        }
        count += read
      }
    }
    guard code == 0 else { throw .local(operation: "read", path: path, code: code) }
    offset += wanted
    return piece
  }
}

/// The time within which a publication must end.
package struct PublicationDeadline: Sendable {
  private let end = SecondsSinceBoot.now + Int64(SharedContentLimits.publicationSecondsMax)

  /// Begins the time.
  package init() {}

  /// Checks that the time is not over.
  /// - Throws: ``SharedContentError/unavailable(_:)`` if it is.
  package func check(_ place: String) throws(SharedContentError) {
    guard SecondsSinceBoot.now < end else {
      throw .unavailable(
        "\(place) took more than \(SharedContentLimits.publicationSecondsMax / 60) minutes to store a file")
    }
  }
}

/// The time since the machine started, which also passes while it sleeps and never steps.
package enum SecondsSinceBoot {
  /// The time in whole seconds.
  package static var now: Int64 {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    return Int64(time.tv_sec)
  }
}
