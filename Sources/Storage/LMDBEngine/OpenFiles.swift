import Glibc
import KeyValue
import Synchronization

/// Which file a path leads to, whatever it is called.
struct FileIdentity: Hashable, Sendable {
  var device: UInt64
  var inode: UInt64

  /// Looks at an open file.
  init(descriptor: Int32, path: String) throws(StorageError) {
    var information = stat()
    guard fstat(descriptor, &information) == 0 else { throw .systemCall("fstat", path: path) }
    device = UInt64(information.st_dev)
    inode = UInt64(information.st_ino)
  }
}

/// The data files this process has open.
///
/// LMDB's file locks belong to the process, not to the environment: closing a second environment on the same
/// file would drop those of the first. So a second open is refused.
enum OpenFiles {
  private static let files = Mutex<Set<FileIdentity>>([])

  /// Notes that a file is about to be opened. Returns `false` when it is open already.
  static func insert(_ identity: FileIdentity) -> Bool {
    files.withLock { $0.insert(identity).inserted }
  }

  /// Forgets a file that was closed.
  static func remove(_ identity: FileIdentity) {
    files.withLock { _ = $0.remove(identity) }
  }
}
