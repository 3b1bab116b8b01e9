package import KeyValue
import LMDBEngine

/// A store as a replica: its log is elsewhere, and other nodes append to it too.
extension LoggedStore {
  /// The reason why a data file cannot be opened as a replica of a log.
  package enum ReplicaRefusal: Error, Equatable, Sendable {
    /// The file has entries, but no mark of a log: it was never a replica, or it was written alone since.
    case unmarked
    /// The mark is that of another log: the file was written alone since, or is a replica of another cluster.
    case otherLog
    /// A call failed, or the mark is not readable.
    case storage(StorageError)
  }

  /// Opens a data file whose log is elsewhere. `log` appends to that log, and says that this node may not if it does
  /// not own it. The commits after the position of the file come with ``apply(_:at:)``, in order.
  ///
  /// Notes in the file that its log is open. If the file is empty and has no mark, its position becomes `origin`.
  /// - Throws: ``ReplicaRefusal``.
  package static func openReplica(
    _ base: any MarkedStore, log: any CommitLog, secret: UInt64, origin: LogPosition = LogPosition(),
    settings: LoggedStoreSettings = LoggedStoreSettings()
  ) throws(ReplicaRefusal) -> LoggedStore {
    let position = try position(of: base, secret: secret) ?? origin
    do throws(StorageError) {
      if try base.logMark()?.isOpen != true {
        try base.writeMarked { _ throws(StorageError) in
          LogMark(isOpen: true, position: LogOrigin(position: position, secret: secret).bytes)
        }
      }
    } catch { throw .storage(error) }
    let view = LoggedTables.View(active: MemtableLayer(table: Memtable()), position: position, ordinal: 0)
    return LoggedStore(
      LoggedTables(base: base, settings: settings, place: .open(log), view: view, secret: secret))
  }

  /// Returns the position of a replica, or `nil` if the file is new.
  private static func position(of base: any MarkedStore, secret: UInt64) throws(ReplicaRefusal) -> LogPosition? {
    let mark: LogOrigin?
    var isEmpty = true
    do throws(StorageError) {
      mark = try base.logOrigin()
      if mark == nil { isEmpty = try base.statistics().entries == 0 }
    } catch { throw .storage(error) }
    guard let mark else {
      guard isEmpty else { throw .unmarked }
      return nil
    }
    guard mark.secret == secret else { throw .otherLog }
    return mark.position
  }

  /// The position in the log up to which the store has every commit of its own.
  package var position: LogPosition { tables.position }

  /// Adds the effect of a commit of another node at a position of the log. Returns `false` if the store has it already.
  ///
  /// It is readable when this returns, and gets to the data file like any other commit. Waits for the writer, and as
  /// ``write(_:)`` does.
  /// - Throws: ``StorageError/corruption(path:detail:)`` if the batch is malformed; the error of the last flush, or
  ///   ``StorageError/notOwner(of:owner:)`` after ``close(at:)``. Nothing was added then.
  @discardableResult
  package func apply(_ batch: UnsafeRawBufferPointer, at position: LogPosition) throws(StorageError) -> Bool {
    try tables.apply(batch, at: position)
  }

  /// Moves the position of the store forward, past entries of the log that do not concern it, and begins to flush what
  /// is in memory. If nothing is, stores the position in the data file, which costs one sync. Does nothing while a
  /// writer is at work.
  ///
  /// `position` is called while no commit of this store is between the log and the store. It returns a position up to
  /// which the store has each of its commits.
  /// - Throws: ``StorageError`` if the data file cannot be written.
  package func advance(to position: () -> LogPosition) throws(StorageError) { try tables.advance(to: position) }

  /// Moves everything to the data file and closes its mark, which keeps the secret of the log and a position up to
  /// which the store has each of its commits. Later writes fail, and reads show the last state. Waits for the writer.
  /// - Throws: ``StorageError`` if the data file cannot be written. It is as after a crash then.
  package func close(at position: LogPosition) throws(StorageError) { try tables.close(at: position) }

  /// Ends all work and leaves the data file as a crash would. Later writes fail.
  package func abandon() { tables.abandon() }
}
