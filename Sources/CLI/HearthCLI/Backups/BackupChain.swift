import DocumentModel
import DocumentStore
import FixtureTree
import Glibc
import HearthServer
import KeyValue
import LMDBEngine

/// An incremental backup with the backups that it needs, down to a full one.
struct BackupChain {
  /// A backup of the chain.
  struct Member {
    var name: BackupName
    var state: BackupState
  }

  /// The most members. The next backup is then a full one.
  static let membersMax = 500

  private let place: any BackupPlace
  /// The members, the newest first.
  let members: [Member]

  /// Finds the members of the chain that ends with a backup.
  /// - Throws: ``CommandFailure`` if one of them is missing or damaged.
  init(_ name: BackupName, in place: any BackupPlace) throws {
    let names = Set(try place.names())
    var members: [Member] = []
    var next: BackupName? = name
    while let name = next {
      guard names.contains(name) else {
        throw CommandFailure.data(
          members.isEmpty
            ? "the backup \(name.text) no longer exists in \(place.text)"
            : "the backup \(members[0].name.text) needs \(name.text), which \(place.text) no longer has; restore another "
              + "backup")
      }
      guard let state = try place.state(of: name) else {
        throw CommandFailure.data("an older version of hearth made the backup \(name.text)")
      }
      guard members.last.map({ name < $0.name }) ?? true, members.count < Self.membersMax else {
        throw CommandFailure.data("the backup \(members[0].name.text) is damaged: its parents form no chain")
      }
      members.append(Member(name: name, state: state))
      next = state.parent
    }
    (self.place, self.members) = (place, members)
  }

  /// The databases of the newest member.
  var databases: [DatabaseID] { members.first?.state.stores.compactMap { DatabaseID(file: $0.path) } ?? [] }

  /// Makes a data directory of the newest member. Nothing must exist at the path, or an empty directory.
  /// - Throws: ``CommandFailure`` or the errors of the place if it fails. Then nothing is left at the path.
  func restore(to path: String, progress: (String) -> Void) throws {
    let target = LocalPath.withoutLastSlashes(path)
    guard rmdir(target) == 0 || errno == ENOENT else {
      throw CommandFailure.failed("\(target) is not empty; name a directory that does not exist")
    }
    let output = UnfinishedOutput(of: target)
    do {
      let directory = try DataDirectory(output.path)
      output.lock()
      try withExtendedLifetime(directory) {
        for store in members[0].state.stores { try copy(store.path, below: output.path, progress) }
      }
      unlink("\(output.path)/\(DataDirectoryLock.fileName)")
      // Writes the entries of the folders.
      sync()
      guard rename(output.path, target) == 0 else {
        throw StorageError.system(operation: "rename", path: target, code: errno)
      }
      sync()
    } catch {
      FolderEntries.removeAll(output.path)
      throw error
    }
  }

  private func copy(_ store: String, below root: String, _ progress: (String) -> Void) throws {
    try LocalPath.makeFolders(of: store, in: root)
    let holder = try copy(store, to: "\(root)/\(store)", progress: progress)
    if let folder = members[0].state.store(store)?.filesFolder {
      try place.copyContents(folder, of: holder, to: "\(root)/\(folder)", progress: progress)
      unlink("\(root)/\(store)-lock")
    }
  }

  /// Copies a store of the newest member to a new file, and merges its changes. Returns the member that contains it as a
  /// whole.
  /// - Throws: ``CommandFailure`` or the errors of the place if it fails. The caller removes the file.
  @discardableResult
  func copy(_ path: String, to file: String, progress: (String) -> Void) throws -> BackupName {
    var changes: [Int] = []
    for (index, member) in members.enumerated() {
      guard let store = member.state.store(path) else { break }
      switch store.form {
      case .same: continue
      case .changes: changes.append(index)
      case .whole:
        try place.copyStore(store, of: member.name, to: file, progress: progress)
        for change in changes.reversed() { try merge(path, change, into: file, progress) }
        if !changes.isEmpty {
          try finish(path, file, progress)
        } else if DatabaseID(file: path) != nil {
          try Self.renewIncarnation(of: file)
        }
        return member.name
      }
    }
    throw CommandFailure.data(
      "the backup \(members[0].name.text) is damaged: no backup that it needs has all of \(path); restore another backup"
    )
  }

  private func merge(_ path: String, _ index: Int, into file: String, _ progress: (String) -> Void) throws {
    let member = members[index]
    guard let store = member.state.store(path), let position = store.position,
      index + 1 < members.count, let since = members[index + 1].state.store(path)?.position
    else { throw damaged(member, path, "its state does not name the changes") }
    let changes = "\(file).changes"
    unlink(changes)
    defer { unlink(changes) }
    try place.copyStore(store, of: member.name, to: changes, progress: progress)
    progress("merging the changes of \(member.name.text)")
    var status = stat()
    guard stat(file, &status) == 0 else { throw StorageError.system(operation: "stat", path: file, code: errno) }
    let options = LMDBOptions(path: file, mapBytes: max(64 << 30, 2 * Int(status.st_size) + 1 << 30))
    do {
      let merge = try ChangedRowsMerge(into: try LMDBStore.open(options), since: since)
      try DigestedFile.forEachPart(of: changes) { try merge.add($0) }
      try merge.finish(at: position)
    } catch StorageError.corruption(_, let detail) {
      throw damaged(member, path, detail)
    }
  }

  /// Verifies a merged database, and gives it an incarnation of its own.
  private func finish(_ path: String, _ file: String, _ progress: (String) -> Void) throws {
    // Its pages are those of an intact file and of the merge, so reading them cannot crash this process.
    let store = try LMDBStore.open(LMDBOptions(path: file).withRoom())
    let snapshot = try store.snapshot()
    let report = try withoutActuallyEscaping(progress) { progress in
      try DatabaseCheck.run(snapshot) { progress("\(ProgressText.number($0)) rows of \(path) checked") }
    }
    snapshot.end()
    if let problem = report.problems.first { throw damaged(members[0], path, problem) }
    try DocumentDatabase.renewIncarnation(store)
    unlink("\(file)-lock")
  }

  /// Gives a restored database an incarnation of its own, so that resume tokens of another restore of the same backup
  /// do not match it.
  /// - Throws: `StorageError` if the file cannot be written.
  static func renewIncarnation(of file: String) throws(StorageError) {
    try DocumentDatabase.renewIncarnation(LMDBStore.open(LMDBOptions(path: file).withRoom()))
    unlink("\(file)-lock")
  }

  private func damaged(_ member: Member, _ path: String, _ detail: String) -> CommandFailure {
    .data("the backup \(member.name.text) is damaged: \(path): \(detail); restore another backup")
  }
}

extension DatabaseID {
  /// Returns the database whose file has a path in a data directory, or `nil` for another path.
  init?(file path: String) {
    let parts = path.split(separator: "/").map(String.init)
    guard parts.count == 4, parts[0] == "databases", parts[3] == "data.mdb" else { return nil }
    self.init(project: parts[1], database: parts[2])
  }
}

extension BackupPlace {
  /// Refuses to remove backups that others need.
  /// - Throws: ``CommandFailure`` if a backup that stays needs one of `names`, or the errors of the place.
  func checkThatNoneNeeds(_ names: [BackupName]) throws {
    let removed = Set(names)
    for name in try self.names() where !removed.contains(name) {
      guard let parent = try parent(of: name), removed.contains(parent) else { continue }
      throw CommandFailure.failed(
        "the incremental backup \(name.text) needs \(parent.text); remove both, or neither")
    }
  }

  /// Returns the backups of `names`, the oldest first, that are neither among the newest `keep`, nor the one that was just
  /// `made`, nor needed by those. The backup just made is not the newest by name if the clock was ahead before.
  /// - Throws: the errors of the place.
  func removable(_ names: [BackupName], keep: Int, made: BackupName) throws -> [BackupName] {
    guard names.count > keep else { return [] }
    var needed = Set(names.suffix(keep))
    needed.insert(made)
    var next = Array(needed)
    while let name = next.popLast() {
      if let parent = try parent(of: name), needed.insert(parent).inserted { next.append(parent) }
    }
    return names.filter { !needed.contains($0) }
  }
}
