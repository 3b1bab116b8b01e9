import DocumentModel
import Files
import Glibc
import HearthServer
import KeyValue

/// A folder of backups. Each is a complete data directory; content of files that did not change is stored once, by hard
/// links.
struct BackupFolder: BackupPlace {
  private let path: String
  private static let removedSuffix = ".removed"

  var text: String { path }

  init(_ path: String) { self.path = LocalPath.withoutLastSlashes(path) }

  func backups() throws -> [StoredBackup] {
    var status = stat()
    guard stat(path, &status) == 0 else { throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))") }
    return names().map { name in
      var size = 0
      FolderTree.forEachFile(in: file(name)) { size += $1 }
      return StoredBackup(name: name, size: size)
    }
  }

  /// The names of the complete backups, the oldest first.
  private func names() -> [BackupName] {
    ContentDirectory.names(in: path).compactMap { BackupName($0) }
      .filter { access("\(file($0))/\(Self.listName)", F_OK) == 0 }.sorted()
  }

  func make(_ name: BackupName, of source: DirectoryReader, progress: (String) -> Void) throws -> BackupOutcome {
    // Backups contain secrets.
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw StorageError.system(operation: "mkdir", path: path, code: errno)
    }
    guard access(file(name), F_OK) != 0 else {
      throw CommandFailure.failed("\(path) has a backup of this second; run the command again")
    }
    for removed in ContentDirectory.names(in: path) where Self.isRemoved(removed) {
      try FolderTree.remove("\(path)/\(removed)")
    }
    // A damaged backup only prevents links.
    let newest = names().last.flatMap { try? DirectoryReader(file($0)) }
    let earlier = newest.flatMap { (try? $0.openFiles()) == nil ? nil : $0 }
    // The name does not contain the time, so that a later run removes what a killed one left.
    let output = UnfinishedOutput(of: "\(path)/unfinished")
    let target = file(name)
    let (_, files) = try Backup(source, earlier: earlier).run(to: target, unfinished: output, progress: progress)
    var outcome = BackupOutcome(size: 0)
    FolderTree.forEachFile(in: target) { outcome.size += $1 }
    (outcome.problems, outcome.problemCount) = (files?.problems ?? [], files?.problemCount ?? 0)
    try writeList(of: target)
    return outcome
  }

  func restore(_ backup: StoredBackup, to path: String, progress: (String) -> Void) throws {
    let source = file(backup.name)
    try check(source, progress)
    let (target, files) = try Backup(try DirectoryReader(source)).run(to: path, progress: progress)
    guard let files, files.problemCount > 0 else { return }
    try FolderTree.remove(target)
    throw CommandFailure.data(
      "damaged contents of files: \(files.problemCount), for example \(files.problems.first ?? ""); restore another "
        + "backup, or copy what is intact with `hearth backup \(target) --data \(source)`")
  }

  // MARK: The list of files

  /// The file of a backup that lists its databases, with sizes. It is written last, so a folder without it is no
  /// complete backup.
  private static let listName = "backup.txt"

  private static func isListed(_ file: String) -> Bool { file.hasSuffix("/data.mdb") }

  private func writeList(of backup: String) throws {
    var text = ""
    FolderTree.forEachFile(in: backup) { file, size in if Self.isListed(file) { text += "\(size) \(file)\n" } }
    let output = try OutputFile("\(backup)/\(Self.listName)")
    try output.write(Array(text.utf8))
    try output.finish()
  }

  /// Checks that a backup has its databases, and that they can be read.
  private func check(_ backup: String, _ progress: (String) -> Void) throws {
    let list = "\(backup)/\(Self.listName)"
    guard let stream = fopen(list, "re") else {
      throw CommandFailure.failed("\(list): \(String(cString: strerror(errno)))")
    }
    defer { fclose(stream) }
    var line = [CChar](repeating: 0, count: 8192)
    while fgets(&line, Int32(line.count), stream) != nil {
      let text = String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
      let parts = text.split(separator: " ", maxSplits: 1)
      var status = stat()
      guard parts.count == 2, stat("\(backup)/\(parts[1])", &status) == 0, Int(parts[0]) == Int(status.st_size) else {
        throw CommandFailure.data(
          "\(backup) is damaged: \(parts.last ?? "") is missing or has another size; restore another backup")
      }
    }
    for id in try DirectoryReader(backup).databases {
      let check = try ChildCheck.run(.checkFile, on: DataDirectory.file(of: id, in: backup)) { count, _ in
        progress("\(ProgressText.number(count)) rows of \(id) checked")
      }
      if let problem = check.problems.first {
        throw CommandFailure.data("\(backup) is damaged: \(id): \(problem); restore another backup")
      }
    }
  }

  func remove(_ backups: [StoredBackup]) throws {
    for backup in backups {
      // The renamed folder is not a backup, so an interrupted removal leaves no incomplete one.
      let removed = file(backup.name) + Self.removedSuffix
      guard rename(file(backup.name), removed) == 0 else {
        throw StorageError.system(operation: "rename", path: file(backup.name), code: errno)
      }
      try FolderTree.remove(removed)
    }
  }

  /// Whether a folder is a backup whose removal was interrupted.
  private static func isRemoved(_ name: String) -> Bool {
    name.hasSuffix(removedSuffix) && BackupName(String(name.dropLast(removedSuffix.count))) != nil
  }

  private func file(_ name: BackupName) -> String { "\(path)/\(name.text)" }
}
