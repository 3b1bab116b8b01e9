import Accounts
import DocumentModel
import WireFormat

/// The backups of a server, as its console shows them.
enum BackupList {
  /// Passes to `take` `{"place": …, "busy": …, "last": {"time": …, "failure": …}, "backups": [{"name": …, "size": …}]}`,
  /// or `"problem"` in place of the list if the place cannot be read. Returns `false`, and does not call `take`, if too
  /// many callers wait. Cost: one process that reads the place, for all callers that wait.
  static func request(of schedule: BackupSchedule, _ take: @escaping @Sendable ([UInt8]) -> Void) -> Bool {
    // The facts are those of the time before the listing. If no backup is under way, the list is complete.
    let facts = Self.facts(of: schedule)
    return schedule.listing.list { outcome in take(json(facts, outcome)) }
  }

  private static func facts(of schedule: BackupSchedule) -> MapValue {
    var map = MapValue([("place", .string(schedule.place)), ("busy", .boolean(schedule.isBusy))])
    if let last = schedule.last {
      var result = MapValue([("time", .string("\(Timestamp(uncheckedMicroseconds: last.time))"))])
      result["failure"] = last.failure.map(Value.string)
      map["last"] = .map(result)
    }
    return map
  }

  private static func json(_ facts: MapValue, _ outcome: BackupListing.Outcome) -> [UInt8] {
    var map = facts
    switch outcome {
    case .listed(let output):
      if let listed = MapValue(json: Array(output.utf8)) {
        map["backups"] = listed["backups"]
      } else {
        map["problem"] = .string(output.split(separator: "\n").last.map(String.init) ?? "the place cannot be read")
      }
    case .failed(let reason): map["problem"] = .string(reason)
    }
    return map.json
  }
}
