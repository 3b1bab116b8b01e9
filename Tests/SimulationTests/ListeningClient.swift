import DatabaseService
import DocumentModel
import DocumentStore
import Synchronization
import TestSupport
import Watch

/// A client of a Listen stream that believes what it is told, as the SDKs do, and notes it in short.
final class ListeningClient {
  /// What it knows of a target.
  struct State: Equatable {
    /// The update time of each document.
    var documents: [ResourcePath: Int64] = [:]
    var isCurrent = false
  }

  /// What it was told, one event a line.
  private(set) var told: [String] = []
  private(set) var states: [Int32: State] = [:]
  /// The fields of what was told as a change.
  private(set) var fields: [String: EncodedFields] = [:]
  /// The version of the last snapshot, and the token to resume with.
  private(set) var snapshot: (version: Int64, token: [UInt8])?
  /// What it knew at the last snapshot.
  private(set) var atSnapshot: [Int32: State]?
  private(set) var causes: [Int32: Status] = [:]
  /// Called with every snapshot.
  var onSnapshot: (ListeningClient) throws -> Void = { _ in }
  let stream: ListenStream
  let wakes = Wakes()
  private let service: SimulatedService
  /// What it has of targets from before, until they are added.
  private var known: [Int32: [ResourcePath: Int64]] = [:]

  final class Wakes: Sendable {
    private let counted = Atomic(0)
    func count() { counted.add(1, ordering: .sequentiallyConsistent) }
    /// Whether there were any since the last call.
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

  /// Begins a target with what it knows from before, when it is added.
  func expect(_ documents: [ResourcePath: Int64], of id: Int32) { known[id] = documents }

  func remove(_ id: Int32) throws { try stream.receive(.remove(id)) }

  /// Takes everything there is until neither the stream nor the feed has more.
  func settle() throws {
    repeat {
      try pull()
      service.settleFeeds()
    } while wakes.take()
  }

  /// Takes what there is now, `eventsMax` events at most.
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

  /// What was told since the last call.
  func takeTold() -> [String] {
    defer { told = [] }
    return told
  }

  private func take(_ event: ListenEvent) throws {
    switch event {
    case .targetAdded(let id):
      told.append("ADD \(id)")
      states[id] = State(documents: known.removeValue(forKey: id) ?? [:])
    case .targetRemoved(let id, let cause):
      told.append("REMOVE \(id)" + (cause.map { " \($0.code)" } ?? ""))
      if let cause { causes[id] = cause }
      states[id] = nil
    case .targetReset(let id):
      told.append("RESET \(id)")
      states[id] = State()
    case .targetCurrent(let id, _, _):
      told.append("CURRENT \(id)")
      states[id]?.isCurrent = true
    case .snapshot(let token, let readTime):
      told.append("SNAPSHOT")
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
    told.append("\(key) \(text(targets, "+"))\(text(removed, "-"))")
    for id in targets { states[id]?.documents[key.path] = version }
    for id in removed { states[id]?.documents[key.path] = nil }
  }

  private func leave(_ verb: String, _ key: DocumentKey, _ targets: [Int32]) {
    told.append("\(verb) \(key) \(targets.map(String.init).joined(separator: ","))")
    for id in targets { states[id]?.documents[key.path] = nil }
  }
}

extension SimulatedService {
  /// Waits until the feeds did everything they were asked for.
  func settleFeeds() { for feed in service.feeds.all { feed.settle() } }

  /// Removes what is past its time.
  func trim() throws {
    for _ in 0..<3 {
      service.databases.maintain()
      // What waits behind the trimming comes after it.
      try commit([])
    }
  }
}
