import DocumentModel
import FixtureTree
import Glibc
import HearthServer

/// Restores a document or a collection of a backup into a data directory.
enum BackupPart {
  /// Runs `hearth backups restore --only`.
  /// - Throws: ``CommandFailure`` or the errors of the place if it fails.
  static func restore(_ arguments: Arguments) throws -> Int32 {
    guard arguments.operands.count == 1 else {
      throw CommandFailure.usage("--only restores into --data; leave out the directory \(arguments.operands[1])")
    }
    let only = arguments.value("only") ?? ""
    let root = only == "/" ? .root : try DatabaseChoice.path(only)
    guard !root.isRoot || only == "/" else {
      throw CommandFailure.usage("--only needs a path; write --only / for the whole database")
    }
    let place = try BackupChoice.place(arguments.operands[0], arguments)
    let name = try Command.chosen(try place.names(), arguments, place)
    let data = arguments.value("data") ?? "./hearth-data"
    var progress = Progress(isQuiet: arguments.has("quiet"))
    defer { progress.clear() }
    let copy = try LocalCopy(of: name, in: place) { progress.show($0) }
    progress.clear()
    let backup = try DirectoryReader(copy.path)
    let database = try DatabaseChoice.database(arguments, in: data)
    var past = try StoredSubtree(try backup.open(database), at: root)
    // The options for credentials belong to the place of the backups.
    let words = ["--data", data, "--project", database.project, "--database", database.database]
    let client = try ServerClient(ofServerOrDirectory: try Arguments(words, for: .listeners))
    return try SubtreeRestore(root, in: client, as: "in the backup \(name.text)", arguments).run(&past)
  }

  /// The data directory of a backup on this machine.
  private final class LocalCopy {
    let path: String
    /// The temporary folder, or `nil` if the place is a folder of this machine.
    private var temporary: String?

    init(of name: BackupName, in place: any BackupPlace, progress: (String) -> Void) throws {
      if let path = place.directory(of: name) {
        self.path = path
        return
      }
      var template = Array("\(DatabaseChoice.environment("TMPDIR") ?? "/tmp")/hearth-backup-XXXXXX".utf8CString)
      guard mkdtemp(&template) != nil else {
        throw CommandFailure.failed("no directory can be created in TMPDIR: \(String(cString: strerror(errno)))")
      }
      let folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
      temporary = folder
      path = "\(folder)/data"
      try place.restore(name, to: path, progress: progress)
    }

    deinit {
      if let temporary { FolderEntries.removeAll(temporary) }
    }
  }
}
