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

  /// Returns the size of the data directory of a backup, in bytes.
  /// - Throws: ``CommandFailure`` or the errors of the place if the backup cannot be read.
  func size(of name: BackupName) throws -> Int

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

/// The result of a backup.
struct BackupOutcome {
  /// The size of the data directory, in bytes.
  var size: Int
  /// The number of bytes that the backup added to the place, if it is known.
  var addedBytes: Int?
  /// The outcome for the content of files, if the data directory has any. Damaged content is not in the backup.
  var contents: FilesBackup?
}

/// The name of a backup: the time at which it began, such as `2026-11-22T031500Z`. Names sort by time.
struct BackupName: Hashable, Comparable {
  let text: String
  /// The time, in whole seconds.
  let time: Timestamp

  /// Creates the name of a backup that begins at a time.
  init(_ time: Timestamp) {
    let whole = Timestamp(uncheckedMicroseconds: time.seconds * 1_000_000)
    self.time = whole
    text = String(whole.description.prefix(19).filter { $0 != ":" }) + "Z"
  }

  /// Parses a name. Returns `nil` if the text is not the name of a backup.
  init?(_ text: String) {
    guard text.utf8.count == 18, text.utf8.last == UInt8(ascii: "Z") else { return nil }
    let digits = Array(text.utf8)
    let day = String(decoding: digits[..<11], as: UTF8.self)
    let parts = [11, 13, 15].map { String(decoding: digits[$0..<$0 + 2], as: UTF8.self) }
    guard let time = Timestamp(rfc3339: "\(day)\(parts.joined(separator: ":"))Z".utf8) else { return nil }
    self.init(time)
    guard self.text == text else { return nil }
  }

  static func < (a: BackupName, b: BackupName) -> Bool { a.time < b.time }
}
