import Callers
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

  /// Waits until the watch hub has processed all requests.
  func settleHubs() { service.settleWatchHubs() }

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

  private func take(_ event: WatchEvent) throws {
    switch event {
    case .add(let id):
      events.append("ADD \(id)")
      states[id] = State(documents: known.removeValue(forKey: id) ?? [:])
    case .remove(let id, let cause):
      let cause = cause.map { Status($0, database: service.id) }
      events.append("REMOVE \(id)" + (cause.map { " \($0.code)" } ?? ""))
      if let cause { causes[id] = cause }
      states[id] = nil
    case .reset(let id):
      events.append("RESET \(id)")
      states[id] = State()
    case .current(let id, _, _):
      events.append("CURRENT \(id)")
      states[id]?.isCurrent = true
    case .noChange(let token, let readTime):
      events.append("SNAPSHOT")
      if let last = snapshot?.version, last > readTime.microseconds { throw Difference("a snapshot in the past") }
      snapshot = (readTime.microseconds, token)
      atSnapshot = states
      try onSnapshot(self)
    case .document(let key, let change, let id, _):
      if case .modified(.shared(let document)) = change { fields["\(key)"] = document.fields }
      if case .removed(.shared(let document)?) = change { fields["\(key)"] = document.fields }
      take(key, change, id)
    }
  }

  private func take(_ key: DocumentKey, _ change: DocumentChange<DocumentState>, _ id: Int32) {
    switch change {
    case .modified(let document):
      events.append("\(key) +\(id)")
      states[id]?.documents[key.path] = document.updateVersion
      return
    case .removed(_?): events.append("\(key) -\(id)")
    case .deleted: events.append("DELETE \(key) \(id)")
    case .removed(nil): events.append("LEAVE \(key) \(id)")
    }
    states[id]?.documents[key.path] = nil
  }
}

extension SimulatedService {
  /// Waits until the watch hubs have processed all requests.
  func settleWatchHubs() { for hub in service.hubs.all { hub.settle() } }

  /// Trims expired history and log entries.
  func trim() throws {
    for _ in 0..<3 {
      databases.maintain()
      // An empty commit completes after the trimming queued before it.
      try commit([])
    }
  }
}
