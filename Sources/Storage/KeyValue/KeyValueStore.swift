/// An ordered map from byte strings to byte strings with snapshots and atomic, durable writes.
///
/// This is the interface between Hearth and a storage engine. The code above it sees one flat key space in unsigned
/// byte order. Everything that an engine needs (pages, maps, locks, files) stays below it. LMDB is the embedded
/// engine; `Tests/LMDBEngineTests` contains the contract suite that every engine must pass.
///
/// An engine guarantees:
/// - Keys of 1 to ``KeyValueLimits/keyBytesMax`` bytes and values of 0 to ``KeyValueLimits/valueBytesMax`` bytes
///   are kept exactly. Keys are ordered as unsigned bytes, and a prefix precedes its extensions.
/// - A snapshot shows exactly the state after some whole write transaction, for as long as it lives, however many
///   writes follow. It sees every transaction that was acknowledged before it was taken.
/// - A write transaction is applied whole or not at all, also across a crash. When ``write(_:)`` returns, the
///   change is durable (if the engine was opened as durable) and visible to new snapshots.
/// - There is one writer at a time. Readers never wait for it, nor it for them.
///
/// It does not guarantee that two snapshots differ if nothing was written, any order between waiting writers, or
/// cheap long-lived snapshots. A snapshot held for a long time makes an LMDB file grow, so hold it for one slice of
/// work and then take another.
///
/// The protocols below are class-bound and return raw bytes. A call costs one indirect jump, like a virtual method,
/// and boxes nothing.
public protocol KeyValueStore: AnyObject, Sendable {
  /// Takes a snapshot of the newest committed state.
  ///
  /// Cost: no allocation in the steady state, no wait for a writer. Use a snapshot from one thread at a time, and
  /// release it (or call ``KeyValueSnapshot/end()``) soon.
  /// - Throws: ``StorageError/tooManyReaders(limit:)`` if all reader slots of the engine are in use.
  func snapshot() throws(StorageError) -> any KeyValueSnapshot

  /// Runs one write transaction on the calling thread and commits it.
  ///
  /// Waits until no other write transaction is open. If `body` throws, nothing is written and its error is
  /// rethrown. The closure is not `async`: it cannot suspend while it holds the writer. The transaction object is
  /// invalid once the closure returns.
  /// - Throws: the error of `body`, or ``StorageError`` if the commit fails. Nothing is written in either case, except with
  ///   ``StorageError/outcomeUnknown(path:detail:)``: then a later opening may find the commit.
  func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError)

  /// Writes a consistent, compact copy of the newest state as a file that an engine of this kind can open.
  ///
  /// Writes may continue meanwhile. Cost: reads the whole store.
  /// - Throws: ``StorageError`` if the file exists already, or reading or writing fails.
  func copy(toFile path: String) throws(StorageError)

  /// Returns sizes and counts, for `hearth stats`.
  /// - Throws: ``StorageError`` if the read fails.
  func statistics() throws(StorageError) -> KeyValueStatistics

  /// Returns the same of the data file alone, which may lack the newest commits. Cost: a few page reads; no write waits.
  /// - Throws: ``StorageError`` if the read fails.
  func fileStatistics() throws(StorageError) -> KeyValueStatistics

  /// The error of the disk because of which writes fail or will soon, or `nil` if none is known. Some errors last until the store
  /// is opened again. Cost: a lock at most.
  var writeFailure: StorageError? { get }
}

extension KeyValueStore {
  /// Nothing: each write finds out.
  public var writeFailure: StorageError? { nil }

  /// Returns ``statistics()``.
  /// - Throws: ``StorageError`` if the read fails.
  public func fileStatistics() throws(StorageError) -> KeyValueStatistics { try statistics() }
}

/// A consistent, read-only view of the whole store at one moment.
///
/// Returned bytes point into the store and are valid until the snapshot ends.
public protocol KeyValueSnapshot: AnyObject {
  /// Returns the value stored under `key`, or `nil` if none exists.
  /// - Throws: ``StorageError`` if the read fails.
  func value(for key: UnsafeRawBufferPointer) throws(StorageError) -> UnsafeRawBufferPointer?

  /// Returns a cursor over the whole key space that is not at an entry yet.
  /// - Throws: ``StorageError`` if the engine fails.
  func makeCursor() throws(StorageError) -> any KeyValueCursor

  /// Ends the snapshot. Every pointer that it returned and every cursor that it made becomes invalid.
  ///
  /// `deinit` calls it too. A second call does nothing.
  func end()
}

/// A position in the ordered key space of one snapshot or one write transaction.
///
/// After a call that returned `true`, ``key`` and ``value`` are the bytes of the cursor's current entry. They are
/// valid until the cursor moves (the key of a long entry is assembled in the cursor's own memory), its snapshot
/// ends or its transaction writes. A cursor has no current entry if it is new, moved past either end, or its
/// transaction wrote: seek before stepping.
public protocol KeyValueCursor: AnyObject {
  /// Moves to the first entry whose key is not below `key`. Returns `false` if no such entry exists.
  ///
  /// `key` may be empty, or longer than any stored key.
  /// - Throws: ``StorageError`` if the read fails.
  func seek(atOrAfter key: UnsafeRawBufferPointer) throws(StorageError) -> Bool

  /// Moves to the last entry whose key is below `key`. Returns `false` if no such entry exists.
  /// - Throws: ``StorageError`` if the read fails.
  func seek(before key: UnsafeRawBufferPointer) throws(StorageError) -> Bool

  /// Moves to the next entry. Returns `false` at the end; the cursor then has no current entry.
  /// - Throws: ``StorageError`` if the read fails.
  func next() throws(StorageError) -> Bool

  /// Moves to the previous entry. Returns `false` at the beginning; the cursor then has no current entry.
  /// - Throws: ``StorageError`` if the read fails.
  func previous() throws(StorageError) -> Bool

  /// The key of the current entry.
  var key: UnsafeRawBufferPointer { get }

  /// The value of the current entry.
  var value: UnsafeRawBufferPointer { get }
}

/// The open write transaction. It reads its own writes.
public protocol KeyValueTransaction: KeyValueSnapshot {
  /// Stores `value` under `key`, replacing any earlier value.
  ///
  /// Invalidates bytes returned by this transaction and its cursors, so neither argument may be such bytes.
  /// - Throws: ``StorageError/oversized(keyBytes:valueBytes:)`` if the key or the value is too long; the
  ///   transaction can continue. After any other error the transaction cannot be committed, and
  ///   ``KeyValueStore/write(_:)`` throws that error at its end.
  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(StorageError)

  /// Removes the entry under `key`. Returns whether it existed.
  /// - Throws: ``StorageError`` if the engine fails. The transaction cannot be committed then.
  @discardableResult
  func remove(_ key: UnsafeRawBufferPointer) throws(StorageError) -> Bool

  /// Removes every entry with `lower` <= key < `upper`. Returns the number of removed entries.
  /// - Throws: ``StorageError`` if the engine fails. The transaction cannot be committed then.
  @discardableResult
  func removeRange(from lower: UnsafeRawBufferPointer, to upper: UnsafeRawBufferPointer) throws(StorageError) -> Int
}

/// The limits of every engine.
public enum KeyValueLimits {
  /// The longest key, in bytes. Two escaped 6 KiB document names fit.
  public static let keyBytesMax = 32 << 10
  /// The longest value, in bytes. A 16 MiB document with its header fits.
  public static let valueBytesMax = 64 << 20
}

/// The sizes and counts returned by ``KeyValueStore/statistics()``.
public struct KeyValueStatistics: Equatable, Sendable {
  /// The number of keys in the store.
  public var entries: Int
  /// The bytes of the data file that are in use.
  public var usedBytes: Int
  /// The length of the data file, in bytes.
  public var fileBytes: Int
  /// The size to which the file may grow, in bytes.
  public var limitBytes: Int
  /// The number of open snapshots, in all processes.
  public var readers: Int

  public init(entries: Int, usedBytes: Int, fileBytes: Int, limitBytes: Int, readers: Int) {
    self.entries = entries
    self.usedBytes = usedBytes
    self.fileBytes = fileBytes
    self.limitBytes = limitBytes
    self.readers = readers
  }
}
