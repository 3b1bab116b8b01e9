import CLMDB
import Glibc
package import KeyValue

extension LMDBStore {
  /// Maps an LMDB return code other than 0 to an error.
  func failure(_ code: Int32, _ operation: StaticString) -> StorageError {
    switch code {
    case MDB_MAP_FULL:
      .storageFull(limitBytes: mapBytes)
    case ENOSPC, EDQUOT:
      .diskFull(path: path)
    case EIO where diskIsFull:
      // LMDB reports a write that a full disk cut short as EIO.
      .diskFull(path: path)
    case MDB_READERS_FULL:
      .tooManyReaders(limit: readersMax)
    default:
      StorageError(lmdb: code, operation, path: path)
    }
  }

  private var diskIsFull: Bool {
    var room = statvfs()
    return fstatvfs(fileDescriptor, &room) == 0 && room.f_bavail == 0
  }
}

extension StorageError {
  /// Maps an LMDB return code that does not depend on the store.
  init(lmdb code: Int32, _ operation: StaticString, path: String) {
    switch code {
    case MDB_PANIC:
      self = .corruption(
        path: path, detail: "an earlier write failed halfway (MDB_PANIC); restart the server to use the data again")
    case MDB_VERSION_MISMATCH:
      self = .unsupportedFormat(path: path, found: "another LMDB version", supported: "LMDB data version 1")
    case MDB_TXN_FULL:
      self = .system(operation: "\(operation)", path: path, code: E2BIG)
    case ..<0:
      self = .corruption(path: path, detail: "\(operation): \(String(cString: mdb_strerror(code)))")
    default:
      self = .system(operation: "\(operation)", path: path, code: code)
    }
  }

  /// Returns the error of a system call that has just set `errno`.
  package static func systemCall(_ operation: StaticString, path: String) -> StorageError {
    let code = errno
    if code == ENOSPC || code == EDQUOT { return .diskFull(path: path) }
    return .system(operation: "\(operation)", path: path, code: code)
  }
}
