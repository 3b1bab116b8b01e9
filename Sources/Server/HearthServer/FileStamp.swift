import Glibc

/// What tells that a file is another than before.
struct FileStamp: Equatable {
  var inode: UInt
  var bytes: Int
  var seconds: Int
  var nanoseconds: Int

  init(_ path: String) {
    var status = stat()
    // A file that is gone has a stamp too: when it is back, it is another.
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
