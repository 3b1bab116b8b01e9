import Basics
import DocumentModel
import DocumentStore
import HearthServer

/// The facts about the stores of a data directory that the next incremental backup needs: a store is the file of a
/// database, of the accounts of a project, or of the metadata of files. Each backup contains it as a text:
///
///     format 1
///     parent 2026-11-22T031500Z-4f1c2a9b
///     whole - 3f:6a:… databases/shop/(default)/data.mdb
///     same 5b0c… - accounts/shop/data.mdb
struct BackupState: Equatable {
  /// The form in which a backup contains a store.
  enum Form: String {
    /// The file itself.
    case whole
    /// The rows that changed since the parent; see `ChangedRows`.
    case changes
    /// Nothing, because the file is the same as in the parent.
    case same
  }

  /// A store in a backup.
  struct Store: Equatable {
    /// The path of the file in the data directory, such as `databases/shop/(default)/data.mdb`.
    var path: String
    var form: Form
    /// The SHA-256 of the changes, or of the copied file of accounts or of the metadata of files. The metadata in the
    /// backup differ from it, because they contain no uploads.
    var digest: String?
    /// The position of a database.
    var position: DatabasePosition?

    /// The path of the file in the backup.
    var file: String {
      form == .changes ? String(path.dropLast(BackupState.storeName.count)) + "changes" : path
    }

    /// The digest of the file in the backup, if it is known.
    var fileDigest: String? { filesFolder == nil && form != .same ? digest : nil }

    /// The folder of the files whose metadata this store is, such as `files`, or `nil` for other stores.
    var filesFolder: String? {
      path.hasPrefix("files/") || path.hasPrefix("project-files/") ? LocalPath.folder(of: path) : nil
    }
  }

  /// The name of the text in a backup.
  static let fileName = "backup-state.txt"
  /// The format that this version writes, and the newest that it reads.
  static let format = 1
  fileprivate static let storeName = "data.mdb"

  /// The backup that this one needs, or `nil` if this one is a full backup.
  var parent: BackupName?
  var stores: [Store] = []

  /// Returns the store with a path.
  func store(_ path: String) -> Store? { stores.first { $0.path == path } }

  init() {}

  /// Reads the text of a backup.
  /// - Throws: ``CommandFailure`` if it is damaged, or a newer version wrote it. `place` names it in the message.
  init(_ bytes: [UInt8], of place: String) throws {
    let damaged = CommandFailure.data("\(place) is damaged; use another backup")
    guard let text = String(validating: bytes, as: UTF8.self), text.hasSuffix("\n") else { throw damaged }
    var lines = text.split(separator: "\n")[...]
    guard let first = lines.popFirst(), first.hasPrefix("format "), let format = Int(first.dropFirst("format ".count))
    else { throw damaged }
    guard format <= Self.format else {
      throw CommandFailure.data(
        "\(place) has format \(format), which a newer version of hearth wrote; use that version")
    }
    for line in lines {
      let parts = line.split(separator: " ", maxSplits: 3).map(String.init)
      if parts.count == 2, parts[0] == "parent", let name = BackupName(parts[1]), parent == nil {
        parent = name
        continue
      }
      guard parts.count == 4, let form = Form(rawValue: parts[0]), parts[3].hasSuffix("/\(Self.storeName)"),
        BackedUpFile.isSafe(parts[3][...]), parts[1] == "-" || Hexadecimal.bytes(parts[1])?.count == 32
      else { throw damaged }
      let position = DatabasePosition(text: parts[2])
      guard parts[2] == "-" || position != nil else { throw damaged }
      guard form != .changes || position != nil && parts[1] != "-" else { throw damaged }
      stores.append(
        Store(path: parts[3], form: form, digest: parts[1] == "-" ? nil : parts[1], position: position))
    }
    guard parent != nil || stores.allSatisfy({ $0.form == .whole }) else { throw damaged }
  }

  /// The text.
  var text: String {
    var lines = ["format \(Self.format)"]
    if let parent { lines.append("parent \(parent.text)") }
    for store in stores {
      lines.append("\(store.form.rawValue) \(store.digest ?? "-") \(store.position?.text ?? "-") \(store.path)")
    }
    return lines.map { $0 + "\n" }.joined()
  }
}

/// The backup that an incremental backup continues.
struct BackupParent {
  var name: BackupName
  var state: BackupState

  /// Returns the parent of a new backup, as `--incremental` and `--full-every` choose it. `nil` chooses a full backup, for
  /// the reason in `note` unless the options ask for it.
  /// - Throws: ``CommandFailure`` if an option is invalid, or the errors of the place if it cannot be listed.
  static func chosen(
    for name: BackupName, _ arguments: Arguments, in place: any BackupPlace
  ) throws -> (parent: BackupParent?, note: String?) {
    let fullEvery = try arguments.seconds("full-every")
    // A new folder does not exist yet.
    guard fullEvery != nil || arguments.has("incremental"),
      // A name is later than this one if the clock was ahead. A parent is always earlier than its children.
      let newest = (try? place.names())?.last(where: { $0.origin == name.origin && $0 < name })
    else { return (nil, nil) }
    do {
      let chain = try BackupChain(newest, in: place)
      guard chain.members.count < BackupChain.membersMax else {
        return (nil, "the last \(BackupChain.membersMax - 1) backups are incremental")
      }
      if let fullEvery, let full = chain.members.last, name.time.seconds - full.name.time.seconds >= Int64(fullEvery) {
        return (nil, nil)
      }
      return (BackupParent(name: newest, state: chain.members[0].state), nil)
    } catch let failure as CommandFailure where failure.exitCode == ExitCode.data {
      return (nil, failure.message)
    }
  }
}
