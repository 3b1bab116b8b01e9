import Dispatch
import Glibc
import Synchronization

/// The memory and the temporary files that queries may use, with a line of queries that wait for memory.
///
/// A query takes memory in parts and gives it back, so that the sum over all queries has a limit. A query that waits
/// holds no thread: it is woken. Cost: a short lock for each part. Queries that need no scratch memory never call this.
package final class ScratchBudget: Sendable {
  /// The limits; see ``ScratchLimits``.
  package struct Limits: Sendable {
    package var memoryBytesMax = ScratchLimits.memoryBytesMax
    package var queryMemoryBytesMax = ScratchLimits.queryMemoryBytesMax
    package var chunkBytes = ScratchLimits.chunkBytes
    package var smallBytesMax = ScratchLimits.smallBytesMax
    package var fileBytesMax = ScratchLimits.fileBytesMax
    package var queryFileBytesMax = ScratchLimits.queryFileBytesMax
    package var waitingMax = ScratchLimits.waitingMax
    package var waitSecondsMax = ScratchLimits.waitSecondsMax
    package var idleSecondsMax = ScratchLimits.idleSecondsMax
    package var holdSecondsMax = ScratchLimits.holdSecondsMax
    package var pipelineBytesMax = ScratchLimits.pipelineBytesMax

    /// The limits of the process.
    package init() {}
  }

  /// The urgency of memory.
  enum Need {
    /// At most ``Limits/smallBytesMax``. If all memory is in use, the query waits.
    case small
    /// The query cannot continue without it. It waits, first come, first served.
    case required
    /// The query can continue without it. It gets none while others wait.
    case optional
  }

  private struct Waiter {
    let scratch: Scratch
    let bytes: Int
    let need: Need
    let deadline: Int64
    var wake: (@Sendable () -> Void)?
  }

  private enum Outcome {
    case granted(Int)
    case expired
  }

  private struct State {
    var memoryBytes = 0
    var fileBytes = 0
    var line: [Waiter] = []
    /// The outcomes that waiting queries have not seen yet.
    var outcomes: [ObjectIdentifier: Outcome] = [:]
    var holders: [ObjectIdentifier: Scratch] = [:]
    var isTimerSet = false
  }

  /// The budget of this process.
  package static let process = ScratchBudget(Limits())

  package let limits: Limits
  /// The memory that pipelines hold between two results. It is apart from that of sorts, and nothing waits for it.
  package let pipelineMemory: MemoryShare
  private let clock: @Sendable () -> Int64
  private let hasTimer: Bool
  private let state = Mutex(State())
  private let waiting = Atomic(0)
  private static let tickMilliseconds = 100

  /// Creates a budget. `clock` returns milliseconds that only increase. Without a timer, the caller must call
  /// ``tick()`` itself.
  package init(
    _ limits: Limits, clock: @escaping @Sendable () -> Int64 = ScratchBudget.milliseconds, hasTimer: Bool = true
  ) {
    self.limits = limits
    pipelineMemory = MemoryShare(bytesMax: limits.pipelineBytesMax)
    self.clock = clock
    self.hasTimer = hasTimer
  }

  /// The milliseconds since the system started.
  package static let milliseconds: @Sendable () -> Int64 = {
    var time = timespec()
    clock_gettime(CLOCK_MONOTONIC_COARSE, &time)
    return Int64(time.tv_sec) * 1000 + Int64(time.tv_nsec) / 1_000_000
  }

  /// The memory and temporary files in use in bytes, and the number of queries that wait for memory.
  package var use: (memoryBytes: Int, fileBytes: Int, waiting: Int) {
    state.withLock { ($0.memoryBytes, $0.fileBytes, $0.line.count) }
  }

  /// Whether queries wait for memory.
  var hasWaiting: Bool { waiting.load(ordering: .relaxed) > 0 }

  var now: Int64 { clock() }

  // MARK: Memory

  /// Takes memory. Returns `false` if too little is left. Then the query waits, unless `need` is optional. While it
  /// waits, call this again with the same arguments.
  /// - Throws: ``ScratchError`` if too many queries wait, or if this one has waited too long.
  func take(_ bytes: Int, _ need: Need, for scratch: Scratch) throws(ScratchError) -> Bool {
    let id = ObjectIdentifier(scratch)
    let result = state.withLock { state -> Result<Bool, ScratchError> in
      switch state.outcomes.removeValue(forKey: id) {
      case .granted: return .success(true)
      case .expired: return .failure(.waitedTooLong(seconds: limits.waitSecondsMax))
      case nil: break
      }
      if state.line.contains(where: { $0.scratch === scratch }) { return .success(false) }
      state.holders[id] = scratch
      if state.memoryBytes + bytes <= memoryMax(need), need == .small || state.line.isEmpty {
        state.memoryBytes += bytes
        return .success(true)
      }
      guard need != .optional else { return .success(false) }
      guard state.line.count < limits.waitingMax else { return .failure(.tooManyWaiting(state.line.count)) }
      state.line.append(
        Waiter(scratch: scratch, bytes: bytes, need: need, deadline: now + Int64(limits.waitSecondsMax) * 1000))
      waiting.store(state.line.count, ordering: .relaxed)
      setTimer(&state)
      return .success(false)
    }
    return try result.get()
  }

  /// The memory that work may fill. Small sorts may use all of it, so that they seldom wait for large ones.
  private func memoryMax(_ need: Need) -> Int {
    need == .small ? limits.memoryBytesMax : limits.memoryBytesMax - limits.memoryBytesMax / 8
  }

  /// Gives memory back.
  func give(_ bytes: Int) {
    let wakes = state.withLock { state in
      state.memoryBytes -= bytes
      return serve(&state)
    }
    for wake in wakes { wake() }
  }

  /// Calls `wake` once, on any thread, when a query no longer waits. Returns `false` if it does not wait.
  func wait(_ scratch: Scratch, _ wake: @escaping @Sendable () -> Void) -> Bool {
    guard hasWaiting else { return false }
    // Releasing the former closure may release its query, which must not happen under the lock.
    var former: (@Sendable () -> Void)?
    let isWaiting = state.withLock { state in
      guard let index = state.line.firstIndex(where: { $0.scratch === scratch }) else { return false }
      former = state.line[index].wake
      state.line[index].wake = wake
      return true
    }
    withExtendedLifetime(former) {}
    return isWaiting
  }

  /// Forgets a query and takes back what it has.
  func end(_ scratch: Scratch, memoryBytes: Int, fileBytes: Int) {
    let id = ObjectIdentifier(scratch)
    // Releasing a waiter's closure may release its query, which must not happen under the lock.
    let (wakes, forgotten) = state.withLock { state -> ([@Sendable () -> Void], [Waiter]) in
      state.memoryBytes -= memoryBytes
      state.fileBytes -= fileBytes
      state.holders[id] = nil
      if case .granted(let bytes) = state.outcomes.removeValue(forKey: id) { state.memoryBytes -= bytes }
      let forgotten = state.line.filter { $0.scratch === scratch }
      state.line.removeAll { $0.scratch === scratch }
      return (serve(&state), forgotten)
    }
    withExtendedLifetime(forgotten) {}
    for wake in wakes { wake() }
  }

  /// Grants memory to the queries in the line, in order. Returns the closures that wake them.
  private func serve(_ state: inout State) -> [@Sendable () -> Void] {
    var wakes: [@Sendable () -> Void] = []
    var isBlocked = false
    var rest: [Waiter] = []
    for waiter in state.line {
      if state.memoryBytes + waiter.bytes <= memoryMax(waiter.need), waiter.need == .small || !isBlocked {
        state.memoryBytes += waiter.bytes
        state.outcomes[ObjectIdentifier(waiter.scratch)] = .granted(waiter.bytes)
        if let wake = waiter.wake { wakes.append(wake) }
      } else {
        if waiter.need == .required { isBlocked = true }
        rest.append(waiter)
      }
    }
    state.line = rest
    waiting.store(rest.count, ordering: .relaxed)
    return wakes
  }

  // MARK: Files

  /// Takes bytes of temporary files for a query that has `held` of them.
  /// - Throws: ``ScratchError`` if the query or all queries would have too many.
  func takeFile(_ bytes: Int, held: Int) throws(ScratchError) {
    guard held + bytes <= limits.queryFileBytesMax else { throw .queryFile(bytesMax: limits.queryFileBytesMax) }
    let isTaken = state.withLock { state in
      guard state.fileBytes + bytes <= limits.fileBytesMax else { return false }
      state.fileBytes += bytes
      return true
    }
    guard isTaken else { throw .allFiles(bytesMax: limits.fileBytesMax) }
  }

  func giveFile(_ bytes: Int) { state.withLock { $0.fileBytes -= bytes } }

  // MARK: Time

  private func setTimer(_ state: inout State) {
    guard hasTimer, !state.isTimerSet else { return }
    state.isTimerSet = true
    DispatchQueue.global(qos: .utility).asyncAfter(deadline: .now() + .milliseconds(Self.tickMilliseconds)) {
      self.tick()
    }
  }

  /// Ends the waits that took too long, and takes memory from queries that keep others waiting: first from those whose
  /// clients do not read, then from the oldest.
  package func tick() {
    let now = now
    let (wakes, victims) = state.withLock { state -> ([@Sendable () -> Void], [Scratch]) in
      var wakes: [@Sendable () -> Void] = []
      for waiter in state.line where waiter.deadline <= now {
        state.outcomes[ObjectIdentifier(waiter.scratch)] = .expired
        if let wake = waiter.wake { wakes.append(wake) }
      }
      state.line.removeAll { $0.deadline <= now }
      waiting.store(state.line.count, ordering: .relaxed)
      state.isTimerSet = false
      guard !state.line.isEmpty else { return (wakes, []) }
      setTimer(&state)
      return (wakes, chooseVictims(state, now))
    }
    for wake in wakes { wake() }
    for victim in victims { victim.revoke() }
  }

  /// The queries that must give up their memory, as many as those in the line need.
  private func chooseVictims(_ state: State, _ now: Int64) -> [Scratch] {
    let line = Set(state.line.map { ObjectIdentifier($0.scratch) })
    var candidates: [(scratch: Scratch, bytes: Int, rank: Int64)] = []
    for (id, scratch) in state.holders where !line.contains(id) && state.outcomes[id] == nil {
      let holding = scratch.holding
      let idle = holding.idleSince.map { now - $0 } ?? 0
      let age = now - scratch.begun
      if idle >= Int64(limits.idleSecondsMax) * 1000 {
        candidates.append((scratch, holding.bytes, 1 << 40 + idle))
      } else if age >= Int64(limits.holdSecondsMax) * 1000 {
        candidates.append((scratch, holding.bytes, age))
      }
    }
    candidates.sort { $0.rank > $1.rank }
    var missing = state.line.reduce(0) { $0 + $1.bytes }
    return candidates.prefix { candidate in
      defer { missing -= candidate.bytes }
      return missing > 0
    }.map(\.scratch)
  }
}

/// A budget, and the directory for the temporary files of the queries that use it.
package struct ScratchSpace: Sendable {
  package let budget: ScratchBudget
  /// The directory, or `nil` for that of the environment variable TMPDIR, or else /tmp.
  package let directory: String?

  /// The budget of this process, with files in the system's temporary directory.
  package static let process = ScratchSpace()

  package init(_ budget: ScratchBudget = .process, directory: String? = nil) {
    self.budget = budget
    self.directory = directory
  }
}
