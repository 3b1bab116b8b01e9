import Glibc

/// The facts about a file or a folder by which a process notices that it was replaced or written.
struct FileFacts: Equatable {
  /// Tells a file from another one with the same name.
  struct Identity: Equatable {
    var device: UInt64
    var inode: UInt64
  }

  var identity: Identity
  var bytes: Int
  var changedSeconds: Int
  var changedNanoseconds: Int

  /// Reads the facts. Returns `nil` if nothing has the path.
  init?(of path: String) {
    var status = stat()
    guard stat(path, &status) == 0 else { return nil }
    identity = Identity(device: UInt64(status.st_dev), inode: UInt64(status.st_ino))
    bytes = Int(status.st_size)
    (changedSeconds, changedNanoseconds) = (status.st_mtim.tv_sec, status.st_mtim.tv_nsec)
  }
}
