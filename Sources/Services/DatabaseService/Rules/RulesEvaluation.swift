import DocumentModel
import DocumentStore
import KeyValue
import RulesEngine
import Synchronization

/// Memory for judging: an evaluator, and the documents that the rules of one request look up. About 50 KiB.
///
/// `@unchecked Sendable`: it moves between threads through a ``RulesEvaluationPool`` only, and whoever took it is alone with it.
final class RulesEvaluation: @unchecked Sendable {
  let evaluator = Evaluator()
  let documents = SnapshotLookup()
  let lookups: DocumentLookups

  init() { lookups = DocumentLookups(documents) }

  /// Lets go of what the request borrowed.
  fileprivate func end() {
    lookups.removeAll()
    documents.end()
  }
}

/// Judges that nobody uses: as many as requests were judged at once, at most.
final class RulesEvaluationPool: Sendable {
  /// What the judges decided, and all else that the service counts.
  let counters = ServiceCounters()
  private let idle: Mutex<[RulesEvaluation]>
  /// More would mean as many requests at work at once, each on a thread of its own.
  private static var idleMax: Int { 16 }

  init() {
    var room: [RulesEvaluation] = []
    room.reserveCapacity(Self.idleMax)
    idle = Mutex(room)
  }

  /// A judge for one request.
  func take() -> RulesEvaluation { idle.withLock { $0.popLast() } ?? RulesEvaluation() }

  /// Takes a judge back when the request is judged.
  func give(_ evaluation: RulesEvaluation) {
    evaluation.end()
    idle.withLock { if $0.count < Self.idleMax { $0.append(evaluation) } }
  }
}

/// Documents for rules, from one state of a store: a snapshot, or the write transaction of the moment. Locks nothing.
final class SnapshotLookup: DocumentLookup {
  private var snapshot: (any KeyValueSnapshot)?
  private var version: Int64?
  private var reader: SnapshotReader?
  /// The documents of a commit, which differ after it.
  private var changed: [ProposedDocument] = []
  /// What was looked at, with its version; 0 where it was missing.
  private(set) var seen: [(key: DocumentKey, version: Int64)] = []

  /// Shows a snapshot from now on, or an earlier version of what is in it; `changed` in the state after the request.
  func begin(_ snapshot: any KeyValueSnapshot, version: Int64? = nil, changed: [ProposedDocument] = []) {
    self.snapshot = snapshot
    self.version = version
    self.changed = changed
  }

  /// Lets go of the snapshot.
  func end() {
    snapshot = nil
    reader = nil
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
  /// Whether the commit removes it, be it there or not.
  var isDeleted: Bool { after == nil && writes.contains { $0.operation == .delete } }
}
