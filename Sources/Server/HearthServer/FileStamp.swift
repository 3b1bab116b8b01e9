import Glibc

/// A fingerprint of a file's state, to detect changes.
struct FileStamp: Equatable {
  var inode: UInt
  var bytes: Int
  var seconds: Int
  var nanoseconds: Int

  init(_ path: String) {
    var status = stat()
    // A missing file has a stamp too, so its return is detected as a change.
    guard stat(path, &status) == 0 else {
      (inode, bytes, seconds, nanoseconds) = (0, 0, 0, 0)
      return
    }
    inode = UInt(status.st_ino)
    bytes = Int(status.st_size)
    seconds = status.st_mtim.tv_sec
    nanoseconds = status.st_mtim.tv_nsec
  }
}
