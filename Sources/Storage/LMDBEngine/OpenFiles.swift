import Glibc
import KeyValue
import Synchronization

/// The identity of a file, independent of its path.
struct FileIdentity: Hashable, Sendable {
  var device: UInt64
  var inode: UInt64

  /// Reads the identity of an open file.
  init(descriptor: Int32, path: String) throws(StorageError) {
    var information = stat()
    guard fstat(descriptor, &information) == 0 else { throw .systemCall("fstat", path: path) }
    device = UInt64(information.st_dev)
    inode = UInt64(information.st_ino)
  }
}

/// The data files that this process has open.
///
/// LMDB's file locks belong to the process, not to the environment: closing a second environment of the same file
/// would release the locks of the first. So a second open is rejected.
enum OpenFiles {
  private static let files = Mutex<Set<FileIdentity>>([])

  /// Registers a file that is about to be opened. Returns `false` if it is already open.
  static func insert(_ identity: FileIdentity) -> Bool {
    files.withLock { $0.insert(identity).inserted }
  }

  /// Removes a file that was closed.
  static func remove(_ identity: FileIdentity) {
    files.withLock { _ = $0.remove(identity) }
  }
}
