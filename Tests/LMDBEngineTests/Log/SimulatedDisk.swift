import KeyValue
import LMDBEngine
import LogEngine
import Synchronization
import TestSupport

/// A disk that loses power. It simulates the folder of a log and the data file of a store.
///
/// Content that was written but not synced survives a crash sector by sector, at random, and changes of names one by one.
/// The data file commits whole transactions, like LMDB. At a chosen call the power fails, or the call returns an error.
///
/// The outcome depends on the seed only: code that takes random numbers visits files, names and sectors in order.
final class SimulatedDisk: Sendable {
  /// The outcome of one call.
  enum Fault: Equatable, Sendable {
    /// The power fails before the call has any effect.
    case powerLoss
    /// The power fails after the call, which did everything but did not return.
    case lateLoss
    /// The call fails. A failed write has written a random part of its sectors.
    case error(Int32)
  }

  struct PowerLoss: Error {}

  static let sectorBytes = 512

  struct File: Sendable {
    /// The content that reads return.
    var content: [UInt8]
    /// The content of the disk.
    var durable: [UInt8]
    /// The sectors that differ, or may.
    var dirty: Set<Int> = []
  }

  struct State {
    var files: [Int: File] = [:]
    var nextFile = 0
    var names: [String: Int] = [:]
    var durableNames: [String: Int] = [:]
    /// The changes of names that are not synced: the name, and the file or `nil` for a removal.
    var nameChanges: [[(String, Int?)]] = []
    var entries: [[UInt8]: [UInt8]] = [:]
    var mark: LogMark?
    /// The calls so far.
    var calls = 0
    var fault: (call: Int, Fault)?
    var isOff = false
    var random: SplitMix
    /// The names of the calls, to describe a failure.
    var history: [String] = []
    /// Whether calls that only read count, so that a fault can apply to them.
    var countsReads = false
    /// For mutations of the code under test: syncs of content do nothing.
    var ignoresSync = false
    /// For mutations: a crash takes back the last commit of the data file, if it belongs to a flush.
    var losesLastCommit = false
    /// For mutations: the data file keeps the position at which the log was opened.
    var dropsMarks = false
    /// The data file that a loss of its last commit leaves.
    var previous: (entries: [[UInt8]: [UInt8]], mark: LogMark?) = ([:], nil)
  }

  let state: Mutex<State>

  init(seed: UInt64) { state = Mutex(State(random: SplitMix(seed: seed))) }

  static let powerLoss = StorageError.system(operation: "power", path: "", code: 0)

  /// Counts a call. Returns the fault that applies to it, unless the power fails before it.
  static func begin(_ state: inout State, _ name: String) throws(StorageError) -> Fault? {
    guard !state.isOff else { throw powerLoss }
    state.calls += 1
    state.history.append(name)
    guard let (call, fault) = state.fault, call == state.calls else { return nil }
    if fault == .powerLoss {
      state.isOff = true
      throw powerLoss
    }
    if fault == .lateLoss { state.isOff = true }
    return fault
  }

  /// Begins a call that only reads. Counts it if ``State/countsReads``.
  static func beginReading(_ state: inout State, _ name: String) throws(StorageError) {
    guard !state.isOff else { throw powerLoss }
    guard state.countsReads else { return }
    if let failure = failure(try begin(&state, name), name) { throw failure }
    try finish(&state)
  }

  /// Ends a call that had its effect.
  static func finish(_ state: inout State) throws(StorageError) {
    if state.isOff { throw powerLoss }
  }

  static func failure(_ fault: Fault?, _ operation: String) -> StorageError? {
    guard case .error(let code) = fault else { return nil }
    return code == 28 ? .diskFull(path: "log") : .system(operation: operation, path: "log", code: code)
  }

  /// Runs a call under the lock, with typed errors.
  func call<Result: Sendable>(
    _ body: (inout State) throws(StorageError) -> Result
  ) throws(StorageError) -> Result {
    var failure: StorageError?
    let result = state.withLock { state -> Result? in
      do throws(StorageError) { return try body(&state) } catch { failure = error }
      return nil
    }
    if let failure { throw failure }
    return result!
  }

  /// Turns the power on again. Unsynced changes are lost in part.
  func restart() {
    state.withLock { state in
      state.isOff = false
      state.fault = nil
      state.calls = 0
      state.history = []
      // Each change of names either happened or not, in any combination.
      for change in state.nameChanges where state.random.next() & 1 == 0 {
        for (name, file) in change { state.durableNames[name] = file }
      }
      state.nameChanges = []
      state.names = state.durableNames
      if state.losesLastCommit { (state.entries, state.mark) = state.previous }
      for (number, var file) in state.files.sorted(by: { $0.key < $1.key }) {
        for sector in file.dirty.sorted() where state.random.next() & 1 == 0 {
          file.durable.withUnsafeMutableBytes { durable in
            let start = sector * Self.sectorBytes
            for index in start..<min(durable.count, start + Self.sectorBytes) { durable[index] = file.content[index] }
          }
        }
        file.content = file.durable
        file.dirty = []
        state.files[number] = file
      }
    }
  }

  /// Sets the fault of a later call: the first is 1.
  func plan(_ fault: Fault, atCall call: Int) { state.withLock { $0.fault = ($0.calls + call, fault) } }

  var calls: Int { state.withLock { $0.calls } }
  var isOff: Bool { state.withLock { $0.isOff } }
  /// The last calls, for messages.
  var lastCalls: String { state.withLock { $0.history.suffix(8).joined(separator: ", ") } }
}

/// The log's folder on a ``SimulatedDisk``.
final class SimulatedFolder: LogFolder {
  let path = "log"
  let disk: SimulatedDisk

  init(_ disk: SimulatedDisk) { self.disk = disk }

  func names() throws(StorageError) -> [String] {
    try disk.call { (state) throws(StorageError) in
      try SimulatedDisk.beginReading(&state, "opendir")
      return state.names.keys.sorted()
    }
  }

  func create(_ name: String, bytes: Int) throws(StorageError) -> any LogFile {
    try disk.call { (state) throws(StorageError) in
      let fault = try SimulatedDisk.begin(&state, "create \(name)")
      guard state.names[name] == nil else { throw .system(operation: "open", path: name, code: 17) }
      let number = state.nextFile
      state.nextFile += 1
      let zeros = [UInt8](repeating: 0, count: bytes)
      state.files[number] = SimulatedDisk.File(content: zeros, durable: zeros)
      state.names[name] = number
      state.nameChanges.append([(name, number)])
      if let failure = SimulatedDisk.failure(fault, "create") { throw failure }
      try SimulatedDisk.finish(&state)
      return SimulatedFile(disk, number, bytes)
    }
  }

  func open(_ name: String) throws(StorageError) -> any LogFile {
    try disk.call { (state) throws(StorageError) in
      try SimulatedDisk.beginReading(&state, "open")
      guard let number = state.names[name] else { throw .system(operation: "open", path: name, code: 2) }
      return SimulatedFile(disk, number, state.files[number]?.content.count ?? 0)
    }
  }

  func rename(_ name: String, to other: String) throws(StorageError) {
    try disk.call { (state) throws(StorageError) in
      let fault = try SimulatedDisk.begin(&state, "rename \(name) to \(other)")
      if let failure = SimulatedDisk.failure(fault, "rename") { throw failure }
      guard let number = state.names.removeValue(forKey: name) else {
        throw .system(operation: "rename", path: name, code: 2)
      }
      state.names[other] = number
      state.nameChanges.append([(name, nil), (other, number)])
      try SimulatedDisk.finish(&state)
    }
  }

  func remove(_ name: String) throws(StorageError) {
    try disk.call { (state) throws(StorageError) in
      let fault = try SimulatedDisk.begin(&state, "remove \(name)")
      if let failure = SimulatedDisk.failure(fault, "unlink") { throw failure }
      guard state.names.removeValue(forKey: name) != nil else {
        throw .system(operation: "unlink", path: name, code: 2)
      }
      state.nameChanges.append([(name, nil)])
      try SimulatedDisk.finish(&state)
    }
  }

  func syncNames() throws(StorageError) {
    try disk.call { (state) throws(StorageError) in
      let fault = try SimulatedDisk.begin(&state, "sync names")
      if let failure = SimulatedDisk.failure(fault, "fsync") { throw failure }
      state.durableNames = state.names
      state.nameChanges = []
      try SimulatedDisk.finish(&state)
    }
  }
}

/// A file on a ``SimulatedDisk``.
final class SimulatedFile: LogFile {
  let bytes: Int
  private let disk: SimulatedDisk
  private let number: Int

  init(_ disk: SimulatedDisk, _ number: Int, _ bytes: Int) {
    self.disk = disk
    self.number = number
    self.bytes = bytes
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(StorageError) -> Int {
    let content = try disk.call { (state) throws(StorageError) in
      try SimulatedDisk.beginReading(&state, "pread")
      return state.files[number]?.content ?? []
    }
    let count = max(0, min(buffer.count, content.count - offset))
    for index in 0..<count { buffer[index] = content[offset + index] }
    return count
  }

  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(StorageError) {
    let written = [UInt8](first) + [UInt8](second)
    try disk.call { (state) throws(StorageError) in
      let fault = try SimulatedDisk.begin(&state, "write \(written.count) bytes at \(offset) of \(number)")
      guard var file = state.files[number], offset + written.count <= file.content.count else {
        throw .system(operation: "write", path: "", code: 22)
      }
      let failure = SimulatedDisk.failure(fault, "pwrite")
      for sector in offset / SimulatedDisk.sectorBytes...(offset + written.count - 1) / SimulatedDisk.sectorBytes {
        if failure != nil, state.random.next() & 1 == 0 { continue }
        let start = max(offset, sector * SimulatedDisk.sectorBytes)
        let end = min(offset + written.count, (sector + 1) * SimulatedDisk.sectorBytes)
        file.content.replaceSubrange(start..<end, with: written[start - offset..<end - offset])
        file.dirty.insert(sector)
      }
      state.files[number] = file
      if let failure { throw failure }
      try SimulatedDisk.finish(&state)
    }
  }

  func sync() throws(StorageError) {
    try disk.call { (state) throws(StorageError) in
      let fault = try SimulatedDisk.begin(&state, "sync \(number)")
      if let failure = SimulatedDisk.failure(fault, "fdatasync") {
        // As in Linux: the pages count as clean afterwards, whether they are on the disk or not.
        for sector in (state.files[number]?.dirty ?? []).sorted() where state.random.next() & 1 == 0 {
          copy(sector, &state)
        }
        state.files[number]?.dirty = []
        throw failure
      }
      if !state.ignoresSync {
        for sector in state.files[number]?.dirty ?? [] { copy(sector, &state) }
        state.files[number]?.dirty = []
      }
      try SimulatedDisk.finish(&state)
    }
  }

  private func copy(_ sector: Int, _ state: inout SimulatedDisk.State) {
    guard var file = state.files[number] else { return }
    let start = sector * SimulatedDisk.sectorBytes
    for index in start..<min(file.content.count, start + SimulatedDisk.sectorBytes) {
      file.durable[index] = file.content[index]
    }
    state.files[number] = file
  }
}
