import DocumentModel
import WireFormat

/// The list of the files of a backup in a bucket. It is stored last, so a backup exists when its manifest does.
struct BackupManifest: Equatable {
  /// A file of a data directory.
  struct File: Equatable {
    /// The path in the data directory, such as `databases/shop/(default)/data.mdb`.
    var path: String
    /// The size in bytes.
    var size: Int
    /// The SHA-256 of the content, as 64 hexadecimal digits.
    var digest: String
    /// The common prefix of the names of its pieces. Their names end with a dot and a number, from 0.
    var object: String
    var pieceCount: Int
    /// Whether the pieces are one zstd frame together.
    var isCompressed: Bool
  }

  /// The format that this version writes, and the newest that it reads.
  static let format = 1

  /// The time at which the copy of the data directory began.
  var time: Timestamp
  var files: [File]
  /// The number of bytes that this backup added to the bucket.
  var addedBytes: Int

  /// The size of the data directory, in bytes.
  var size: Int { files.reduce(0) { $0 + $1.size } }

  init(time: Timestamp, files: [File], addedBytes: Int) {
    (self.time, self.files, self.addedBytes) = (time, files, addedBytes)
  }

  /// Reads a manifest.
  /// - Throws: ``CommandFailure`` if a newer version wrote it, or it is damaged. `place` names it in the message.
  init(_ json: [UInt8], of place: String) throws {
    let damaged = CommandFailure.data("\(place) is not a valid list of the files of a backup; use another backup")
    guard let tree = try? JSONTree(parsing: json), let format = tree["format"]?.text.flatMap({ Int($0) }) else {
      throw damaged
    }
    guard format <= Self.format else {
      throw CommandFailure.data(
        "\(place) has format \(format), which a newer version of hearth wrote; use that version")
    }
    guard let time = tree["time"]?.text.flatMap({ Timestamp(rfc3339: $0.utf8) }) else { throw damaged }
    let files = try (tree["files"]?.elements ?? []).map { file in
      guard let path = file["path"]?.text, Self.isSafe(path), let size = file["size"]?.text.flatMap({ Int($0) }),
        let digest = file["sha256"]?.text, let object = file["object"]?.text,
        let count = file["pieces"]?.text.flatMap({ Int($0) }), size >= 0, count > 0
      else { throw damaged }
      return File(
        path: path, size: size, digest: digest, object: object, pieceCount: count,
        isCompressed: file["compression"]?.text == "zstd")
    }
    guard !files.isEmpty else { throw damaged }
    self.init(time: time, files: files, addedBytes: tree["added"]?.text.flatMap { Int($0) } ?? 0)
  }

  /// The manifest as JSON. Numbers are strings, because sizes can exceed what JSON readers keep exactly.
  var json: [UInt8] {
    JSONWriter.report { json in
      json.add("format", "\(Self.format)")
      json.add("time", time.description)
      json.add("added", "\(addedBytes)")
      json.add("files", files) { file, json in
        json.add("path", file.path)
        json.add("size", "\(file.size)")
        json.add("sha256", file.digest)
        json.add("object", file.object)
        json.add("pieces", "\(file.pieceCount)")
        if file.isCompressed { json.add("compression", "zstd") }
      }
    }
  }

  /// Returns whether a path stays in the directory that it is relative to.
  private static func isSafe(_ path: String) -> Bool {
    let parts = path.utf8.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
    return !path.utf8.contains(0)
      && parts.allSatisfy { !$0.isEmpty && !$0.elementsEqual(".".utf8) && !$0.elementsEqual("..".utf8) }
  }
}
