import CLMDB
import Glibc
package import KeyValue

extension LMDBStore {
  /// Writes a copy as ``KeyValueStore/copy(toFile:)``; see ``copy(toFile:keepsMark:)``.
  /// - Throws: ``StorageError`` if the file exists already, or reading or writing fails.
  package func copy(toFile path: String) throws(StorageError) { try copy(toFile: path, keepsMark: false) }

  /// Writes a compact copy of the newest state to a new file, and syncs the file and its directory.
  ///
  /// Works for in-memory stores and while other threads write. Like a snapshot held for the same time, it keeps
  /// LMDB from reusing pages. A copy has no log: the caller has moved the commits of the log to this store. Or, with
  /// `keepsMark`, the caller moves them to the copy and closes its mark. If it fails, it removes the file.
  /// - Throws: ``StorageError/system(operation:path:code:)`` with `EEXIST` if the file exists already, or another
  ///   ``StorageError`` if reading or writing fails.
  package func copy(toFile path: String, keepsMark: Bool) throws(StorageError) {
    let file = try Descriptor(path: path, flags: O_WRONLY | O_CREAT | O_EXCL, mode: 0o600)
    do throws(StorageError) {
      let code = mdb_env_copyfd2(environment, file.number, UInt32(MDB_CP_COMPACT))
      if code == ENOSPC || code == EDQUOT { throw .diskFull(path: path) }
      guard code == 0 else { throw failure(code, "mdb_env_copyfd2") }
      try file.sync()
      if !keepsMark, try logMark()?.isOpen == true { try Self.closeMark(ofCopy: path) }
      try Descriptor.syncDirectory(of: path)
    } catch {
      unlink(path)
      throw error
    }
  }

  /// Writes a compact copy of the newest state, with the mark of the store, to a descriptor such as that of a pipe.
  ///
  /// The state is that of a moment before the first byte is written.
  /// - Throws: ``StorageError`` if reading or writing fails: with `EPIPE` if nobody reads any more.
  package func copy(to descriptor: Int32) throws(StorageError) {
    let code = mdb_env_copyfd2(environment, descriptor, UInt32(MDB_CP_COMPACT))
    guard code == 0 else { throw failure(code, "mdb_env_copyfd2") }
  }

  /// Notes in a copy that it has no log.
  private static func closeMark(ofCopy path: String) throws(StorageError) {
    defer { unlink("\(path)-lock") }
    var options = LMDBOptions(path: path).withRoom()
    options.acceptsOpenLog = true
    let copy = try open(options)
    let mark = try copy.logMark()
    try copy.writeMarked { _ throws(StorageError) in LogMark(isOpen: false, position: mark?.position ?? []) }
  }
}
