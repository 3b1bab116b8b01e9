import WireFormat

/// The result of `hearth backups create --json`, which the schedule of a server reads.
struct BackupReport: Equatable {
  /// The name of the newest backup.
  var name: String
  /// Whether this run made it. If not, it was new enough.
  var isMade: Bool
  /// The size of the data directory in the backup, in bytes; 0 if this run made none.
  var size: Int

  init(name: String, isMade: Bool, size: Int) { (self.name, self.isMade, self.size) = (name, isMade, size) }

  /// Reads a report.
  /// - Throws: ``CommandFailure`` if the text is not valid JSON.
  init(json: [UInt8]) throws {
    self = try JSONText.read(json) { root in
      BackupReport(
        name: root.member("backup")?.text ?? "", isMade: root.member("made")?.isTrue ?? false,
        size: root.member("size")?.integer ?? 0)
    }
  }

  /// The report as JSON, in one line.
  func json() -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    json.add("backup", name)
    json.add("made", isMade)
    json.add("size", size)
    json.endObject()
    return json.bytes + [UInt8(ascii: "\n")]
  }
}
