import Glibc

/// The folder `DIR/run` of a data directory, which contains the admin socket.
///
/// Its permissions are the credentials: a process that can open the socket is an administrator. So the server and the
/// command line use the folder only if no other user can enter it. They hold it open and reach the socket through the
/// descriptor, so a folder that somebody puts in its place later is not used, and the length of the path does not matter
/// (a socket's address has room for 107 bytes, unix(7)).
package final class AdminSocketFolder: Sendable {
  /// The name of the folder in the data directory.
  package static let name = "run"
  /// The name of the socket in the folder.
  package static let socketName = "admin.sock"

  /// The path of the socket, for messages.
  package let path: String
  /// An open descriptor of the folder.
  let descriptor: Int32
  /// The user who owns the folder.
  private let owner: uid_t

  /// Opens the folder of a data directory, or returns `nil` if it does not exist.
  /// - Throws: ``HearthError/configuration(_:)`` with the remedy if users other than its owner may enter or replace it,
  ///   or if it belongs to another user than this process; root may also use it if the data directory has the same owner.
  package init?(of directory: String) throws(HearthError) {
    let folder = "\(directory)/\(Self.name)"
    path = "\(folder)/\(Self.socketName)"
    let parent = open(directory, Self.placeFlags)
    guard parent >= 0 else {
      if errno == ENOENT { return nil }
      throw Self.unusable(directory)
    }
    defer { close(parent) }
    let descriptor = openat(parent, Self.name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      guard errno == ELOOP || errno == ENOTDIR else { throw Self.unusable(folder) }
      throw .configuration("\(folder) must be a folder, and not a link; remove it, and restart the server")
    }
    self.descriptor = descriptor
    do throws(HearthError) {
      owner = try Self.ownerIfSafe(descriptor, folder, in: parent, directory)
    } catch {
      close(descriptor)
      throw error
    }
  }

  deinit { close(descriptor) }

  /// Creates the folder if it does not exist, and opens it.
  /// - Throws: ``HearthError/configuration(_:)`` as ``init(of:)`` does, or if the folder cannot be created.
  static func make(in directory: String) throws(HearthError) -> AdminSocketFolder {
    let folder = "\(directory)/\(name)"
    if mkdir(folder, 0o700) != 0, errno != EEXIST { throw unusable(folder) }
    guard let made = try AdminSocketFolder(of: directory) else { throw unusable(folder) }
    return made
  }

  /// The path by which this process reaches the socket while this object exists.
  package var socketPath: String {
    let short = "/proc/self/fd/\(descriptor)"
    return (access(short, F_OK) == 0 ? short : String(path.dropLast(Self.socketName.utf8.count + 1)))
      + "/\(Self.socketName)"
  }

  /// Whether the folder contains a socket that no other user can have put there or may open.
  /// - Throws: ``HearthError/configuration(_:)`` with the remedy if the entry is something else.
  package func hasSocket() throws(HearthError) -> Bool {
    var status = stat()
    guard fstatat(descriptor, Self.socketName, &status, AT_SYMLINK_NOFOLLOW) == 0 else {
      if errno == ENOENT { return false }
      throw Self.unusable(path)
    }
    guard status.st_mode & S_IFMT == S_IFSOCK else {
      throw .configuration("\(path) is not a socket; remove it, and restart the server")
    }
    guard status.st_uid == owner || status.st_uid == 0, status.st_mode & 0o077 == 0 else {
      throw .configuration(
        "users other than the owner of the server may open \(path), which makes them administrators; run "
          + "`chmod go= \(path)`")
    }
    return true
  }

  private static func ownerIfSafe(
    _ descriptor: Int32, _ folder: String, in parent: Int32, _ directory: String
  ) throws(HearthError) -> uid_t {
    var (own, above) = (stat(), stat())
    guard fstat(descriptor, &own) == 0, fstat(parent, &above) == 0 else { throw unusable(folder) }
    guard above.st_mode & 0o022 == 0 || above.st_mode & S_ISVTX != 0 else {
      throw .configuration(
        "users other than its owner can replace files of \(directory), and so the admin socket; run "
          + "`chmod go-w \(directory)`")
    }
    guard own.st_mode & 0o077 == 0 else {
      throw .configuration(
        "users other than its owner may enter \(folder), and so become administrators; run `chmod go= \(folder)`")
    }
    // Root may use the folder of the directory's owner, but not one that somebody else created in a shared directory.
    guard own.st_uid == geteuid() || geteuid() == 0 && own.st_uid == above.st_uid else {
      throw .configuration("\(folder) belongs to \(userName(own.st_uid)); run the command as that user")
    }
    return own.st_uid
  }

  /// Returns the name of a user, or its number if it has none.
  package static func userName(_ user: UInt32) -> String {
    getpwuid(user).map { String(cString: $0.pointee.pw_name) } ?? "user \(user)"
  }

  private static func unusable(_ path: String) -> HearthError {
    .configuration("\(path) cannot be used: \(String(cString: strerror(errno)))")
  }

  /// Flags that open a directory only as a place, which needs no permission to list it. `O_PATH` is declared for GNU
  /// programs only.
  private static var placeFlags: Int32 { 0o10000000 | O_DIRECTORY | O_CLOEXEC }
}
