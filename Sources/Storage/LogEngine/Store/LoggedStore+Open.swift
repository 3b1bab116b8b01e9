package import KeyValue
package import LMDBEngine

extension LoggedStore {
  /// Opens a data file with its log.
  ///
  /// If the log is open, a crash left it: its commits after those of the data file are read into memory. Otherwise every
  /// commit is in the data file, and the log begins with the next one.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if the log lacks commits, is damaged, or belongs to another file;
  ///   ``StorageError`` if a call fails.
  package static func open(
    _ base: any MarkedStore, folder: any LogFolder, settings: LoggedStoreSettings = LoggedStoreSettings(),
    newSecret: UInt64 = .random(in: .min ... .max)
  ) throws(StorageError) -> LoggedStore {
    var view = LoggedTables.View(active: MemtableLayer(table: Memtable()), position: LogPosition(), ordinal: 0)
    guard let mark = try base.logMark() else {
      try FileLog.removeClosed(in: folder)
      return LoggedStore(
        LoggedTables(base: base, settings: settings, place: .folder(folder), view: view, secret: newSecret))
    }
    let origin = try origin(in: mark, of: base)
    let (position, secret) = (origin.position, origin.secret)
    view.position = position
    guard mark.isOpen else {
      try FileLog.removeClosed(in: folder)
      return LoggedStore(
        LoggedTables(base: base, settings: settings, place: .folder(folder), view: view, secret: newSecret))
    }
    var load = MemtableLoad(view.active.table)
    let log = try FileLog.recover(in: folder, after: position, secret: secret, sizes: settings.log) {
      (batch, position) throws(StorageError) in
      do throws(CommitBatchError) {
        try load.add(batch, &view.active.ranges, ordinal: &view.ordinal)
      } catch {
        throw .corruption(
          path: folder.path,
          detail: "commit \(position.sequence) is wrong at byte \(error.offset): \(error.problem)")
      }
    }
    load.finish()
    view.position = log.position
    return LoggedStore(
      LoggedTables(base: base, settings: settings, place: .open(log), view: view, secret: secret))
  }

  /// Opens a data file on the disk with the log in the folder beside it.
  /// - Throws: as ``open(_:folder:settings:newSecret:)`` and ``LMDBStore/open(_:)``.
  package static func open(
    _ options: LMDBOptions, settings: LoggedStoreSettings = LoggedStoreSettings()
  ) throws(StorageError) -> LoggedStore {
    var options = options
    options.acceptsOpenLog = true
    return try open(LMDBStore.open(options), folder: DiskFolder(path: logPath(of: options.path)), settings: settings)
  }

  /// Moves the commits of a log that a crash left to its data file, and removes the log. Does nothing without a log.
  ///
  /// Servers without a log call it before they open a file that had one.
  /// - Throws: as ``open(_:settings:)``, or ``StorageError`` if the data file cannot be written.
  package static func settle(_ options: LMDBOptions) throws(StorageError) {
    let store = try open(options)
    try store.flush()
  }

  /// The folder of a data file's log.
  package static func logPath(of path: String) -> String { "\(path)-log" }
}
