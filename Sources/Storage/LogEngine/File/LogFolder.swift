package import KeyValue

/// The folder of one commit log: the only way in which the log changes files.
///
/// A change of a name (``create(_:bytes:)``, ``rename(_:to:)``, ``remove(_:)``) survives a loss of power only after
/// ``syncNames()``, and a change of content only after ``LogFile/sync()``. Until then any part of it may be lost, in any
/// order, at the granularity of sectors of 512 bytes.
package protocol LogFolder: AnyObject, Sendable {
  /// The path of the folder, for messages.
  var path: String { get }

  /// Returns the names of the files, in no order. A folder that does not exist has none.
  /// - Throws: ``StorageError`` if the folder cannot be read.
  func names() throws(StorageError) -> [String]

  /// Creates a file of zeros with all its blocks, and syncs its content. Creates the folder too if it does not exist.
  /// - Throws: ``StorageError``, such as ``StorageError/diskFull(path:)``. The file may exist then.
  func create(_ name: String, bytes: Int) throws(StorageError) -> any LogFile

  /// Opens an existing file to read and write it.
  /// - Throws: ``StorageError`` if the call fails.
  func open(_ name: String) throws(StorageError) -> any LogFile

  /// Gives a file another name, which no file has.
  /// - Throws: ``StorageError`` if the call fails.
  func rename(_ name: String, to other: String) throws(StorageError)

  /// Removes a file.
  /// - Throws: ``StorageError`` if the call fails.
  func remove(_ name: String) throws(StorageError)

  /// Makes all changes of names durable.
  /// - Throws: ``StorageError`` if the call fails. The names are in doubt then.
  func syncNames() throws(StorageError)

  /// Returns the number after which other processes need the commits, or `nil` if none does; see ``LogHold``.
  func heldSequence() -> UInt64?
}

extension LogFolder {
  /// Returns `nil`: no other process can read the folder.
  package func heldSequence() -> UInt64? { nil }
}

/// A file of a ``LogFolder``. Closed when it is released.
package protocol LogFile: AnyObject, Sendable {
  /// The length in bytes, which never changes.
  var bytes: Int { get }

  /// Reads up to `buffer.count` bytes at an offset. Returns fewer only at the end of the file.
  /// - Throws: ``StorageError`` if the call fails.
  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(StorageError) -> Int

  /// Writes two buffers, one behind the other, at an offset. They end within the file.
  /// - Throws: ``StorageError`` if the call fails. Any part may have been written then.
  func write(_ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int) throws(StorageError)

  /// Waits until everything written so far is on the disk.
  /// - Throws: ``StorageError`` if the call fails. Then any part may be missing, also after a later call that succeeds.
  func sync() throws(StorageError)
}
