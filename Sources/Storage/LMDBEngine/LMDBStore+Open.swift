import CLMDB
import Glibc
package import KeyValue
import Synchronization

/// An environment that was just opened, with its facts.
struct OpenedEnvironment {
  var environment: OpaquePointer
  var path: String
  var mapBytes: Int
  var readersMax: Int
  var fileDescriptor: Int32
  var databases = LMDBStore.Databases()
}

extension LMDBStore {
  /// Opens the store described by `options`. Creates it if it does not exist, unless it is to be read-only.
  ///
  /// A durable file is checked before it is mapped (see ``DataFileCheck``). It is created under another name first,
  /// so that a file with the final name is always complete. Two processes must not create the same file at the same
  /// time; ``DataDirectoryLock`` prevents that.
  /// - Throws: ``StorageError/locked(path:holder:)`` if this process has the file open already;
  ///   ``StorageError/corruption(path:detail:)`` or ``StorageError/unsupportedFormat(path:found:supported:)`` if
  ///   this code did not write the file; ``StorageError/system(operation:path:code:)`` with `ENOENT` if a file to
  ///   be opened read-only does not exist.
  package static func open(_ options: LMDBOptions) throws(StorageError) -> LMDBStore {
    switch options.durability {
    case .durable, .unsynced: try openFile(options)
    case .inMemory: try openInMemory(options) { _ throws(StorageError) in }
    }
  }

  /// Opens an in-memory store that starts with the current content of `source`. `options` set its limits.
  ///
  /// Cost: one copy of the used part of the source's file, up to its last page. With `isCompact`, free pages are
  /// omitted, which costs a thread and a pass over the other pages. Use it for a copy that will itself be copied
  /// many times.
  /// - Throws: ``StorageError`` if reading the source or creating the store fails.
  package static func openInMemory(
    copyOf source: LMDBStore, isCompact: Bool = false, options: LMDBOptions = .inMemory()
  ) throws(StorageError) -> LMDBStore {
    try openInMemory(options) { descriptor throws(StorageError) in
      let code = mdb_env_copyfd2(source.environment, descriptor, isCompact ? UInt32(MDB_CP_COMPACT) : 0)
      guard code == 0 else { throw source.failure(code, "mdb_env_copyfd2") }
    }
  }

  // MARK: Files

  private static func openFile(_ options: LMDBOptions) throws(StorageError) -> LMDBStore {
    if !options.readOnly, access(options.path, F_OK) != 0, errno == ENOENT {
      try createFile(options)
    }
    let file = try Descriptor(path: options.path, flags: O_RDONLY)
    let identity = try FileIdentity(descriptor: file.number, path: options.path)
    guard OpenFiles.insert(identity) else {
      throw .locked(path: options.path, holder: "this process (\(getpid())), which already has it open")
    }
    do throws(StorageError) {
      try DataFileCheck.check(file)
      let syncing = options.durability == .unsynced ? MDB_NOSYNC | MDB_NOMETASYNC : 0
      let flags = (options.readOnly ? MDB_RDONLY : 0) | syncing
      let opened = try openEnvironment(options, path: options.path, flags: flags) {
        environment throws(StorageError) in try openDatabases(of: environment, options)
      }
      return LMDBStore(
        opened, readOnly: options.readOnly, acceptsOpenLog: options.acceptsOpenLog, registered: identity)
    } catch {
      OpenFiles.remove(identity)
      throw error
    }
  }

  /// Creates an empty data file under another name, then renames it, durably.
  private static func createFile(_ options: LMDBOptions) throws(StorageError) {
    let unfinished = "\(options.path)-new-\(getpid())-\(uniqueNumber())"
    defer {
      unlink(unfinished)
      unlink("\(unfinished)-lock")
    }
    let opened = try openEnvironment(options, path: unfinished, flags: 0) { environment throws(StorageError) in
      try createDatabases(in: environment, path: options.path)
    }
    mdb_env_close(opened.environment)
    try Descriptor(path: unfinished, flags: O_RDONLY).sync()
    try rename(unfinished, toNew: options.path)
    try Descriptor.syncDirectory(of: options.path)
  }

  /// Renames a file without replacing another. A file that appeared meanwhile is kept. The old name may remain.
  private static func rename(_ old: String, toNew new: String) throws(StorageError) {
    if link(old, new) == 0 || errno == EEXIST { return }
    // Some file systems do not support hard links.
    guard Glibc.rename(old, new) == 0 else { throw .systemCall("rename", path: new) }
  }

  // MARK: Memory

  private static func openInMemory(
    _ options: LMDBOptions, fill: (Int32) throws(StorageError) -> Void
  ) throws(StorageError) -> LMDBStore {
    precondition(!options.readOnly, "a read-only in-memory store would always be empty")
    let path = "\(memoryDirectory())/hearth-\(getpid())-\(uniqueNumber()).mdb"
    // LMDB keeps the files open, so their names can be removed at once. Then no file is left after a crash.
    defer {
      unlink(path)
      unlink("\(path)-lock")
    }
    let isCopy = try { () throws(StorageError) in
      let file = try Descriptor(path: path, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
      try fill(file.number)
      return try file.length() > 0
    }()
    let opened = try openEnvironment(options, path: path, flags: MDB_NOSYNC | MDB_NOMETASYNC) {
      environment throws(StorageError) in
      isCopy
        ? try openDatabases(of: environment, LMDBOptions(path: path))
        : try createDatabases(in: environment, path: path)
    }
    return LMDBStore(opened, readOnly: false, registered: nil)
  }

  /// The least free space of a RAM file system that is used for a database, in bytes. Containers often have 64 MiB.
  private static let memoryRoomBytesMin = 256 << 20

  private static func memoryDirectory() -> String {
    let shared = "/dev/shm"
    var room = statvfs()
    if access(shared, W_OK) == 0, statvfs(shared, &room) == 0,
      UInt64(room.f_bavail) * UInt64(room.f_frsize) >= UInt64(memoryRoomBytesMin)
    {
      return shared
    }
    guard let named = getenv("TMPDIR"), access(named, W_OK) == 0 else { return "/tmp" }
    return String(cString: named)
  }

  private static let numbers = Atomic<UInt64>(0)

  /// Returns a text that differs for each call in this process and is hard to guess from outside.
  private static func uniqueNumber() -> String {
    let count = numbers.wrappingAdd(1, ordering: .relaxed).newValue
    return "\(count)-\(String(UInt64.random(in: .min ... .max), radix: 36))"
  }

  // MARK: Environments

  private static func openEnvironment(
    _ options: LMDBOptions, path: String, flags: Int32,
    databases: (OpaquePointer) throws(StorageError) -> Databases
  ) throws(StorageError) -> OpenedEnvironment {
    var created: OpaquePointer?
    try check(mdb_env_create(&created), "mdb_env_create", path)
    guard let environment = created else { throw StorageError(lmdb: ENOMEM, "mdb_env_create", path: path) }
    do throws(StorageError) {
      let pageBytes = Int(sysconf(Int32(_SC_PAGESIZE)))
      let mapBytes = max(options.mapBytes, LMDBOptions.mapBytesMin) / pageBytes * pageBytes
      try check(mdb_env_set_mapsize(environment, mapBytes), "mdb_env_set_mapsize", path)
      let readersMax = UInt32(clamping: max(1, options.readersMax))
      try check(mdb_env_set_maxreaders(environment, readersMax), "mdb_env_set_maxreaders", path)
      try check(mdb_env_set_maxdbs(environment, 3), "mdb_env_set_maxdbs", path)
      if options.durability != .inMemory { try reserveLockFile(of: path, readersMax: Int(readersMax)) }
      let allFlags = UInt32(MDB_NOSUBDIR | MDB_NOTLS | flags)
      try check(mdb_env_open(environment, path, allFlags, 0o600), "mdb_env_open", path)
      guard mdb_env_get_maxkeysize(environment) >= LongKeys.pointerKeyBytes else {
        throw .unsupportedFormat(
          path: path, found: "keys of at most \(mdb_env_get_maxkeysize(environment)) bytes in this build of LMDB",
          supported: "\(LongKeys.pointerKeyBytes) bytes")
      }
      try check(mdb_reader_check(environment, nil), "mdb_reader_check", path)

      var information = MDB_envinfo()
      try check(mdb_env_info(environment, &information), "mdb_env_info", path)
      var descriptor: Int32 = -1
      try check(mdb_env_get_fd(environment, &descriptor), "mdb_env_get_fd", path)
      return OpenedEnvironment(
        environment: environment, path: path, mapBytes: information.me_mapsize,
        readersMax: Int(information.me_maxreaders), fileDescriptor: descriptor,
        databases: try databases(environment))
    } catch {
      mdb_env_close(environment)
      throw error
    }
  }

  /// Allocates all blocks of LMDB's lock file. LMDB maps it into memory, and writing to a page without a block on a
  /// full disk would end the process.
  private static func reserveLockFile(of path: String, readersMax: Int) throws(StorageError) {
    let file: Descriptor
    do throws(StorageError) {
      file = try Descriptor(path: "\(path)-lock", flags: O_RDWR | O_CREAT, mode: 0o600)
    } catch {
      // If no file can be created here, LMDB works without one or reports the failure itself.
      if case .diskFull = error { throw error }
      return
    }
    var information = stat()
    guard fstat(file.number, &information) == 0 else { throw .systemCall("fstat", path: path) }
    // The size by LMDB's own formula: two cache lines for the head and one per reader. An older file may be longer.
    let bytes = max((2 + readersMax) * 64, Int(information.st_size))
    if Int(information.st_blocks) * 512 >= bytes { return }
    let code = posix_fallocate(file.number, 0, off_t(bytes))
    if code == ENOSPC || code == EDQUOT { throw .diskFull(path: path) }
    // Some file systems do not support reserving blocks.
  }

  private static func createDatabases(in environment: OpaquePointer, path: String) throws(StorageError) -> Databases {
    try withTransaction(in: environment, path: path, flags: 0) { transaction throws(StorageError) in
      let databases = Databases(
        entries: try openDatabase(LongKeys.entriesName, in: transaction, path, create: true),
        continuations: try openDatabase(LongKeys.continuationsName, in: transaction, path, create: true),
        meta: try openDatabase(LongKeys.metaName, in: transaction, path, create: true))
      let code = withUnsafeBytes(of: LongKeys.layoutVersion.bigEndian) { bytes in
        var key = MDB_val(LongKeys.layoutKey)
        var value = MDB_val(bytes)
        return mdb_put(transaction, databases.meta, &key, &value, 0)
      }
      try check(code, "mdb_put", path)
      return databases
    }
  }

  private static func openDatabases(
    of environment: OpaquePointer, _ options: LMDBOptions
  ) throws(StorageError) -> Databases {
    let path = options.path
    return try withTransaction(in: environment, path: path, flags: MDB_RDONLY) { transaction throws(StorageError) in
      let databases = Databases(
        entries: try openDatabase(LongKeys.entriesName, in: transaction, path, create: false),
        continuations: try openDatabase(LongKeys.continuationsName, in: transaction, path, create: false),
        meta: try openDatabase(LongKeys.metaName, in: transaction, path, create: false))
      var key = MDB_val(LongKeys.layoutKey)
      var value = MDB_val()
      let code = mdb_get(transaction, databases.meta, &key, &value)
      guard code != MDB_NOTFOUND else { throw foreign(path) }
      try check(code, "mdb_get", path)
      guard value.mv_size == MemoryLayout<UInt32>.size, let bytes = value.mv_data else {
        throw .corruption(path: path, detail: "the layout number has \(value.mv_size) bytes, not 4")
      }
      let layout = UInt32(bigEndian: bytes.loadUnaligned(as: UInt32.self))
      if layout == LongKeys.openLogVersion, !options.acceptsOpenLog { throw .openLog(path: path) }
      guard layout == LongKeys.layoutVersion || layout == LongKeys.openLogVersion else {
        throw .unsupportedFormat(
          path: path, found: "key layout \(layout)", supported: "key layout \(LongKeys.layoutVersion)")
      }
      return databases
    }
  }

  private static func openDatabase(
    _ name: String, in transaction: OpaquePointer, _ path: String, create: Bool
  ) throws(StorageError) -> MDB_dbi {
    var database: MDB_dbi = 0
    let code = mdb_dbi_open(transaction, name, create ? UInt32(MDB_CREATE) : 0, &database)
    guard code != MDB_NOTFOUND else { throw foreign(path) }
    try check(code, "mdb_dbi_open", path)
    return database
  }

  private static func foreign(_ path: String) -> StorageError {
    .unsupportedFormat(path: path, found: "of another program", supported: "only its own files")
  }

  /// Runs `body` in a transaction and commits it. Without the commit the database handles would not last.
  private static func withTransaction(
    in environment: OpaquePointer, path: String, flags: Int32,
    _ body: (OpaquePointer) throws(StorageError) -> Databases
  ) throws(StorageError) -> Databases {
    var begun: OpaquePointer?
    try check(mdb_txn_begin(environment, nil, UInt32(flags), &begun), "mdb_txn_begin", path)
    guard let transaction = begun else { throw StorageError(lmdb: ENOMEM, "mdb_txn_begin", path: path) }
    let databases: Databases
    do throws(StorageError) {
      databases = try body(transaction)
    } catch {
      mdb_txn_abort(transaction)
      throw error
    }
    try check(mdb_txn_commit(transaction), "mdb_txn_commit", path)
    return databases
  }

  private static func check(_ code: Int32, _ operation: StaticString, _ path: String) throws(StorageError) {
    guard code == 0 else { throw StorageError(lmdb: code, operation, path: path) }
  }
}

extension MDB_val {
  /// A key in `meta`.
  init(_ text: StaticString) {
    self.init(mv_size: text.utf8CodeUnitCount, mv_data: UnsafeMutableRawPointer(mutating: text.utf8Start))
  }
}
