import DatabaseService
import DocumentModel
import DocumentStore
import Synchronization
import TestSupport
import Watch

/// A client of a Listen stream that applies all events, as the SDKs do, and records them in short form.
final class ListeningClient {
  /// The client's state of one target.
  struct State: Equatable {
    /// The update time of each document.
    var documents: [ResourcePath: Int64] = [:]
    var isCurrent = false
  }

  /// The events received, one per line.
  private(set) var events: [String] = []
  private(set) var states: [Int32: State] = [:]
  /// The fields of the documents reported as changed.
  private(set) var fields: [String: EncodedFields] = [:]
  /// The version of the last snapshot, and its resume token.
  private(set) var snapshot: (version: Int64, token: [UInt8])?
  /// The states at the last snapshot.
  private(set) var atSnapshot: [Int32: State]?
  private(set) var causes: [Int32: Status] = [:]
  /// Called at every snapshot.
  var onSnapshot: (ListeningClient) throws -> Void = { _ in }
  let stream: ListenStream
  let wakes = Wakes()
  private let service: SimulatedService
  /// The documents of resumed targets, until the targets are added.
  private var known: [Int32: [ResourcePath: Int64]] = [:]

  final class Wakes: Sendable {
    private let counted = Atomic(0)
    func count() { counted.add(1, ordering: .sequentiallyConsistent) }
    /// Returns whether there were any wakes since the last call.
    func take() -> Bool { counted.exchange(0, ordering: .sequentiallyConsistent) > 0 }
  }

  init(_ service: SimulatedService, as caller: Caller = .admin) throws {
    self.service = service
    stream = try ListenStream(service.service, in: service.id, as: caller) { [wakes] in wakes.count() }
  }

  func add(_ target: ListenTarget) throws { try stream.receive(.add(target)) }

  func add(_ id: Int32, _ selection: ListenTarget.Selection, from token: [UInt8]? = nil) throws {
    try add(ListenTarget(id: id, selection, resumePoint: token.map { .token($0) }))
  }

  /// Sets the documents that the client already has when a target is added.
  func expect(_ documents: [ResourcePath: Int64], of id: Int32) { known[id] = documents }

  func remove(_ id: Int32) throws { try stream.receive(.remove(id)) }

  /// Reads events until neither the stream nor the watch hub has more.
  func settle() throws {
    repeat {
      try pull()
      service.settleWatchHubs()
    } while wakes.take()
  }

  /// Reads the events available now, at most `eventsMax`.
  func pull(eventsMax: Int = .max) throws {
    var left = eventsMax
    while left > 0 {
      let progress = try stream.pull { event in
        left -= 1
        try take(event)
        return left > 0
      }
      if case .waiting = progress { return }
    }
  }

  /// Returns the events since the last call.
  func takeEvents() -> [String] {
    defer { events = [] }
    return events
  }

  private func take(_ event: ListenEvent) throws {
    switch event {
    case .targetAdded(let id):
      events.append("ADD \(id)")
      states[id] = State(documents: known.removeValue(forKey: id) ?? [:])
    case .targetRemoved(let id, let cause):
      events.append("REMOVE \(id)" + (cause.map { " \($0.code)" } ?? ""))
      if let cause { causes[id] = cause }
      states[id] = nil
    case .targetReset(let id):
      events.append("RESET \(id)")
      states[id] = State()
    case .targetCurrent(let id, _, _):
      events.append("CURRENT \(id)")
      states[id]?.isCurrent = true
    case .snapshot(let token, let readTime):
      events.append("SNAPSHOT")
      if let last = snapshot?.version, last > readTime.microseconds { throw Difference("a snapshot in the past") }
      snapshot = (readTime.microseconds, token)
      atSnapshot = states
      try onSnapshot(self)
    case .found(let key, let document, let targets): change(key, document.updateVersion, targets, [])
    case .changed(let document, let targets, let removed):
      fields["\(document.key)"] = document.fields
      change(document.key, document.updateVersion, targets, removed)
    case .deleted(let key, _, let removed): leave("DELETE", key, removed)
    case .removed(let key, _, let removed): leave("LEAVE", key, removed)
    }
  }

  private func change(_ key: DocumentKey, _ version: Int64, _ targets: [Int32], _ removed: [Int32]) {
    let text = { (ids: [Int32], sign: String) in ids.map { sign + String($0) }.joined(separator: ",") }
    events.append("\(key) \(text(targets, "+"))\(text(removed, "-"))")
    for id in targets { states[id]?.documents[key.path] = version }
    for id in removed { states[id]?.documents[key.path] = nil }
  }

  private func leave(_ verb: String, _ key: DocumentKey, _ targets: [Int32]) {
    events.append("\(verb) \(key) \(targets.map(String.init).joined(separator: ","))")
    for id in targets { states[id]?.documents[key.path] = nil }
  }
}

extension SimulatedService {
  /// Waits until the watch hubs have processed all requests.
  func settleWatchHubs() { for hub in service.watchHubs.all { hub.settle() } }

  /// Trims expired history and log entries.
  func trim() throws {
    for _ in 0..<3 {
      databases.maintain()
      // An empty commit completes after the trimming queued before it.
      try commit([])
    }
  }
}
