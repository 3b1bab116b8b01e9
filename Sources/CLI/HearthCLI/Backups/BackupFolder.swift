import DocumentModel
import Files
import FixtureTree
import Glibc
import HearthServer
import KeyValue
import LMDBEngine
import LogEngine

/// A folder of backups. A full backup is a complete data directory. An incremental one has the same layout, but only the
/// changes of databases, and its file `FORMAT` keeps servers from using it. Content of files that did not change is
/// stored once, by hard links.
struct BackupFolder: BackupPlace {
  private let path: String
  private static let removedSuffix = ".removed"

  var text: String { path }

  init(_ path: String) { self.path = LocalPath.withoutLastSlashes(path) }

  var isMissing: Bool { access(path, F_OK) != 0 && errno == ENOENT }

  func names() throws -> [BackupName] {
    var status = stat()
    guard stat(path, &status) == 0 else { throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))") }
    guard status.st_mode & S_IFMT == S_IFDIR else { throw CommandFailure.failed("\(path) is not a folder of backups") }
    return ContentDirectory.names(in: path).compactMap { BackupName($0) }
      .filter { name in
        [Self.listName, Self.incrementalListName].contains { access("\(file(name))/\($0)", F_OK) == 0 }
      }.sorted()
  }

  private func isIncremental(_ name: BackupName) -> Bool { access("\(file(name))/\(Self.listName)", F_OK) != 0 }

  func facts(of name: BackupName) throws -> BackupFacts {
    let source = try ConfigurationFile.bytes(of: "\(file(name))/\(Self.sourceName)").map {
      String(decoding: $0.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    }
    return BackupFacts(size: try FolderIterator.size(of: file(name)), source: source, parent: try parent(of: name))
  }

  func state(of name: BackupName) throws -> BackupState? {
    let file = "\(file(name))/\(BackupState.fileName)"
    guard let bytes = try ConfigurationFile.bytes(of: file, mustExist: isIncremental(name)) else { return nil }
    return try BackupState(bytes, of: file)
  }

  func parent(of name: BackupName) throws -> BackupName? { isIncremental(name) ? try state(of: name)?.parent : nil }

  func databases(of name: BackupName) throws -> [DatabaseID] {
    isIncremental(name) ? try BackupChain(name, in: self).databases : try DirectoryReader(file(name)).databases
  }

  func directory(of name: BackupName) -> String? { isIncremental(name) ? nil : file(name) }

  func make(
    _ name: BackupName, of source: DirectoryReader, since parent: BackupParent?, progress: (String) -> Void
  ) throws -> BackupOutcome {
    // Backups contain secrets.
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw StorageError.system(operation: "mkdir", path: path, code: errno)
    }
    guard access(file(name), F_OK) != 0 else {
      throw CommandFailure.failed("\(path) has a backup of this second; run the command again")
    }
    try alone {
      for removed in ContentDirectory.names(in: path) where Self.isRemoved(removed) { try remove(folder: removed) }
    }
    let earlier = Array(try names().filter { $0.origin == name.origin }.reversed())
    // The name does not contain the time, so that a later run removes what a killed one left.
    let output = try alone {
      let output = UnfinishedOutput(of: "\(path)/unfinished" + (name.origin.map { "-\($0)" } ?? ""))
      guard mkdir(output.path, 0o700) == 0 else {
        throw StorageError.system(operation: "mkdir", path: output.path, code: errno)
      }
      output.lock()
      return output
    }
    do {
      let backup = Backup(source, since: parent) { contents(of: $0, in: earlier) }
      let copy = try backup.copy(to: output, progress: progress)
      try write(copy.state.text, to: "\(output.path)/\(BackupState.fileName)")
      if copy.state.parent != nil {
        unlink("\(output.path)/FORMAT")
        try write("incremental backup\n", to: "\(output.path)/FORMAT")
      }
      let size = try FolderIterator.size(of: output.path)
      try writeList(of: output.path, isIncremental: copy.state.parent != nil)
      try write("\(BackupOrigin.text(of: source.path))\n", to: "\(output.path)/\(Self.sourceName)")
      try alone {
        // Another process may have removed it.
        if let parent = copy.state.parent, try !names().contains(parent) {
          throw CommandFailure.failed("another process removed the backup \(parent.text); run the command again")
        }
        guard rename(output.path, file(name)) == 0 else {
          throw StorageError.system(operation: "rename", path: file(name), code: errno)
        }
      }
      try LocalPath.sync(folder: path)
      return BackupOutcome(
        size: size, contents: copy.files, parent: copy.state.parent, notes: copy.notes, logOrigins: copy.logOrigins)
    } catch {
      FolderEntries.removeAll(output.path)
      throw error
    }
  }

  /// Returns the content of files of an owner in the newest backup that has them. A damaged backup only prevents links.
  private func contents(of owner: String?, in backups: [BackupName]) -> (ContentDirectory, ContentLock)? {
    let holder = backups.first { access(DataDirectory.filesFile(of: owner, in: file($0)), F_OK) == 0 }
    guard let folder = holder.map({ DataDirectory.filesFolder(of: owner, in: file($0)) }),
      let lock = try? ContentLock(folder), let contents = try? ContentDirectory(folder)
    else { return nil }
    return (contents, lock)
  }

  func restore(_ name: BackupName, to path: String, progress: (String) -> Void) throws {
    if isIncremental(name) { return try BackupChain(name, in: self).restore(to: path, progress: progress) }
    let source = file(name)
    try check(source, progress)
    let (target, contents) = try Backup(try DirectoryReader(source)).run(to: path, progress: progress)
    guard let contents, contents.problemCount > 0 else { return }
    FolderEntries.removeAll(target)
    throw CommandFailure.data(
      "damaged contents of files: \(contents.problemCount), for example \(contents.problems.first ?? ""); restore "
        + "another backup, or copy what is intact with `hearth backup \(target) --data \(source)`")
  }

  func remove(_ names: [BackupName]) throws {
    guard !names.isEmpty else { return }
    try alone {
      try checkThatNoneNeeds(names)
      // A backup is removed after the incremental ones that need it.
      for name in names.sorted().reversed() { try remove(name) }
    }
  }

  private func remove(_ name: BackupName) throws {
    // The renamed folder is not a backup, so an interrupted removal leaves no incomplete one.
    let removed = name.text + Self.removedSuffix
    guard rename(file(name), "\(path)/\(removed)") == 0 else {
      throw StorageError.system(operation: "rename", path: file(name), code: errno)
    }
    try remove(folder: removed)
  }

  /// Runs `body` while no other process changes the folder in the same way. Waits until that process has finished.
  private func alone<Result>(_ body: () throws -> Result) throws -> Result {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw StorageError.system(operation: "open", path: path, code: errno) }
    defer { close(descriptor) }
    while flock(descriptor, LOCK_EX) != 0 {
      guard errno == EINTR else { throw StorageError.system(operation: "flock", path: path, code: errno) }
    }
    defer { flock(descriptor, LOCK_UN) }
    return try body()
  }

  func copyDatabase(
    _ id: DatabaseID, of name: BackupName, to path: String, progress: (String) -> Void
  ) throws {
    if isIncremental(name) {
      try BackupChain(name, in: self).copy(
        String(DataDirectory.file(of: id, in: "").dropFirst()), to: path, progress: progress)
      return
    }
    let source = file(name)
    try checkSizes(source)
    progress("copying \(id)")
    try DirectoryReader(source).open(id).copy(toFile: path)
  }

  func copyStore(
    _ store: BackupState.Store, of name: BackupName, to target: String, progress: (String) -> Void
  ) throws {
    let source = "\(file(name))/\(store.file)"
    try checkSizes(file(name))
    progress("copying \(store.file) of \(name.text)")
    guard let digest = store.fileDigest else {
      if store.path.hasPrefix("databases/") { try check(store.path, file(name), progress) }
      return try LMDBStore.open(LMDBOptions(path: source, readOnly: true)).copy(toFile: target)
    }
    let output = try DigestedFile(target)
    try DigestedFile.forEachPart(of: source) { try output.write($0) }
    guard try output.finish() == digest else {
      throw CommandFailure.data("\(source) is damaged; restore another backup")
    }
  }

  func copyContents(_ folder: String, of name: BackupName, to target: String, progress: (String) -> Void) throws {
    let contents = try FilesBackup(
      of: LMDBStore.open(LMDBOptions(path: "\(target)/data.mdb")), from: ContentDirectory("\(file(name))/\(folder)"),
      to: ContentDirectory(target)
    ) { progress("\(ByteCount.text($0)) of files copied") }
    guard contents.problemCount > 0 else { return }
    throw CommandFailure.data(
      "damaged contents of files: \(contents.problemCount), for example \(contents.problems.first ?? ""); restore "
        + "another backup")
  }

  private func remove(folder name: String) throws {
    let folder = "\(path)/\(name)"
    FolderEntries.removeAll(folder)
    guard access(folder, F_OK) != 0 else {
      throw CommandFailure.failed("\(folder) cannot be removed; check who owns it, and remove it by hand")
    }
  }

  /// Whether a folder is a backup whose removal was interrupted.
  private static func isRemoved(_ name: String) -> Bool {
    name.hasSuffix(removedSuffix) && BackupName(String(name.dropLast(removedSuffix.count))) != nil
  }

  func file(_ name: BackupName) -> String { "\(path)/\(name.text)" }

  // MARK: The list of databases

  /// The file of a backup that lists its databases, accounts and metadata of files, with their sizes in bytes.
  private static let listName = "backup.txt"
  /// The same file of an incremental backup, which older versions must not take for a data directory.
  private static let incrementalListName = "incremental.txt"
  /// The file of a backup that names the machine and the path of the data directory.
  private static let sourceName = "backup-source.txt"

  private func writeList(of backup: String, isIncremental: Bool) throws {
    var text = ""
    try FolderIterator.forEachFile(below: backup) { file, size in
      if file.hasSuffix("/data.mdb") || file.hasSuffix("/changes") { text += "\(size) \(file)\n" }
    }
    try write(text, to: "\(backup)/\(isIncremental ? Self.incrementalListName : Self.listName)")
  }

  private func write(_ text: String, to file: String) throws {
    let output = try OutputFile(file)
    try output.write(Array(text.utf8))
    try output.finish()
  }

  /// Checks that a backup has its databases.
  private func checkSizes(_ backup: String) throws {
    let isFull = access("\(backup)/\(Self.listName)", F_OK) == 0
    let name = isFull ? Self.listName : Self.incrementalListName
    let list = try ConfigurationFile.bytes(of: "\(backup)/\(name)", mustExist: true) ?? []
    for line in String(decoding: list, as: UTF8.self).split(separator: "\n") {
      let parts = line.split(separator: " ", maxSplits: 1)
      var status = stat()
      guard parts.count == 2, stat("\(backup)/\(parts[1])", &status) == 0, Int(parts[0]) == Int(status.st_size) else {
        throw CommandFailure.data(
          "\(backup) is damaged: \(parts.last ?? "") is missing or has another size; restore another backup")
      }
    }
  }

  /// Checks that a backup has its databases, and that they can be read.
  private func check(_ backup: String, _ progress: (String) -> Void) throws {
    try checkSizes(backup)
    for id in try DirectoryReader(backup).databases {
      try check(String(DataDirectory.file(of: id, in: "").dropFirst()), backup, progress)
    }
  }

  /// Checks that the file of a database in a backup can be read.
  private func check(_ database: String, _ backup: String, _ progress: (String) -> Void) throws {
    let name = DatabaseID(file: database).map { "\($0)" } ?? database
    let check = try ChildCheck.run(.checkFile, on: "\(backup)/\(database)") { count, _ in
      progress("\(ProgressText.number(count)) rows of \(name) checked")
    }
    if let problem = check.problems.first {
      throw CommandFailure.data("\(backup) is damaged: \(name): \(problem); restore another backup")
    }
  }
}
