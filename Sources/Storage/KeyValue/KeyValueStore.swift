/// An ordered map from byte strings to byte strings with snapshots and atomic, durable writes.
///
/// This is the seam between Hearth and a storage engine. Everything above it sees one flat key space in
/// unsigned byte order; everything an engine needs (pages, maps, locks, files) stays below it. LMDB is the
/// embedded engine; `Tests/LMDBStoreTests` holds the contract suite every engine must pass.
///
/// What an engine promises:
/// - Keys of 1 to ``KeyValueLimits/keyBytesMax`` bytes and values of 0 to ``KeyValueLimits/valueBytesMax``
///   bytes are kept exactly; keys are ordered as unsigned bytes, a prefix before what extends it.
/// - A snapshot shows exactly the state after some whole write transaction, for as long as it lives, however
///   many writes follow. It sees every transaction that was acknowledged before it was taken.
/// - A write transaction is applied whole or not at all, also across a crash. When ``write(_:)`` returns, the
///   change is durable (where the engine was opened durable) and visible to new snapshots.
/// - There is one writer at a time. Readers never wait for it, nor it for them.
///
/// What it does not promise: that two snapshots differ if nothing was written, any order between writers that
/// wait, or cheap long-lived snapshots. A snapshot held for long makes an LMDB file grow, so hold it for one
/// slice of work and take another.
///
/// The protocols below are class-bound and hand out raw bytes: a call costs one indirect jump, as a virtual
/// method does, and boxes nothing.
public protocol KeyValueStore: AnyObject, Sendable {
  /// Takes a snapshot of the newest committed state.
  ///
  /// Cost: no allocation in the steady state, no wait for a writer. The snapshot belongs to the caller's
  /// thread of work: use it from one thread at a time, and let it go (or call ``KeyValueSnapshot/end()``) soon.
  /// - Throws: ``StorageError/tooManyReaders(limit:)`` when the engine's reader slots are used up.
  func snapshot() throws(StorageError) -> any KeyValueSnapshot

  /// Runs one write transaction on the calling thread and commits it.
  ///
  /// Waits until no other write transaction is open. If `body` throws, nothing is written and its error is
  /// passed on. The closure is not `async`: it cannot suspend while it holds the writer. The transaction
  /// object is invalid once the closure returns.
  /// - Throws: what `body` threw, or ``StorageError`` when the commit itself failed (nothing was written then).
  func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError)

  /// Writes a consistent, compact copy of the newest state as a file an engine of this kind can open.
  ///
  /// Runs while writes go on. Cost: reads the whole store.
  func copy(toFile path: String) throws(StorageError)

  /// Sizes and counts, for `hearth stats`.
  func statistics() throws(StorageError) -> KeyValueStatistics
}

/// A consistent, read-only view of the whole store at one moment.
///
/// Bytes handed out point into the store and are valid until the snapshot ends.
public protocol KeyValueSnapshot: AnyObject {
  /// The value stored under `key`, or `nil`.
  func value(for key: UnsafeRawBufferPointer) throws(StorageError) -> UnsafeRawBufferPointer?

  /// A cursor over the whole key space, not yet at an entry.
  func makeCursor() throws(StorageError) -> any KeyValueCursor

  /// Ends the snapshot now; every pointer it gave out and every cursor it made becomes invalid.
  ///
  /// Called by `deinit` too. Calling it twice does nothing.
  func end()
}

/// A position in the ordered key space of one snapshot or one write transaction.
///
/// After a call that returned `true`, ``key`` and ``value`` are the bytes of the entry the cursor stands on.
/// They are valid until the cursor moves (the key of a long entry is assembled in the cursor's own memory),
/// its snapshot ends or its transaction writes. A new cursor, one that ran off either end and one whose
/// transaction wrote stand nowhere: seek before stepping.
public protocol KeyValueCursor: AnyObject {
  /// Moves to the first entry whose key is not below `key`. Returns `false` when there is none.
  ///
  /// `key` may be empty, or longer than any stored key can be.
  func seek(atOrAfter key: UnsafeRawBufferPointer) throws(StorageError) -> Bool

  /// Moves to the last entry whose key is below `key`. Returns `false` when there is none.
  func seek(before key: UnsafeRawBufferPointer) throws(StorageError) -> Bool

  /// Moves to the next entry. Returns `false` at the end; the cursor then stands nowhere.
  func next() throws(StorageError) -> Bool

  /// Moves to the previous entry. Returns `false` at the beginning; the cursor then stands nowhere.
  func previous() throws(StorageError) -> Bool

  /// The key of the current entry.
  var key: UnsafeRawBufferPointer { get }

  /// The value of the current entry.
  var value: UnsafeRawBufferPointer { get }
}

/// The one open write transaction; it reads its own writes.
public protocol KeyValueTransaction: KeyValueSnapshot {
  /// Stores `value` under `key`, replacing what was there.
  ///
  /// Invalidates bytes handed out by this transaction and its cursors, so neither argument may be such bytes.
  /// - Throws: ``StorageError/oversized(keyBytes:valueBytes:)``, which changes nothing. After any other error
  ///   the transaction cannot be committed: ``KeyValueStore/write(_:)`` throws that error in the end.
  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) throws(StorageError)

  /// Removes the entry under `key`. Returns whether there was one.
  @discardableResult
  func remove(_ key: UnsafeRawBufferPointer) throws(StorageError) -> Bool

  /// Removes every entry with `lower` <= key < `upper`. Returns how many there were.
  @discardableResult
  func removeRange(from lower: UnsafeRawBufferPointer, to upper: UnsafeRawBufferPointer) throws(StorageError) -> Int
}

/// The bounds every engine keeps.
public enum KeyValueLimits {
  /// The longest key, in bytes. Two escaped 6 KiB document names fit.
  public static let keyBytesMax = 32 << 10
  /// The longest value, in bytes. A 16 MiB document with its header fits.
  public static let valueBytesMax = 64 << 20
}

/// What ``KeyValueStore/statistics()`` reports.
public struct KeyValueStatistics: Equatable, Sendable {
  /// Entries in the store, counted as keys.
  public var entries: Int
  /// Bytes of the data file that are in use.
  public var usedBytes: Int
  /// Length of the data file in bytes.
  public var fileBytes: Int
  /// The size the file may grow to, in bytes.
  public var limitBytes: Int
  /// Snapshots open now, in all processes.
  public var readers: Int

  /// Creates a report.
  public init(entries: Int, usedBytes: Int, fileBytes: Int, limitBytes: Int, readers: Int) {
    self.entries = entries
    self.usedBytes = usedBytes
    self.fileBytes = fileBytes
    self.limitBytes = limitBytes
    self.readers = readers
  }
}
