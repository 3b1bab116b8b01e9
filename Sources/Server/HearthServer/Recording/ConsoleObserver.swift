import ConsoleAPI
import DatabaseService
import DocumentModel
import DocumentStore
import RulesTesting

/// Adds the decisions of an emulator to the log of its console, and passes them to another observer.
final class ConsoleObserver: AccessObserver {
  let log = DecisionLog { $0.cases.tests }
  private let next: (any AccessObserver)?

  /// Creates an observer with an empty log.
  init(next: (any AccessObserver)?) { self.next = next }

  func note(_ record: AccessRecord) {
    log.add(record, bytes: record.byteCount)
    next?.note(record)
  }

  func noteSetup(of database: DatabaseID?) { next?.noteSetup(of: database) }
}

/// Adds the decisions of a production server to a recording.
final class RecordingObserver: AccessObserver {
  let recording: DecisionRecording

  /// Creates an observer with a recording that is off. `now` returns microseconds since 1970.
  init(now: @escaping @Sendable () -> Int64) { recording = DecisionRecording(now: now) { $0.cases.tests } }

  func note(_ record: AccessRecord) { recording.add(record, bytes: record.byteCount) }

  func noteSetup(of database: DatabaseID?) {}
}

extension AccessRecord {
  /// The size of the documents in the record, in bytes.
  fileprivate var byteCount: Int {
    var count = lookups.reduce(256) { $0 + ($1.fields?.bytes.count ?? 0) + 64 }
    switch request {
    case .get(_, let fields): count += fields?.bytes.count ?? 0
    case .commit(let changes, _):
      for change in changes { count += (change.before?.bytes.count ?? 0) + 2 * (change.after?.bytes.count ?? 0) + 256 }
    case .list, .file: break
    }
    return count
  }
}
