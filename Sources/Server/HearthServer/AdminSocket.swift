import Glibc

/// The Unix socket `DIR/run/admin.sock`, over which the command line administers a running server without a token and
/// without TLS.
///
/// The process holds the lock of the data directory, so a socket that is there already is left from a server that was
/// killed, and is replaced.
final class AdminSocket: Sendable {
  /// The listening descriptor.
  let descriptor: Int32
  private let folder: AdminSocketFolder

  /// The connections that wait to be accepted. The command line opens a few.
  private static let backlog: Int32 = 64

  /// Creates the socket and listens on it.
  /// - Throws: ``HearthError/configuration(_:)`` if the folder is not safe, or its file system has no sockets.
  init(in directory: String) throws(HearthError) {
    folder = try AdminSocketFolder.make(in: directory)
    let name = AdminSocketFolder.socketName
    var status = stat()
    if fstatat(folder.descriptor, name, &status, AT_SYMLINK_NOFOLLOW) == 0 {
      guard status.st_mode & S_IFMT == S_IFSOCK else {
        throw .configuration("\(folder.path) is not a socket; remove it, and restart the server")
      }
      unlinkat(folder.descriptor, name, 0)
    }
    descriptor = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue), 0)
    guard descriptor >= 0 else { throw .configuration("cannot create a socket: \(String(cString: strerror(errno)))") }
    // The folder keeps other users out until the socket has its permissions. It is not usable before it listens.
    guard Self.bind(descriptor, to: folder.socketPath), fchmodat(folder.descriptor, name, 0o600, 0) == 0,
      listen(descriptor, Self.backlog) == 0
    else {
      let reason = String(cString: strerror(errno))
      close(descriptor)
      throw .configuration("cannot listen on \(folder.path): \(reason)")
    }
  }

  /// Removes the socket's name. The server has closed the descriptor, or never used it.
  func remove() { unlinkat(folder.descriptor, AdminSocketFolder.socketName, 0) }

  private static func bind(_ descriptor: Int32, to path: String) -> Bool {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    let bytes = Array(path.utf8)
    let fits = withUnsafeMutableBytes(of: &address.sun_path) { room in
      guard bytes.count < room.count else { return false }
      room.copyBytes(from: bytes)
      return true
    }
    guard fits else {
      errno = ENAMETOOLONG
      return false
    }
    return withUnsafePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        Glibc.bind(descriptor, address, socklen_t(MemoryLayout<sockaddr_un>.size)) == 0
      }
    }
  }
}
