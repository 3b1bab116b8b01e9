import Basics
import Hosting
import Synchronization

/// The pages that are known, for a short time, and the requests that wait for one.
///
/// Several requests for a page that is not known cause one look-up. The bytes of the known pages are counted: if they
/// are too many, pages are dropped. Any thread may use the table.
final class PageTable: Sendable {
  typealias Waiter = @Sendable (Result<HostedPage, SiteFailure>) -> Void

  /// The part of a request in a look-up.
  enum Joined {
    /// It is the first one, and looks for the page.
    case first
    /// It gets the result of another request.
    case waits
    /// Too many requests wait already.
    case refused
  }

  private struct Slot {
    let key: PageKey
    var page: HostedPage?
    var knownUntil = 0
    /// The bytes of the page and the key.
    var heldBytes = 0
    /// The requests that wait, or `nil` if no look-up is under way.
    var waiters: [Waiter]?
  }

  private struct State {
    var slots: [UInt64: Slot] = [:]
    /// The bytes of the pages that are known.
    var heldBytes = 0
    /// The requests with a look-up under way, the first one of each included.
    var waiting = 0
    /// The time at which expired pages are dropped next.
    var sweepTime = 0

    /// Puts a slot in the place of another one, and counts both.
    mutating func put(_ slot: Slot?, at hash: UInt64) {
      if let old = slots[hash] {
        heldBytes -= old.heldBytes
        if let waiters = old.waiters { waiting -= waiters.count + 1 }
      }
      if let slot {
        heldBytes += slot.heldBytes
        if let waiters = slot.waiters { waiting += waiters.count + 1 }
      }
      slots[hash] = slot
    }

    /// Drops the known pages that `condition` selects. Look-ups under way stay.
    mutating func drop(where condition: (Slot) -> Bool) {
      slots = slots.filter { $0.value.waiters != nil || !condition($0.value) }
      heldBytes = slots.values.reduce(0) { $0 + $1.heldBytes }
    }

    /// Drops the pages that have expired, and all pages if there is still no room for one of `bytes` bytes.
    mutating func makeRoom(for bytes: Int, bytesMax: Int, now: Int) {
      let isFull = { (state: State) in
        state.slots.count >= HostingLimits.pathsMax || state.heldBytes + bytes > bytesMax
      }
      if now >= sweepTime || isFull(self) {
        sweepTime = now + HostingLimits.knownMillisecondsMax
        drop { $0.knownUntil <= now }
      }
      if isFull(self) { drop { _ in true } }
    }
  }

  private let state = Mutex(State())
  private let bytesMax: Int
  private let waitingMax: Int

  /// Creates an empty table that keeps pages of at most `bytesMax` bytes, and lets at most `waitingMax` requests wait.
  init(bytesMax: Int = HostingLimits.knownBytesMax, waitingMax: Int = WorkerLimits.hostingUnfinishedMax) {
    self.bytesMax = bytesMax
    self.waitingMax = waitingMax
  }

  /// The number of known pages and look-ups, for tests.
  var count: Int { state.withLock { $0.slots.count } }

  /// The bytes of the known pages, for tests.
  var heldBytes: Int { state.withLock { $0.heldBytes } }

  /// Returns a page that is known at a time in milliseconds. Allocates nothing.
  func page(
    _ generation: Int, _ site: Int, _ path: UnsafeRawBufferPointer, _ languages: Languages, now: Int
  ) -> HostedPage? {
    let hash = Self.hash(site, path, languages)
    return state.withLock { state in
      guard let slot = state.slots[hash], slot.knownUntil > now, slot.key.site == site,
        slot.key.generation == generation,
        slot.key.path.count == path.count, path.elementsEqual(slot.key.path), slot.key.languages == languages
      else { return nil }
      return slot.page
    }
  }

  /// Adds a request that waits for a page. The first one has to look for the page and call ``finish(_:_:now:)``.
  func join(_ key: PageKey, now: Int, _ waiter: @escaping Waiter) -> Joined {
    let hash = Self.hash(key)
    return state.withLock { state in
      guard state.waiting < waitingMax else { return .refused }
      if let slot = state.slots[hash], slot.waiters != nil {
        // Another path with the same hash: this request looks for its page without the table.
        guard slot.key == key else { return .first }
        state.slots[hash]?.waiters?.append(waiter)
        state.waiting += 1
        return .waits
      }
      state.makeRoom(for: 0, bytesMax: bytesMax, now: now)
      state.put(Slot(key: key, waiters: []), at: hash)
      return .first
    }
  }

  /// Stores the result of a look-up that began at `now`, and returns the requests that waited for it.
  func finish(_ key: PageKey, _ result: Result<HostedPage, SiteFailure>, now: Int) -> [Waiter] {
    let hash = Self.hash(key)
    return state.withLock { state in
      guard let slot = state.slots[hash], slot.key == key, let waiters = slot.waiters else { return [] }
      state.put(nil, at: hash)
      guard case .success(let page) = result else { return waiters }
      let bytes = page.heldBytes + key.path.count
      guard bytes <= bytesMax else { return waiters }
      state.makeRoom(for: bytes, bytesMax: bytesMax, now: now)
      let known = Slot(
        key: key, page: page, knownUntil: now + HostingLimits.knownMillisecondsMax, heldBytes: bytes)
      state.put(known, at: hash)
      return waiters
    }
  }

  /// Forgets a page, so that the next request looks for it.
  func forget(_ key: PageKey) {
    let hash = Self.hash(key)
    state.withLock { state in
      if let slot = state.slots[hash], slot.key == key, slot.waiters == nil { state.put(nil, at: hash) }
    }
  }

  private static func hash(_ key: PageKey) -> UInt64 {
    key.path.withUnsafeBytes { hash(key.site, $0, key.languages) }
  }

  private static let seed = UInt64.random(in: 1...UInt64.max)

  /// FNV-1a with a start that clients do not know.
  private static func hash(_ site: Int, _ path: UnsafeRawBufferPointer, _ languages: Languages) -> UInt64 {
    var hash = seed ^ UInt64(truncatingIfNeeded: site)
    for byte in path { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01B3 }
    if languages != Languages.none { hash ^= UInt64(truncatingIfNeeded: languages.hashValue) }
    return hash
  }
}
