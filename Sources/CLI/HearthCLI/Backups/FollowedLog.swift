import Basics
import DocumentModel
import LogEngine

/// The commits after a backup, which `hearth backups follow` adds to it. They are files of the backup:
///
///     start.txt                  the position of each database in the backup; see ``Database``
///     until.txt                  a time up to which all commits are here, and the number of the last one of each database
///     {number}/{sequence}        the commits of a database; see `ShippedLogReader`
///
/// The number of a database is its line in `start.txt`, from 0. A file begins with the commit after `sequence`, in 16
/// hexadecimal digits, so names sort by commits.
struct FollowedLog {
  /// A database of a backup whose commits follow.
  struct Database: Equatable {
    /// The path of its file in the data directory.
    var path: String
    /// The position that the backup shows.
    var origin: LogOrigin
    /// The time of the last commit in the backup, in microseconds since 1970.
    var time: Int64
  }

  /// The end of the commits of a database.
  struct End {
    /// The position after the last commit, and its time.
    var origin: LogOrigin
    var time: Int64
    /// The last file, and the length of its whole records, or `nil` if it has no file.
    var last: (file: String, bytes: Int)?
  }

  static let startFile = "start.txt"
  static let untilFile = "until.txt"
  private static let firstLine = "hearth-log 1"
  /// The size at which a file is complete, in bytes.
  static let fileBytesMax = 8 << 20

  let name: BackupName
  let place: any BackupPlace
  let databases: [Database]

  /// Begins the log of a backup.
  init(_ databases: [Database], after name: BackupName, in place: any BackupPlace) {
    (self.databases, self.name, self.place) = (databases, name, place)
  }

  /// Reads the log of a backup. Returns `nil` if it has none.
  /// - Throws: ``CommandFailure`` if it is damaged, or the errors of the place.
  init?(of name: BackupName, in place: any BackupPlace) throws {
    guard let bytes = try place.logFile(Self.startFile, of: name) else { return nil }
    let damaged = CommandFailure.data("the log of the backup \(name.text) is damaged: \(Self.startFile)")
    var lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")[...]
    guard lines.popFirst() == Self.firstLine[...] else { throw damaged }
    let databases = try lines.map { line in
      let parts = line.split(separator: " ", maxSplits: 2).map(String.init)
      guard parts.count == 3, let origin = Hexadecimal.bytes(parts[0]).flatMap({ LogOrigin($0) }),
        let time = Int64(parts[1]), BackedUpFile.isSafe(parts[2][...])
      else { throw damaged }
      return Database(path: parts[2], origin: origin, time: time)
    }
    self.init(databases, after: name, in: place)
  }

  /// Stores the positions of the databases, after which commits can follow.
  /// - Throws: the errors of the place.
  func writeStart() throws {
    let lines = databases.map { "\(Hexadecimal.text($0.origin.bytes)) \($0.time) \($0.path)" }
    let text = ([Self.firstLine] + lines).map { $0 + "\n" }.joined()
    try place.writeLogFile(Self.startFile, Array(text.utf8), of: name)
  }

  /// Stores the time up to which all commits are in the log, with the number of the last commit of each database.
  /// - Throws: the errors of the place.
  func write(until time: Timestamp, _ sequences: [UInt64]) throws {
    let words = ["\(time)"] + sequences.map { "\($0)" }
    try place.writeLogFile(Self.untilFile, Array((words.joined(separator: " ") + "\n").utf8), of: name)
  }

  /// The time up to which a log can be used.
  struct Coverage {
    /// The time up to which it has all commits of its databases.
    var end: Timestamp
    /// The time up to which no other database changed, or an early one.
    var until: Timestamp
    var files: [String]
  }

  /// Returns the time up to which the log can be used. If it lost commits that were copied, this is the time of the last one
  /// that it has. Cost: reads the last file of each database.
  /// - Throws: ``CommandFailure`` if a file is damaged, or the errors of the place.
  func coverage() throws -> Coverage {
    // A follower that is at work writes this file last, so it is read first.
    let stored = try storedUntil()
    let files = try place.logFiles(of: name)
    let ends = try databases.indices.map { try self.end(of: $0, files) }
    // A file that is missing or cut short has no other sign.
    let isWhole = zip(ends, stored?.sequences ?? []).allSatisfy { $0.origin.position.sequence >= $1 }
    let until = isWhole ? stored?.time ?? .earliest : .earliest
    let last = ends.map { max(until, Timestamp(uncheckedMicroseconds: $0.time)) }.min()
    return Coverage(end: last ?? until, until: until, files: files)
  }

  /// Without this time, the log can be used up to its last commits.
  private func storedUntil() throws -> (time: Timestamp, sequences: [UInt64])? {
    guard let bytes = try place.logFile(Self.untilFile, of: name) else { return nil }
    let words = String(decoding: bytes, as: UTF8.self).dropLast().split(separator: " ")
    let sequences = words.dropFirst().compactMap { UInt64($0) }
    guard let time = words.first.flatMap({ Timestamp(rfc3339: $0.utf8) }), words.count == databases.count + 1,
      sequences.count == databases.count
    else { return nil }
    return (time, sequences)
  }

  /// Returns the files of a database, in order.
  func files(of number: Int, _ all: [String]) -> [String] { all.filter { $0.hasPrefix("\(number)/") } }

  static func file(of number: Int, after origin: LogOrigin) -> String {
    let digits = String(origin.position.sequence, radix: 16)
    return "\(number)/\(String(repeating: "0", count: 16 - digits.count))\(digits)"
  }

  /// Finds the end of a database's commits. An incomplete record at the end of the last file, which a crash leaves, is not
  /// a part of them. Cost: reads the last file.
  /// - Throws: ``CommandFailure`` if the file is damaged, or the errors of the place.
  func end(of number: Int, _ all: [String]) throws -> End {
    let database = databases[number]
    var end = End(origin: database.origin, time: database.time)
    for file in files(of: number, all).reversed() {
      let bytes = try place.logFile(file, of: name) ?? []
      // A crash can leave a file without its beginning.
      guard bytes.count >= LogOrigin.byteCount, let origin = LogOrigin(Array(bytes[..<LogOrigin.byteCount])) else {
        continue
      }
      guard Self.file(of: number, after: origin) == file else { throw damaged(file) }
      var reader = ShippedLogReader(after: origin, time: database.time)
      var offset = LogOrigin.byteCount
      bytes.withUnsafeBytes { bytes in while reader.next(in: bytes, at: &offset) != nil {} }
      if end.last == nil { (end.origin, end.last) = (reader.origin, (file, offset)) }
      // A crash can leave a file without a whole record.
      guard offset == LogOrigin.byteCount else {
        end.time = reader.time
        break
      }
    }
    return end
  }

  /// Passes the commits of a database to `take`, in order, with their times, until it returns `false`.
  /// - Throws: ``CommandFailure`` if the commits have a gap or are damaged, the errors of the place, or the error of
  ///   `take`.
  func forEachCommit(
    of number: Int, _ all: [String], _ take: (UnsafeRawBufferPointer, LogPosition, Int64) throws -> Bool
  ) throws {
    let database = databases[number]
    var reader = ShippedLogReader(after: database.origin, time: database.time)
    let files = files(of: number, all)
    for (index, file) in files.enumerated() {
      let bytes = try place.logFile(file, of: name) ?? []
      let isLast = index == files.count - 1
      guard bytes.count >= LogOrigin.byteCount else {
        if isLast { return }
        throw damaged(file)
      }
      guard let origin = LogOrigin(Array(bytes[..<LogOrigin.byteCount])), reader.begin(origin) else {
        throw damaged(file)
      }
      var offset = LogOrigin.byteCount
      let isOver = try bytes.withUnsafeBytes { bytes in
        while let (batch, time) = reader.next(in: bytes, at: &offset) {
          if try !take(batch, reader.origin.position, time) { return true }
        }
        return false
      }
      if isOver { return }
      // Only the end of the last file can be incomplete.
      guard offset == bytes.count || isLast else { throw damaged(file) }
    }
  }

  private func damaged(_ file: String) -> CommandFailure {
    .data("the log of the backup \(name.text) is damaged: \(file); restore an earlier moment, or another backup")
  }
}
