import KeyValue
import LMDBEngine
import LogEngine
import Synchronization
import TestSupport

/// The data file of a store on a ``SimulatedDisk``: a dictionary whose transactions are durable when they return.
final class SimulatedBase: MarkedStore {
  let path = "data"
  let disk: SimulatedDisk

  init(_ disk: SimulatedDisk) { self.disk = disk }

  func snapshot() throws(StorageError) -> any KeyValueSnapshot {
    let entries = try disk.call { (state) throws(StorageError) in
      guard !state.isOff else { throw SimulatedDisk.powerLoss }
      return state.entries
    }
    return SimulatedTransaction(entries)
  }

  func logMark() throws(StorageError) -> LogMark? {
    try disk.call { (state) throws(StorageError) in
      guard !state.isOff else { throw SimulatedDisk.powerLoss }
      return state.mark
    }
  }

  func write(_ body: (any KeyValueTransaction) throws(StorageError) -> Void) throws(StorageError) {
    try writeMarked { (transaction) throws(StorageError) in
      try body(transaction)
      return nil
    }
  }

  func writeMarked(_ body: (any KeyValueTransaction) throws(StorageError) -> LogMark?) throws(StorageError) {
    let transaction = SimulatedTransaction(disk.state.withLock { $0.entries })
    let mark = try body(transaction)
    let entries = transaction.entries
    try disk.call { (state) throws(StorageError) in
      let fault = try SimulatedDisk.begin(&state, mark == nil ? "commit" : "commit with mark")
      if let failure = SimulatedDisk.failure(fault, "mdb_txn_commit") { throw failure }
      let before = (state.entries, state.mark)
      let isFlush = mark == nil || state.mark?.isOpen == mark?.isOpen
      state.entries = entries
      if let mark, !state.dropsMarks || !isFlush { state.mark = mark }
      state.previous = isFlush ? before : (state.entries, state.mark)
      try SimulatedDisk.finish(&state)
    }
  }

  func copy(toFile path: String) throws(StorageError) { throw .rolledBack }
  func statistics() throws(StorageError) -> KeyValueStatistics { throw .rolledBack }
}

/// A state of a ``SimulatedBase``, as snapshot and as transaction. Its cursors are for tables with few entries.
final class SimulatedTransaction: KeyValueTransaction {
  private(set) var entries: [Bytes: Bytes]
  /// The memory of values and keys that were returned.
  private var returned: [UnsafeMutableRawBufferPointer] = []

  init(_ entries: [Bytes: Bytes]) { self.entries = entries }

  deinit { for memory in returned { memory.deallocate() } }

  func lend(_ bytes: Bytes) -> UnsafeRawBufferPointer {
    let memory = UnsafeMutableRawBufferPointer.allocate(byteCount: max(1, bytes.count), alignment: 1)
    memory.copyBytes(from: bytes)
    returned.append(memory)
    return UnsafeRawBufferPointer(rebasing: memory[..<bytes.count])
  }

  func value(for key: UnsafeRawBufferPointer) -> UnsafeRawBufferPointer? { entries[Bytes(key)].map(lend) }
  func makeCursor() -> any KeyValueCursor { SimulatedCursor(self) }
  func end() {}
  func put(_ key: UnsafeRawBufferPointer, _ value: UnsafeRawBufferPointer) { entries[Bytes(key)] = Bytes(value) }
  func remove(_ key: UnsafeRawBufferPointer) -> Bool { entries.removeValue(forKey: Bytes(key)) != nil }

  func removeRange(from lower: UnsafeRawBufferPointer, to upper: UnsafeRawBufferPointer) -> Int {
    let removed = entries.keys.filter {
      !$0.lexicographicallyPrecedes(lower) && $0.lexicographicallyPrecedes(upper)
    }
    for key in removed { entries[key] = nil }
    return removed.count
  }
}

private final class SimulatedCursor: KeyValueCursor {
  private let state: SimulatedTransaction
  private var keys: [Bytes] = []
  private var position: Int?
  private(set) var key = UnsafeRawBufferPointer(start: nil, count: 0)
  private(set) var value = UnsafeRawBufferPointer(start: nil, count: 0)

  init(_ state: SimulatedTransaction) { self.state = state }

  private func settle(_ index: Int) -> Bool {
    guard keys.indices.contains(index) else {
      position = nil
      return false
    }
    position = index
    key = state.lend(keys[index])
    value = state.lend(state.entries[keys[index]] ?? [])
    return true
  }

  private func first(atOrAfter key: UnsafeRawBufferPointer) -> Int {
    keys = state.entries.keys.sorted { $0.lexicographicallyPrecedes($1) }
    return keys.firstIndex { !$0.lexicographicallyPrecedes(key) } ?? keys.count
  }

  func seek(atOrAfter key: UnsafeRawBufferPointer) -> Bool { settle(first(atOrAfter: key)) }
  func seek(before key: UnsafeRawBufferPointer) -> Bool { settle(first(atOrAfter: key) - 1) }
  func next() -> Bool { position.map { settle($0 + 1) } ?? false }
  func previous() -> Bool { position.map { settle($0 - 1) } ?? false }
}
