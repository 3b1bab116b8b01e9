import DocumentModel
import Files
import FixtureTree
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

  func names() throws -> [BackupName] {
    var status = stat()
    guard stat(path, &status) == 0 else { throw CommandFailure.failed("\(path): \(String(cString: strerror(errno)))") }
    return ContentDirectory.names(in: path).compactMap { BackupName($0) }
      .filter { access("\(file($0))/\(Self.listName)", F_OK) == 0 }.sorted()
  }

  func size(of name: BackupName) throws -> Int { try FolderIterator.size(of: file(name)) }

  func directory(of name: BackupName) -> String? { file(name) }

  func make(_ name: BackupName, of source: DirectoryReader, progress: (String) -> Void) throws -> BackupOutcome {
    // Backups contain secrets.
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else {
      throw StorageError.system(operation: "mkdir", path: path, code: errno)
    }
    guard access(file(name), F_OK) != 0 else {
      throw CommandFailure.failed("\(path) has a backup of this second; run the command again")
    }
    for removed in ContentDirectory.names(in: path) where Self.isRemoved(removed) { try remove(folder: removed) }
    // A damaged backup only prevents links.
    let newest = try names().last.flatMap { try? DirectoryReader(file($0)) }
    let earlier = newest.flatMap { Self.hasReadableFiles($0) ? $0 : nil }
    // The name does not contain the time, so that a later run removes what a killed one left.
    let output = UnfinishedOutput(of: "\(path)/unfinished")
    do {
      let contents = try Backup(source, earlier: earlier).copy(to: output, progress: progress)
      let size = try FolderIterator.size(of: output.path)
      try writeList(of: output.path)
      guard rename(output.path, file(name)) == 0 else {
        throw StorageError.system(operation: "rename", path: file(name), code: errno)
      }
      try LocalPath.sync(folder: path)
      return BackupOutcome(size: size, contents: contents)
    } catch {
      FolderEntries.removeAll(output.path)
      throw error
    }
  }

  /// Whether the files of all projects in a backup can be opened.
  private static func hasReadableFiles(_ backup: DirectoryReader) -> Bool {
    guard let owners = try? DataDirectory.filesOwners(in: backup.path) else { return false }
    return owners.allSatisfy { (try? backup.openFiles(of: $0)) != nil }
  }

  func restore(_ name: BackupName, to path: String, progress: (String) -> Void) throws {
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
    for name in names {
      // The renamed folder is not a backup, so an interrupted removal leaves no incomplete one.
      let removed = name.text + Self.removedSuffix
      guard rename(file(name), "\(path)/\(removed)") == 0 else {
        throw StorageError.system(operation: "rename", path: file(name), code: errno)
      }
      try remove(folder: removed)
    }
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

  private func file(_ name: BackupName) -> String { "\(path)/\(name.text)" }

  // MARK: The list of databases

  /// The file of a backup that lists its databases, accounts and metadata of files, with their sizes in bytes.
  private static let listName = "backup.txt"

  private func writeList(of backup: String) throws {
    var text = ""
    try FolderIterator.forEachFile(below: backup) { file, size in
      if file.hasSuffix("/data.mdb") { text += "\(size) \(file)\n" }
    }
    let output = try OutputFile("\(backup)/\(Self.listName)")
    try output.write(Array(text.utf8))
    try output.finish()
  }

  /// Checks that a backup has its databases, and that they can be read.
  private func check(_ backup: String, _ progress: (String) -> Void) throws {
    let list = try ConfigurationFile.bytes(of: "\(backup)/\(Self.listName)", mustExist: true) ?? []
    for line in String(decoding: list, as: UTF8.self).split(separator: "\n") {
      let parts = line.split(separator: " ", maxSplits: 1)
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
}
