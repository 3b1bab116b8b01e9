import ClusterTesting
import LogEngine
import SharedLog
import Synchronization
import TestSupport

/// The snapshots of a cluster in memory, beside the tables of ``MemoryTables``.
final class MemorySnapshots: SnapshotTables {
  struct State: Sendable {
    var heads: [(head: SnapshotHead, manifest: [UInt8])] = []
    var parts: [UInt64: [Int: [UInt8]]] = [:]
    var claim: UInt64?
    /// Whether the claim was not used for a minute.
    var isClaimOld = false
    /// Calls that fail before they do something, or whose answers are lost: one in so many.
    var lossIn: Int?
    var random = SplitMix(seed: 1)
    /// The parts that can still be added before each call fails.
    var partsLeft: Int?
    /// The losses that were reported, each once.
    var losses: [LogLoss] = []
    var isCut = false
  }

  let tables: MemoryTables
  let state = Mutex(State())

  init(_ tables: MemoryTables) { self.tables = tables }

  private func call<R>(_ body: (inout State) -> R) throws(SnapshotFailure) -> R {
    let result = state.withLock { state -> Result<R, SnapshotFailure> in
      let isLost = state.lossIn.map { state.random.chance(oneIn: $0) } ?? false
      if state.isCut || isLost && state.random.chance(oneIn: 2) { return .failure(SnapshotFailure("lost")) }
      let value = body(&state)
      return isLost ? .failure(SnapshotFailure("answer lost")) : .success(value)
    }
    return try result.get()
  }

  func report(_ loss: LogLoss) throws(SnapshotFailure) {
    try call { state in if state.losses.last != loss { state.losses.append(loss) } }
  }

  func snapshots() throws(SnapshotFailure) -> [SnapshotHead] {
    try call { $0.heads.map(\.head).sorted { $0.position.sequence > $1.position.sequence } }
  }

  func manifest(of id: UInt64) throws(SnapshotFailure) -> [UInt8]? {
    try call { state in state.heads.first { $0.head.id == id }?.manifest }
  }

  func part(_ number: Int, of id: UInt64) throws(SnapshotFailure) -> [UInt8]? { try call { $0.parts[id]?[number] } }

  func claim(_ id: UInt64) throws(SnapshotFailure) -> Bool {
    try call { state in
      guard state.claim == nil || state.claim == id || state.isClaimOld else { return false }
      (state.claim, state.isClaimOld) = (id, false)
      return true
    }
  }

  func add(_ part: [UInt8], number: Int, to id: UInt64) throws(SnapshotFailure) -> Bool {
    if state.withLock({ state in
      defer { state.partsLeft? -= 1 }
      return state.partsLeft.map { $0 <= 0 } ?? false
    }) {
      throw SnapshotFailure("the tables are gone")
    }
    return try call { state in
      guard state.claim == id else { return false }
      state.parts[id, default: [:]][number] = part
      return true
    }
  }

  func finish(_ head: SnapshotHead, manifest: [UInt8], marks: [LogPosition]) throws(SnapshotFailure) -> Bool {
    let isInLog = tables.state.withLock { tables in marks.allSatisfy { tables.entry($0.sequence)?.position == $0 } }
    return try call { state in
      guard state.claim == head.id else { return state.heads.contains { $0.head.id == head.id } }
      let parts = state.parts[head.id] ?? [:]
      guard isInLog, parts.count == head.parts, parts.values.reduce(0, { $0 + Int64($1.count) }) == head.bytes else {
        return false
      }
      state.heads.append((head, manifest))
      state.claim = nil
      return true
    }
  }

  func release(_ id: UInt64) throws(SnapshotFailure) { try call { if $0.claim == id { $0.claim = nil } } }

  func hasEntry(at position: LogPosition) throws(SnapshotFailure) -> Bool {
    let found = tables.state.withLock { $0.entry(position.sequence)?.position }
    return try call { _ in found == position }
  }

  func logBytes(after sequence: UInt64) throws(SnapshotFailure) -> Int64 {
    let bytes = tables.entries.reduce(0) { $1.position.sequence > sequence ? $0 + Int64($1.body.count) : $0 }
    return try call { _ in bytes }
  }

  func remove(_ id: UInt64) throws(SnapshotFailure) -> Bool {
    try call { state in
      state.heads.removeAll { $0.head.id == id }
      return Self.removeSome(of: id, &state)
    }
  }

  func removeLeftovers() throws(SnapshotFailure) -> Bool {
    try call { state in
      for id in state.parts.keys where !state.heads.contains(where: { $0.head.id == id }) {
        if state.claim == id {
          guard state.isClaimOld else { continue }
          state.claim = nil
        }
        return Self.removeSome(of: id, &state)
      }
      return false
    }
  }

  private static func removeSome(of id: UInt64, _ state: inout State) -> Bool {
    guard let parts = state.parts[id], let first = parts.keys.min() else { return false }
    state.parts[id]?[first] = nil
    if parts.count == 1 { state.parts[id] = nil }
    return true
  }

  func truncate(before sequence: UInt64, by owner: NodeSession, epoch: UInt64) throws(SnapshotFailure) -> Bool {
    let isOwner = tables.state.withLock { tables -> Bool in
      guard tables.owner == owner, tables.epoch == epoch else { return false }
      tables.truncate(before: sequence)
      return true
    }
    guard isOwner else { throw SnapshotFailure("not the owner") }
    return false
  }
}
