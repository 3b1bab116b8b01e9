/// How to open an ``LMDBStore``.
package struct LMDBOptions: Sendable {
  /// What a returned write means.
  package enum Durability: Sendable {
    /// Every commit is synced to the disk before it returns.
    case durable
    /// The data lives in a RAM file system, is never synced and vanishes with the process.
    case inMemory
  }

  /// The smallest map: an empty store and a little room.
  package static let mapBytesMin = 256 << 10

  /// The data file; LMDB keeps its lock file beside it, under the same name with `-lock` appended.
  ///
  /// An in-memory store makes its own file instead and ignores this.
  package var path: String
  /// The size the data file may grow to. It is reserved as address space only; the file starts small.
  ///
  /// At least ``mapBytesMin`` is used, in whole pages. A file that is already larger keeps its size as the limit.
  package var mapBytes: Int
  /// How many snapshots may be open at once, in all processes. The first process to open the file decides.
  package var readersMax: Int
  /// What a returned write means.
  package var durability: Durability
  /// Opens an existing file and refuses every write. LMDB still writes its lock file.
  package var readOnly: Bool

  /// Creates options; the defaults suit a server.
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

  /// Options for a store that lives in memory.
  package static func inMemory(mapBytes: Int = 64 << 30, readersMax: Int = 1024) -> LMDBOptions {
    LMDBOptions(path: "", mapBytes: mapBytes, readersMax: readersMax, durability: .inMemory)
  }
}
