import DocumentModel
import DocumentStore
import KeyValue
import RulesEngine
import Synchronization

/// The memory to evaluate rules: an evaluator, and the documents that the rules of one request look up. About 50
/// KiB.
///
/// `@unchecked Sendable`: it moves between threads only through a ``RulesEvaluationPool``, and only one thread uses
/// it at a time.
final class RulesEvaluation: @unchecked Sendable {
  let evaluator = Evaluator()
  let lookups: DocumentLookups
  private let documents = SnapshotLookup()

  init() { lookups = DocumentLookups(documents) }

  /// The documents that the rules have looked up, with their versions; 0 for a document that does not exist.
  var seen: [(key: DocumentKey, version: Int64)] { documents.seen }

  /// Lets rules look up documents in a snapshot, or in an earlier version of it. `changed` are the documents whose
  /// states differ after the request.
  func begin(_ snapshot: any KeyValueSnapshot, version: Int64? = nil, changed: [ProposedDocument] = []) {
    documents.begin(snapshot, version: version, changed: changed)
  }

  /// Releases the snapshot, but keeps the documents that the rules have looked up for the next slice of the request.
  func pause() { documents.release() }

  /// Releases the data that the request borrowed.
  fileprivate func end() {
    lookups.removeAll()
    documents.end()
  }
}

/// Idle evaluations. There are at most as many as requests were evaluated concurrently.
final class RulesEvaluationPool: Sendable {
  /// The counters of decisions, and all other counters of the service.
  let counters = ServiceCounters()
  private let present: (any AccessObserver)?
  private let observation: ObservationSwitch
  /// The limits of callers, or `nil` if nothing is limited.
  let limiter: RateLimiter?
  private let hasObserver: Bool
  private let idle: Mutex<[RulesEvaluation]>
  /// More than this would mean more concurrent requests, each on its own thread.
  private static var idleMax: Int { 16 }

  init(
    observer: (any AccessObserver)? = nil, observation: ObservationSwitch = ObservationSwitch(isOn: true),
    limiter: RateLimiter? = nil
  ) {
    present = observer
    self.observation = observation
    self.limiter = limiter
    hasObserver = observer != nil
    var room: [RulesEvaluation] = []
    room.reserveCapacity(Self.idleMax)
    idle = Mutex(room)
  }

  /// Whether an observer wants decisions now. Cost: one load, and another one if an observer exists.
  var isObserved: Bool { hasObserver && observation.isOn }
  /// The observer of decisions, or `nil` if decisions are not recorded now.
  var observer: (any AccessObserver)? { isObserved ? present : nil }

  /// Returns an evaluation for one request.
  func take() -> RulesEvaluation {
    let evaluation = idle.withLock { $0.popLast() } ?? RulesEvaluation()
    evaluation.evaluator.beginRequest()
    return evaluation
  }

  /// Takes an evaluation back when the request has been evaluated.
  func give(_ evaluation: RulesEvaluation) {
    evaluation.end()
    idle.withLock { if $0.count < Self.idleMax { $0.append(evaluation) } }
  }
}

/// Looks up documents for rules in one state of a store: a snapshot, or the current write transaction. It takes no
/// locks.
private final class SnapshotLookup: DocumentLookup {
  private var snapshot: (any KeyValueSnapshot)?
  private var version: Int64?
  private var reader: SnapshotReader?
  /// The documents of a commit, whose states after it differ.
  private var changed: [ProposedDocument] = []
  private(set) var seen: [(key: DocumentKey, version: Int64)] = []

  func begin(_ snapshot: any KeyValueSnapshot, version: Int64?, changed: [ProposedDocument]) {
    self.snapshot = snapshot
    self.version = version
    self.changed = changed
  }

  /// Releases the snapshot.
  func release() {
    snapshot = nil
    reader = nil
  }

  /// Releases the snapshot and forgets the request.
  func end() {
    release()
    if !changed.isEmpty { changed = [] }
    if !seen.isEmpty { seen.removeAll(keepingCapacity: true) }
  }

  func lookUp(
    _ path: UnsafeRawBufferPointer, isAfter: Bool, _ body: (UnsafeRawBufferPointer) -> Void
  ) -> LookupOutcome {
    guard let path = try? ResourcePath(checking: Array(path)), let key = DocumentKey(path) else { return .unavailable }
    if isAfter, let document = changed.first(where: { $0.key == key }) {
      guard let fields = document.after else { return document.isDeleted ? .deleted : .missing }
      fields.bytes.withUnsafeBytes(body)
      return .found
    }
    do throws(StorageError) {
      guard let document = try stored(key) else {
        seen.append((key, 0))
        return .missing
      }
      seen.append((key, document.updateVersion))
      body(document.fields)
      return .found
    } catch { return .unavailable }
  }

  private func stored(_ key: DocumentKey) throws(StorageError) -> StoredDocument? {
    guard let snapshot else { return nil }
    var reader = self.reader ?? SnapshotReader(snapshot)
    defer { self.reader = reader }
    guard let version else { return try reader.document(key) }
    guard let row = try reader.collection(key.collection) else { return nil }
    return try reader.document(key.id, in: row.number, at: version)
  }
}

extension ProposedDocument {
  /// Whether the commit deletes the document, even if the document does not exist.
  var isDeleted: Bool { after == nil && writes.contains { $0.operation == .delete } }
}
