import Glibc
package import KeyValue
package import LMDBEngine

extension LoggedStore {
  /// Moves the commits of a log to a data file whose mark is open, and closes the mark. The log does not change. With
  /// `keepsReadable`, gives up the commits from a damaged one on.
  ///
  /// Memory: a table of 16 MiB, and the largest commit. If a call fails, the data file has an earlier position, and the
  /// function can be called again.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if the log is damaged or missing; ``StorageError`` if a call
  ///   fails.
  static func moveLog(
    in folder: any LogFolder, to base: any MarkedStore, keepsReadable: Bool = false
  ) throws(StorageError) {
    guard let mark = try base.logMark(), mark.isOpen else { return }
    var origin = try origin(in: mark, of: base)
    let secret = origin.secret
    var table = ReplayTable()
    func move(isOpen: Bool) throws(StorageError) {
      let mark = LogMark(isOpen: isOpen, position: origin.bytes)
      try table.move { (body) throws(StorageError) in
        try base.writeMarked { (transaction) throws(StorageError) in try body(transaction) ? mark : nil }
      }
    }
    do throws(StorageError) {
      _ = try FileLog.read(in: folder, after: origin.position, secret: secret) {
        (batch, position) throws(StorageError) in
        try table.add(batch, position, from: folder.path)
        origin.position = position
        if table.isFull { try move(isOpen: true) }
      }
    } catch {
      guard keepsReadable, case .corruption = error else { throw error }
    }
    try move(isOpen: false)
  }

  /// Gives up the commits of a damaged log that cannot be read: moves those before the damage to the data file, and renames
  /// the log, so that the file can be opened again. Returns the new path of the log, or `nil` if the log is intact.
  ///
  /// If commits after the damage are partly in the data file, that stays as it is; ``LMDBStore/verify(progress:)`` and
  /// the checks above it find it. No other process may use the file.
  /// - Throws: ``StorageError`` if a call fails.
  package static func giveUpDamaged(_ options: LMDBOptions) throws(StorageError) -> String? {
    do throws(StorageError) {
      try settle(options)
      return nil
    } catch {
      guard case .corruption(logPath(of: options.path), _) = error else { throw error }
    }
    var options = options
    options.acceptsOpenLog = true
    let path = logPath(of: options.path)
    let damaged = "\(path)-damaged-\(UInt32.random(in: .min ... .max))"
    try moveLog(in: DiskFolder(path: path), to: LMDBStore.open(options), keepsReadable: true)
    guard rename(path, damaged) == 0 || errno == ENOENT else { throw .systemCall("rename", path: path) }
    return damaged
  }

  /// Removes the log of a data file that was replaced.
  /// - Throws: ``StorageError`` if a file cannot be removed.
  package static func removeLog(of path: String) throws(StorageError) {
    try FileLog.removeClosed(in: DiskFolder(path: logPath(of: path)))
  }

  /// Returns the position and the secret in the mark of a data file.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if the mark has another form.
  static func origin(in mark: LogMark, of base: any MarkedStore) throws(StorageError) -> LogOrigin {
    guard let origin = LogOrigin(mark.position) else {
      throw .corruption(path: base.path, detail: "the position in the log is not readable")
    }
    return origin
  }
}
