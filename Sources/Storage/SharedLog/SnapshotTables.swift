package import LogEngine

/// A snapshot of all stores of a project, as the tables list it. A node without a replica loads it, and then reads the
/// log from its position on.
package struct SnapshotHead: Equatable, Sendable {
  /// A random number that tells attempts to write a snapshot from each other.
  package var id: UInt64
  /// The position before which no store of the snapshot needs the log.
  package var position: LogPosition
  /// The number of parts.
  package var parts: Int
  /// The size of all parts, in bytes.
  package var bytes: Int64
  /// The size of the data files, in bytes.
  package var fileBytes: Int64

  package init(id: UInt64, position: LogPosition, parts: Int, bytes: Int64, fileBytes: Int64) {
    self.id = id
    self.position = position
    self.parts = parts
    self.bytes = bytes
    self.fileBytes = fileBytes
  }
}

/// The reason why the tables did not do something for a snapshot, as a text for operators. It may be done nevertheless.
package struct SnapshotFailure: Error, Equatable, Sendable {
  package let text: String

  package init(_ text: String) { self.text = text }
}

/// The part of the tables of a cluster that has the snapshots, and that shortens the log.
///
/// One node at a time writes a snapshot: it has the *claim*. A claim that was not used for a minute goes to the next node
/// that wants it, and then the former one cannot finish. So two writers do no harm, and parts of an attempt without the
/// claim can be removed.
package protocol SnapshotTables: AnyObject, Sendable {
  /// Returns the snapshots that are whole, the newest first.
  /// - Throws: ``SnapshotFailure``.
  func snapshots() throws(SnapshotFailure) -> [SnapshotHead]

  /// Returns what the writer of a snapshot says about its stores, or `nil` if the snapshot was removed.
  /// - Throws: ``SnapshotFailure``.
  func manifest(of id: UInt64) throws(SnapshotFailure) -> [UInt8]?

  /// Returns a part, counted from 0, or `nil` if it was removed.
  /// - Throws: ``SnapshotFailure``.
  func part(_ number: Int, of id: UInt64) throws(SnapshotFailure) -> [UInt8]?

  /// Takes the claim for a new snapshot. Returns `false` if another node has it.
  /// - Throws: ``SnapshotFailure``.
  func claim(_ id: UInt64) throws(SnapshotFailure) -> Bool

  /// Stores a part, and extends the claim. Returns `false` if the claim is gone. May be repeated.
  /// - Throws: ``SnapshotFailure``.
  func add(_ part: [UInt8], number: Int, to id: UInt64) throws(SnapshotFailure) -> Bool

  /// Makes a snapshot whole, and gives the claim back. Returns `false` if the claim is gone, a part is missing, or the log
  /// does not have each of the positions `marks`. May be repeated.
  /// - Throws: ``SnapshotFailure``.
  func finish(
    _ head: SnapshotHead, manifest: [UInt8], marks: [LogPosition]
  ) throws(SnapshotFailure) -> Bool

  /// Gives the claim back.
  /// - Throws: ``SnapshotFailure``.
  func release(_ id: UInt64) throws(SnapshotFailure)

  /// Returns whether the log has an entry at a position.
  /// - Throws: ``SnapshotFailure``.
  func hasEntry(at position: LogPosition) throws(SnapshotFailure) -> Bool

  /// Returns the size of the bodies after a sequence, in bytes. Cost: reads the rows without the bodies.
  /// - Throws: ``SnapshotFailure``.
  func logBytes(after sequence: UInt64) throws(SnapshotFailure) -> Int64

  /// Stores the report that the log lost entries, in place of a former one. May be repeated.
  /// - Throws: ``SnapshotFailure``.
  func report(_ loss: LogLoss) throws(SnapshotFailure)

  /// Removes a snapshot: the first call makes it unusable, and each call removes some of its parts. Returns whether more
  /// are left.
  /// - Throws: ``SnapshotFailure``.
  func remove(_ id: UInt64) throws(SnapshotFailure) -> Bool

  /// Removes some parts of attempts that were never finished and have no claim. Returns whether more are left.
  /// - Throws: ``SnapshotFailure``.
  func removeLeftovers() throws(SnapshotFailure) -> Bool

  /// Removes some of the entries before a sequence, if the session owns the project in the epoch. Returns whether more are
  /// left.
  /// - Throws: ``SnapshotFailure``.
  func truncate(before sequence: UInt64, by owner: NodeSession, epoch: UInt64) throws(SnapshotFailure) -> Bool
}
