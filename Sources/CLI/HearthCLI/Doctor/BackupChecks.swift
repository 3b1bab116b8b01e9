import DocumentModel
import Glibc
import HearthServer

/// Checks the place of the scheduled backups, and the age of the last one.
struct BackupChecks {
  let arguments: Arguments
  /// The data directory.
  let directory: String
  /// Microseconds since 1970.
  let now: Int64

  private static let topic = "backup"

  func findings() -> [Finding] {
    guard let text = arguments.value("backup-to") else { return [] }
    let names: [BackupName]
    let seconds: Int
    do {
      guard let schedule = try BackupSchedule.Choice(arguments, of: directory) else { return [] }
      seconds = schedule.seconds
      if !text.contains("://"), let problem = Self.problem(withFolder: text, of: directory) { return [problem] }
      // The first backup makes the folder.
      if !text.contains("://"), access(text, F_OK) != 0 {
        return [.warning(Self.topic, "\(text) has no backup yet", "The running server makes the first one.")]
      }
      names = try schedule.place.names()
    } catch {
      return [
        .problem(
          Self.topic, "\(text): \(CommandFailure(error).message)", "Correct --backup-to and its key: no backup is made."
        )
      ]
    }
    let origin = (try? BackupOrigin.read(directory)) ?? nil
    guard let newest = names.last(where: { $0.origin == origin && origin != nil }) else {
      return [
        .warning(Self.topic, "\(text) has no backup of \(directory) yet", "The running server makes the first one.")
      ]
    }
    let age = Int(now / 1_000_000 - newest.time.seconds)
    let line = "the last backup in \(text) is \(Self.text(ofSeconds: age)) old"
    guard age > 2 * seconds else { return [.ok(Self.topic, line)] }
    return [
      .warning(
        Self.topic, line, "One is due every \(Self.text(ofSeconds: seconds)): look for backup.failed in the log.")
    ]
  }

  /// Returns the problem with a folder if the user of the server cannot write to it, as far as this user can see.
  private static func problem(withFolder path: String, of directory: String) -> Finding? {
    let path = LocalPath.withoutLastSlashes(path)
    var status = stat()
    let exists = stat(path, &status) == 0
    if exists, status.st_mode & S_IFMT != S_IFDIR {
      return .problem(topic, "\(path) is not a directory", "Name another with --backup-to.")
    }
    let folder = exists ? path : LocalPath.folder(of: path)
    guard stat(folder, &status) == 0 else {
      return .problem(topic, "\(folder): \(DirectoryChecks.reason())", "Create it, or name another with --backup-to.")
    }
    var data = stat()
    let server = stat(directory, &data) == 0 ? data.st_uid : geteuid()
    let isWritable: Bool
    if server == geteuid() {
      isWritable = access(folder, W_OK | X_OK) == 0
    } else {
      // Root can write to every folder. A group may contain the user of the server.
      isWritable = server == 0 || status.st_uid != server || status.st_mode & 0o300 == 0o300
    }
    let isForeign = server != 0 && server != geteuid() && status.st_uid != server && status.st_mode & 0o033 == 0
    guard !isWritable || isForeign else { return nil }
    let name = Ownership.name(of: server)
    return .problem(
      topic, "\(name) cannot write to \(folder), so no backup is made",
      "As root: install -d -m 700 -o \(name) \(path)")
  }

  private static func text(ofSeconds seconds: Int) -> String {
    if seconds < 120 { return CountText.of(max(0, seconds), "second") }
    if seconds < 7200 { return CountText.of(seconds / 60, "minute") }
    if seconds < 172_800 { return CountText.of(seconds / 3600, "hour") }
    return CountText.of(seconds / 86_400, "day")
  }
}
