import DocumentModel
import DocumentStore
import Files

/// A place that holds the backups of a data directory: a folder, or a bucket.
protocol BackupPlace {
  /// The location, in the form of a command line.
  var text: String { get }

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

  /// Makes a backup of a data directory. `progress` receives texts.
  /// - Throws: ``CommandFailure`` or the errors of the place if it fails. Then no backup of that name exists.
  func make(_ name: BackupName, of source: DirectoryReader, progress: (String) -> Void) throws -> BackupOutcome

  /// Returns the data directory of a backup, or `nil` if the place is not a folder of this machine.
  func directory(of name: BackupName) -> String?

  /// Makes a data directory of a backup. Nothing must exist at the path, or an empty directory.
  /// - Throws: ``CommandFailure`` or the errors of the place if it fails. Then nothing is left at the path.
  func restore(_ name: BackupName, to path: String, progress: (String) -> Void) throws

  /// Removes backups, and the content of files that no other backup has.
  /// - Throws: ``CommandFailure`` or the errors of the place if something cannot be removed.
  func remove(_ names: [BackupName]) throws
}

/// The properties of a backup that a list shows.
struct BackupFacts {
  /// The size of the data directory, in bytes.
  var size: Int
  /// The machine and the path of the data directory, if the backup names them.
  var source: String?
}

/// The result of a backup.
struct BackupOutcome {
  /// The size of the data directory, in bytes.
  var size: Int
  /// The number of bytes that the backup added to the place, if it is known.
  var addedBytes: Int?
  /// The outcome for the content of files, if the data directory has any. Damaged content is not in the backup.
  var contents: FilesBackup?
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
