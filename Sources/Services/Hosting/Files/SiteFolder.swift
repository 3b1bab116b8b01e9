import CBeneath
import Glibc

/// The folder of a site. Requests reach regular files below it and nothing else.
///
/// Symbolic links are followed while they stay below the folder. The folder itself may be a link: it is opened again
/// for each look-up, so a deployment can replace it at once.
struct SiteFolder: Sendable {
  /// The path of the folder, as the operator wrote it.
  let path: String

  /// A reason why the server cannot look for files now.
  struct Failure: Error { let code: Int32 }

  /// Calls `body` with the open folder, which is valid during the call.
  ///
  /// - Throws: ``Failure`` if the folder cannot be opened, or the error of `body`.
  func withOpen<Value>(_ body: (OpenFolder) throws(Failure) -> Value) throws(Failure) -> Value {
    let descriptor = open(path, cbeneath_folder)
    guard descriptor >= 0 else { throw Failure(code: errno) }
    defer { close(descriptor) }
    return try body(OpenFolder(descriptor: descriptor))
  }
}

/// A folder that is open for one look-up.
struct OpenFolder {
  fileprivate let descriptor: Int32

  private static let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY

  /// Opens a regular file. Returns `nil` if none exists at the path, it cannot be read, or the path leads out of the
  /// folder.
  ///
  /// - Throws: ``SiteFolder/Failure`` if the process or the system has no descriptor left, or the disk fails.
  func file(_ path: SitePath) throws(SiteFolder.Failure) -> OpenFile? {
    guard !path.isRoot, !path.hasTrailingSlash else { return nil }
    let found = descriptor(of: path.relative)
    guard found >= 0 else {
      switch errno {
      case ENOENT, ENOTDIR, EXDEV, ELOOP, EACCES, EPERM, ENAMETOOLONG, ENXIO, EINVAL, ENODEV: return nil
      default: throw SiteFolder.Failure(code: errno)
      }
    }
    let file = OpenFile(found)
    return file.isRegular ? file : nil
  }

  private func descriptor(of path: String) -> Int32 {
    // A rename elsewhere in the folder can interrupt the check of a path.
    var found: Int32 = -1
    for _ in 0..<8 {
      found = cbeneath_open(descriptor, path, Self.flags)
      if found >= 0 || errno != EAGAIN { break }
    }
    // An old kernel, or a container that does not permit the call.
    if found < 0, errno == ENOSYS || errno == EPERM { return openByParts(path) }
    return found
  }

  /// Opens a path one segment after the other and follows no link.
  private func openByParts(_ path: String) -> Int32 {
    var current = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    let parts = path.split(separator: "/")
    for (number, part) in parts.enumerated() where current >= 0 {
      let flags = number == parts.count - 1 ? Self.flags | O_NOFOLLOW : cbeneath_folder | O_NOFOLLOW
      let next = openat(current, String(part), flags)
      let failure = errno
      close(current)
      errno = failure
      current = next
    }
    return current
  }
}

/// An open file of a site. Closes it at the end.
package final class OpenFile: Sendable {
  /// The file's identity and state.
  package let stamp: ContentStamp
  /// Seconds since 1970 of the last change.
  package let modifiedSeconds: Int64
  let isRegular: Bool
  private let descriptor: Int32

  init(_ descriptor: Int32) {
    self.descriptor = descriptor
    var status = stat()
    isRegular = fstat(descriptor, &status) == 0 && status.st_mode & S_IFMT == S_IFREG
    stamp = ContentStamp(status)
    modifiedSeconds = Int64(status.st_mtim.tv_sec)
  }

  deinit { close(descriptor) }

  /// The size in bytes.
  package var size: Int { stamp.size }

  /// Returns a descriptor of the file that the caller closes, or `nil` if none is left.
  package func takeDescriptor() -> Int32? {
    let copy = fcntl(descriptor, F_DUPFD_CLOEXEC, 0)
    return copy < 0 ? nil : copy
  }

  /// Reads the whole content. Returns `nil` if the disk fails or the size changes meanwhile.
  func read() -> [UInt8]? {
    var done = 0
    let content = [UInt8](unsafeUninitializedCapacity: size) { space, count in
      while done < space.count {
        let read = pread(descriptor, space.baseAddress.map { $0 + done }, space.count - done, off_t(done))
        if read < 0 && errno == EINTR { continue }
        guard read > 0 else { break }
        done += read
      }
      count = done
    }
    return done == size ? content : nil
  }
}

/// The identity of a file and its state. A file with the same stamp has the same content.
package struct ContentStamp: Hashable, Sendable {
  let device: UInt
  let inode: UInt
  let size: Int
  let modified: Int
  let changed: Int

  init(_ status: stat) {
    device = UInt(status.st_dev)
    inode = UInt(status.st_ino)
    size = Int(status.st_size)
    modified = Self.nanoseconds(status.st_mtim)
    changed = Self.nanoseconds(status.st_ctim)
  }

  private static func nanoseconds(_ time: timespec) -> Int {
    Int(time.tv_sec).multipliedReportingOverflow(by: 1_000_000_000).partialValue &+ Int(time.tv_nsec)
  }

  /// Whether the file changed so recently that another change could leave the stamp as it is. File systems have coarse
  /// clocks.
  var isRecent: Bool {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    return Self.nanoseconds(now) &- changed < 2_000_000_000
  }
}
