import Basics
import DocumentModel
import WireFormat

/// A file of a backup in a bucket.
struct BackedUpFile: Equatable {
  /// The path in the data directory, such as `databases/shop/(default)/data.mdb`.
  var path: String
  /// The size in bytes.
  var size: Int
  /// The SHA-256 of the content, as 64 hexadecimal digits.
  var digest: String
  /// The number of objects that contain it.
  var pieceCount: Int

  /// The digest in the path of content, or `nil` for other files. Backups share content, and compress other files.
  static func contentDigest(_ path: String) -> String? {
    let parts = path.split(separator: "/")
    // `files/content/…`, or `project-files/{project}/content/…`.
    let isShared = parts.count == 4 && parts[0] == "files" && parts[1] == "content"
    let isOfProject = parts.count == 5 && parts[0] == "project-files" && parts[2] == "content"
    guard isShared || isOfProject else { return nil }
    let digest = parts.suffix(2).joined()
    return Hexadecimal.bytes(digest)?.count == 32 ? digest : nil
  }

  /// The line of the file in the list of a backup.
  var line: String { "\(size) \(pieceCount) \(digest) \(path)" }

  init(path: String, size: Int, digest: String, pieceCount: Int) {
    (self.path, self.size, self.digest, self.pieceCount) = (path, size, digest, pieceCount)
  }

  /// Reads a line. Returns `nil` if it has another form, or its path could lead out of a folder.
  init?(line: Substring) {
    let parts = line.split(separator: " ", maxSplits: 3)
    guard parts.count == 4, let size = Int(parts[0]), size >= 0, let count = Int(parts[1]), count > 0,
      Hexadecimal.bytes(parts[2])?.count == 32, Self.isSafe(parts[3])
    else { return nil }
    self.init(path: String(parts[3]), size: size, digest: String(parts[2]), pieceCount: count)
    guard Self.contentDigest(path).map({ $0 == digest }) ?? true else { return nil }
  }

  /// Whether a path cannot lead out of a folder.
  static func isSafe(_ path: Substring) -> Bool {
    let parts = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return !path.utf8.contains(0)
      && parts.allSatisfy { !$0.isEmpty && !$0.elementsEqual(".".utf8) && !$0.elementsEqual("..".utf8) }
  }
}

/// The facts about a backup in a bucket. They are stored last, so a backup exists when its manifest does.
struct BackupManifest: Equatable {
  /// The format of a full backup.
  static let format = 1
  /// The format of an incremental backup, and the newest that this version reads.
  static let incrementalFormat = 2

  /// The time at which the copy of the data directory began.
  var time: Timestamp
  /// The size of the data directory, or of what an incremental backup stores of it, in bytes.
  var size: Int
  /// The number of bytes that this backup added to the bucket, without its list and its manifest.
  var addedBytes: Int
  /// The list of the files: a text with a line for each, which is stored like a file.
  var list: BackedUpFile
  /// The identity of the data directory, as the name of the backup contains it.
  var origin: String?
  /// The machine and the path of the data directory.
  var source: String?
  /// The backup that an incremental backup needs.
  var parent: BackupName?

  init(
    time: Timestamp, size: Int, addedBytes: Int, list: BackedUpFile, origin: String? = nil, source: String? = nil,
    parent: BackupName? = nil
  ) {
    (self.time, self.size, self.addedBytes, self.list) = (time, size, addedBytes, list)
    (self.origin, self.source, self.parent) = (origin, source, parent)
  }

  /// Reads a manifest.
  /// - Throws: ``CommandFailure`` if a newer version wrote it, or it is damaged. `place` names it in the message.
  init(_ json: [UInt8], of place: String) throws {
    let damaged = CommandFailure.data("\(place) is not a valid manifest of a backup; use another backup")
    guard let tree = try? JSONTree(parsing: json), let format = tree["format"]?.text.flatMap({ Int($0) }) else {
      throw damaged
    }
    guard format <= Self.incrementalFormat else {
      throw CommandFailure.data(
        "\(place) has format \(format), which a newer version of hearth wrote; use that version")
    }
    guard let time = tree["time"]?.text.flatMap({ Timestamp(rfc3339: $0.utf8) }),
      let size = tree["size"]?.text.flatMap({ Int($0) }), let added = tree["added"]?.text.flatMap({ Int($0) }),
      let list = tree["list"]?.text.flatMap({ BackedUpFile(line: $0[...]) })
    else { throw damaged }
    let parent = tree["parent"]?.text.map { BackupName($0) }
    guard (parent == nil) == (format < Self.incrementalFormat), parent.map({ $0 != nil }) ?? true else { throw damaged }
    self.init(
      time: time, size: size, addedBytes: added, list: list, origin: tree["origin"]?.text,
      source: tree["source"]?.text, parent: parent ?? nil)
  }

  /// The manifest as JSON. Numbers are strings, because sizes can exceed what JSON readers keep exactly.
  var json: [UInt8] {
    JSONWriter.report { json in
      json.add("format", "\(parent == nil ? Self.format : Self.incrementalFormat)")
      json.add("time", time.description)
      json.add("size", "\(size)")
      json.add("added", "\(addedBytes)")
      json.add("list", list.line)
      json.add("origin", origin)
      json.add("source", source)
      json.add("parent", parent?.text)
    }
  }
}
