import WireFormat

/// An event of `hearth backups follow`. The verb prints it as text or JSON, and a server that runs the verb reads it.
enum FollowerEvent: Equatable {
  /// A backup was made, and the commits after it are copied. The reason is empty if it was time for one.
  case made(backup: String, isIncremental: Bool, reason: String)
  /// The commits after a backup of an earlier run are copied.
  case continued(backup: String)
  /// The commits after a backup cannot be copied any more.
  case ended(reason: String)
  /// A database has no commit log, so its commits are only in the backups.
  case uncovered(database: String)
  /// Commits cannot be copied now. The verb tries again.
  case failed(message: String)
  /// Commits are copied again after a failure.
  case recovered

  /// Reads an event, or returns `nil` if the text is not one.
  init?(json: [UInt8]) {
    let event = try? JSONText.read(json) { root -> FollowerEvent? in
      let backup = root.member("backup")?.text ?? ""
      switch root.member("event")?.text {
      case "made":
        return .made(
          backup: backup, isIncremental: root.member("incremental")?.isTrue ?? false,
          reason: root.member("reason")?.text ?? "")
      case "continued": return .continued(backup: backup)
      case "ended": return .ended(reason: root.member("reason")?.text ?? "")
      case "uncovered": return .uncovered(database: root.member("database")?.text ?? "")
      case "failed": return .failed(message: root.member("message")?.text ?? "")
      case "recovered": return .recovered
      default: return nil
      }
    }
    guard let event else { return nil }
    self = event
  }

  /// The event as JSON, in one line.
  func json() -> [UInt8] {
    var json = JSONWriter(.compact)
    json.beginObject()
    switch self {
    case .made(let backup, let isIncremental, let reason):
      json.add("event", "made")
      json.add("backup", backup)
      json.add("incremental", isIncremental)
      if !reason.isEmpty { json.add("reason", reason) }
    case .continued(let backup):
      json.add("event", "continued")
      json.add("backup", backup)
    case .ended(let reason):
      json.add("event", "ended")
      json.add("reason", reason)
    case .uncovered(let database):
      json.add("event", "uncovered")
      json.add("database", database)
    case .failed(let message):
      json.add("event", "failed")
      json.add("message", message)
    case .recovered: json.add("event", "recovered")
    }
    json.endObject()
    return json.bytes + [UInt8(ascii: "\n")]
  }

  /// The event of a directory as a sentence.
  func text(of directory: String) -> String {
    switch self {
    case .made(let backup, let isIncremental, let reason):
      "following \(directory): made the \(isIncremental ? "incremental " : "")backup \(backup)"
        + (reason.isEmpty ? "" : ", because \(reason)")
    case .continued(let backup): "following \(directory): continued after the backup \(backup)"
    case .ended(let reason): reason
    case .uncovered(let database):
      "following \(directory): \(database) has no commit log, so its commits are only in the backups"
    case .failed(let message): message
    case .recovered: "following \(directory): copies commits again"
    }
  }
}
