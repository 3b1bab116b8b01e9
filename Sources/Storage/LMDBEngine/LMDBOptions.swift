import Glibc

/// The options for opening an ``LMDBStore``.
package struct LMDBOptions: Sendable {
  /// The durability of a write when it returns.
  package enum Durability: Sendable {
    /// Every commit is synced to the disk before it returns.
    case durable
    /// Commits are in a file, but are not synced. A crash of the machine can damage the file, so sync it before it gets
    /// its final name. For a new file that another one replaces only when it is complete.
    case unsynced
    /// The data is in a RAM file system, is never synced, and is lost when the process ends.
    case inMemory
  }

  /// The smallest map, in bytes: an empty store and a little room.
  package static let mapBytesMin = 256 << 10

  /// The data file. LMDB's lock file is next to it, with `-lock` appended to the name.
  ///
  /// An in-memory store ignores this and creates its own file.
  package var path: String
  /// The size to which the data file may grow, in bytes. Only address space is reserved; the file starts small.
  ///
  /// The minimum is ``mapBytesMin``, and the size is rounded down to whole pages. If the file is already larger,
  /// its size is the limit.
  package var mapBytes: Int
  /// The most snapshots open at once, in all processes. The first process to open the file sets it.
  package var readersMax: Int
  package var durability: Durability
  /// Opens an existing file and refuses every write. LMDB still writes its lock file.
  package var readOnly: Bool
  /// Opens a file whose newest commits are in a log beside it. Only the code that reads that log sets this; all other
  /// code would see an old state, and gets ``StorageError/openLog(path:)``.
  package var acceptsOpenLog = false

  /// Creates options. The defaults suit a server.
  package init(
    path: String,
    mapBytes: Int = 64 << 30,
    readersMax: Int = 1024,
    durability: Durability = .durable,
    readOnly: Bool = false
  ) {
    self.path = path
    self.mapBytes = mapBytes
    self.readersMax = readersMax
    self.durability = durability
    self.readOnly = readOnly
  }

  /// Returns the options with a map of at least twice the length of the file, for commands: the server may have another
  /// limit, and write meanwhile.
  package func withRoom() -> LMDBOptions {
    var (status, options) = (stat(), self)
    if stat(path, &status) == 0 { options.mapBytes = max(mapBytes, 2 * Int(status.st_size)) }
    return options
  }

  /// Returns options for a store in memory.
  package static func inMemory(mapBytes: Int = 64 << 30, readersMax: Int = 1024) -> LMDBOptions {
    LMDBOptions(path: "", mapBytes: mapBytes, readersMax: readersMax, durability: .inMemory)
  }
}
