import DocumentModel
import DocumentStore
import FixtureTree
import Glibc
import KeyValue
import LMDBEngine
import LogEngine

/// Makes a data directory of a moment: of the backup before it, and the commits up to it that `hearth backups follow`
/// copied.
struct MomentRestore {
  /// The log of the backup from which the moment is restored.
  let log: FollowedLog
  private let moment: Timestamp
  private let files: [String]

  /// Finds the newest backup before a moment whose log reaches to it.
  /// - Throws: ``CommandFailure`` if no backup fits; the message says which moments can be restored. Also the errors of the
  ///   place.
  init(_ moment: Timestamp, _ names: [BackupName], in place: any BackupPlace) throws {
    var nearest: (name: BackupName, end: Timestamp?)?
    var later: (name: BackupName, begin: Timestamp)?
    for name in names.reversed() where name.time.seconds <= moment.seconds {
      guard let state = try place.state(of: name) else { continue }
      let begin = Timestamp(uncheckedMicroseconds: state.stores.compactMap(\.position?.version).max() ?? 0)
      guard begin <= moment else {
        later = (name, begin)
        continue
      }
      guard let log = try FollowedLog(of: name, in: place) else {
        nearest = nearest ?? (name, nil)
        continue
      }
      let files = try place.logFiles(of: name)
      let end = try Self.end(of: log, files)
      guard moment <= end else {
        if nearest?.end.map({ $0 < end }) ?? true { nearest = (name, end) }
        continue
      }
      (self.log, self.moment, self.files) = (log, moment, files)
      return
    }
    let next = later ?? names.first { $0.time > moment }.map { ($0, $0.time) }
    let after = next.map { "; the next backup is \($0.name.text)" } ?? ""
    guard let nearest else {
      throw CommandFailure.failed("\(place.text) has no backup of a time before \(moment)\(after)")
    }
    guard let end = nearest.end else {
      throw CommandFailure.failed(
        "the commits after the backup \(nearest.name.text) were not copied by `hearth backups follow`, so \(moment) cannot "
          + "be restored\(after); restore that backup with --name")
    }
    throw CommandFailure.failed(
      "the commits after the backup \(nearest.name.text) were copied until \(end) only, so \(moment) cannot be "
        + "restored\(after); restore an earlier moment or another backup")
  }

  /// The time up to which the log has all commits of all databases.
  private static func end(of log: FollowedLog, _ files: [String]) throws -> Timestamp {
    let until = try log.until() ?? Timestamp(uncheckedMicroseconds: 0)
    let ends = try log.databases.indices.map { number in
      max(until, Timestamp(uncheckedMicroseconds: try log.end(of: number, files).time))
    }
    return ends.min() ?? until
  }

  /// Makes the directory. Nothing must exist at the path, or an empty directory. Returns the number of groups of commits
  /// that were applied. The first commits of a group count as one.
  /// - Throws: ``CommandFailure`` or the errors of the place if it fails. Then nothing is left at the path.
  func run(to path: String, progress: (String) -> Void) throws -> Int {
    let target = LocalPath.withoutLastSlashes(path)
    guard rmdir(target) == 0 || errno == ENOENT else {
      throw CommandFailure.failed("\(target) is not empty; name a directory that does not exist")
    }
    let output = UnfinishedOutput(of: target)
    do {
      try log.place.restore(log.name, to: output.path, progress: progress)
      output.lock()
      var count = 0
      for number in log.databases.indices {
        count += try apply(number, to: "\(output.path)/\(log.databases[number].path)", progress)
      }
      guard rename(output.path, target) == 0 else {
        throw StorageError.system(operation: "rename", path: target, code: errno)
      }
      try LocalPath.sync(folder: LocalPath.folder(of: target))
      return count
    } catch {
      FolderEntries.removeAll(output.path)
      throw error
    }
  }

  /// Applies the commits of a database up to the moment, and verifies the result. Returns the number of groups. The last
  /// one may have commits after the moment, which are left out.
  private func apply(_ number: Int, to file: String, _ progress: (String) -> Void) throws -> Int {
    let database = log.databases[number]
    var status = stat()
    guard stat(file, &status) == 0 else { throw StorageError.system(operation: "stat", path: file, code: errno) }
    let store = try LMDBStore.open(LMDBOptions(path: file, mapBytes: max(64 << 30, 2 * Int(status.st_size) + 1 << 30)))
    var replay = LogReplay(into: store)
    var count = 0
    var isLastCut = false
    try log.forEachCommit(of: number, files) { batch, position, time in
      guard time <= moment.microseconds else {
        let first = try GroupBeginning.of(batch, upTo: moment.microseconds)
        guard !first.isEmpty else { return false }
        try first.bytes.withUnsafeBytes { try replay.add($0, at: position, from: log.name.text) }
        count += 1
        isLastCut = true
        return false
      }
      try replay.add(batch, at: position, from: log.name.text)
      count += 1
      if count.isMultiple(of: 1000) {
        progress("\(ProgressText.number(count)) groups of commits of \(database.path) applied")
      }
      return true
    }
    guard count > 0 else { return 0 }
    try replay.finish()
    if isLastCut { try DocumentDatabase.endGroup(in: store) }
    let snapshot = try store.snapshot()
    let report = try withoutActuallyEscaping(progress) { progress in
      try DatabaseCheck.run(snapshot) { progress("\(ProgressText.number($0)) rows of \(database.path) checked") }
    }
    snapshot.end()
    if let problem = report.problems.first {
      throw CommandFailure.data(
        "the log of the backup \(log.name.text) is damaged: \(database.path): \(problem); restore another backup")
    }
    // ETags and resume tokens of later states do not match the restored database.
    try DocumentDatabase.renewIncarnation(store)
    unlink("\(file)-lock")
    return count
  }
}
