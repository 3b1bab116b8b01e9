import DocumentModel
import DocumentStore
import Files
import LogEngine

/// A place that holds the backups of a data directory: a folder, or a bucket.
protocol BackupPlace {
  /// The location, in the form of a command line.
  var text: String { get }

  /// Whether the place does not exist yet. The first backup creates it.
  var isMissing: Bool { get }

  /// Returns the names of the complete backups, the oldest first.
  /// - Throws: ``CommandFailure`` or the errors of the place if they cannot be listed.
  func names() throws -> [BackupName]

  /// Returns the size and the source of a backup.
  /// - Throws: ``CommandFailure`` or the errors of the place if the backup cannot be read.
  func facts(of name: BackupName) throws -> BackupFacts

  /// Returns the databases of a backup.
  /// - Throws: ``CommandFailure`` or the errors of the place if the backup cannot be read.
  func databases(of name: BackupName) throws -> [DatabaseID]

  /// Copies the file of a database of a backup to a new file. `progress` receives texts.
  /// - Throws: ``CommandFailure`` or the errors of the place if it fails. The caller removes the file.
  func copyDatabase(_ id: DatabaseID, of name: BackupName, to file: String, progress: (String) -> Void) throws

  /// Returns the state of a backup, or `nil` if an older version made the backup. Then no backup can continue it.
  /// - Throws: ``CommandFailure`` or the errors of the place if the backup cannot be read, or is damaged.
  func state(of name: BackupName) throws -> BackupState?

  /// Returns the backup that an incremental backup continues, or `nil` for a full backup.
  /// - Throws: ``CommandFailure`` or the errors of the place if the backup cannot be read.
  func parent(of name: BackupName) throws -> BackupName?

  /// Copies the file of a store that a backup contains to a new file, and verifies it.
  /// - Throws: ``CommandFailure`` or the errors of the place if it fails. The caller removes the file.
  func copyStore(
    _ store: BackupState.Store, of name: BackupName, to file: String, progress: (String) -> Void) throws

  /// Copies the content of files from a folder of a backup, such as `files`, to a folder of a data directory, in which
  /// their metadata are.
  /// - Throws: ``CommandFailure`` or the errors of the place if it fails.
  func copyContents(_ folder: String, of name: BackupName, to target: String, progress: (String) -> Void) throws

  /// Makes a backup of a data directory: an incremental one if a parent is given. `progress` receives texts.
  /// - Throws: ``CommandFailure`` or the errors of the place if it fails. Then no backup of that name exists.
  func make(
    _ name: BackupName, of source: DirectoryReader, since parent: BackupParent?, progress: (String) -> Void
  ) throws -> BackupOutcome

  /// Returns the data directory of a full backup, or `nil` if the backup is incremental or not on this machine.
  func directory(of name: BackupName) -> String?

  /// Makes a data directory of a backup. Nothing must exist at the path, or an empty directory.
  /// - Throws: ``CommandFailure`` or the errors of the place if it fails. Then nothing is left at the path.
  func restore(_ name: BackupName, to path: String, progress: (String) -> Void) throws

  /// Whether ``appendToLogFile(_:_:at:of:)`` can append to an existing file.
  var appendsToLogFiles: Bool { get }

  /// Returns the files of the log that follows a backup, in the order of their names. See ``FollowedLog``.
  /// - Throws: ``CommandFailure`` or the errors of the place if they cannot be listed.
  func logFiles(of name: BackupName) throws -> [String]

  /// Returns the content of a file of the log, or `nil` if it does not exist.
  /// - Throws: ``CommandFailure`` or the errors of the place if it cannot be read.
  func logFile(_ file: String, of name: BackupName) throws -> [UInt8]?

  /// Stores a file of the log, durably and as a whole. Replaces it if it exists.
  /// - Throws: ``CommandFailure`` or the errors of the place if that fails.
  func writeLogFile(_ file: String, _ content: [UInt8], of name: BackupName) throws

  /// Writes to the end of a file of the log, durably, and cuts what is there after `offset`. With an offset of 0, creates
  /// the file. After a crash, any part of the bytes may be there.
  /// - Throws: ``CommandFailure`` or the errors of the place if that fails.
  func appendToLogFile(_ file: String, _ content: [UInt8], at offset: Int, of name: BackupName) throws

  /// Removes backups, and the content of files that no other backup has.
  /// - Throws: ``CommandFailure`` if a backup that stays needs one of them; nothing is removed then. Also the errors of
  ///   the place if something cannot be removed.
  func remove(_ names: [BackupName]) throws
}

/// The properties of a backup that a list shows.
struct BackupFacts {
  /// The size of the data directory, or of what an incremental backup stores of it, in bytes.
  var size: Int
  /// The machine and the path of the data directory, if the backup names them.
  var source: String?
  /// The backup that an incremental backup needs.
  var parent: BackupName?
}

/// The result of a backup.
struct BackupOutcome {
  /// The size of the data directory, or of what an incremental backup stores of it, in bytes.
  var size: Int
  /// The number of bytes that the backup added to the place, if it is known.
  var addedBytes: Int?
  /// The outcome for the content of files, if the data directory has any. Damaged content is not in the backup.
  var contents: FilesBackup?
  /// The backup that the new one needs, if it is incremental.
  var parent: BackupName?
  /// The reasons why stores are in an incremental backup as a whole.
  var notes: [String] = []
  /// The positions in the commit logs that the backup shows, by the paths of the databases' files. Databases that never
  /// had a log are missing.
  var logOrigins: [String: LogOrigin] = [:]
}

/// The name of a backup: the time at which it began, and the identity of the data directory, such as
/// `2026-11-22T031500Z-4f1c2a9b`. Names sort by time.
struct BackupName: Hashable, Comparable {
  let text: String
  /// The time, in whole seconds.
  let time: Timestamp
  /// The identity of the data directory, see ``BackupOrigin``, or `nil` if the name does not contain it.
  let origin: String?

  /// The number of bytes of a time in a name.
  private static let timeBytes = 18

  /// Creates the name of a backup that begins at a time.
  init(_ time: Timestamp, origin: String? = nil) {
    let whole = Timestamp(uncheckedMicroseconds: time.seconds * 1_000_000)
    (self.time, self.origin) = (whole, origin)
    text = String(whole.description.prefix(19).filter { $0 != ":" }) + "Z" + (origin.map { "-\($0)" } ?? "")
  }

  /// Parses a name. Returns `nil` if the text is not the name of a backup.
  init?(_ text: String) {
    let bytes = Array(text.utf8)
    var origin: String?
    if bytes.count == Self.timeBytes + 1 + BackupOrigin.digits, bytes[Self.timeBytes] == UInt8(ascii: "-") {
      origin = String(decoding: bytes[(Self.timeBytes + 1)...], as: UTF8.self)
    }
    guard origin.map(BackupOrigin.isID) ?? (bytes.count == Self.timeBytes),
      bytes[Self.timeBytes - 1] == UInt8(ascii: "Z")
    else { return nil }
    let day = String(decoding: bytes[..<11], as: UTF8.self)
    let parts = [11, 13, 15].map { String(decoding: bytes[$0..<$0 + 2], as: UTF8.self) }
    guard let time = Timestamp(rfc3339: "\(day)\(parts.joined(separator: ":"))Z".utf8) else { return nil }
    self.init(time, origin: origin)
    guard self.text == text else { return nil }
  }

  static func < (a: BackupName, b: BackupName) -> Bool { (a.time, a.text) < (b.time, b.text) }
}
