import Hosting
import Synchronization

/// The pages that are known, for a short time, and the requests that wait for one.
///
/// Several requests for a page that is not known cause one look-up. Any thread may use the table.
final class PageTable: Sendable {
  typealias Waiter = @Sendable (Result<HostedPage, SiteFailure>) -> Void

  private struct Slot {
    let key: PageKey
    var page: HostedPage?
    var knownUntil = 0
    /// The requests that wait, or `nil` if no look-up is under way.
    var waiters: [Waiter]?
  }

  private let slots = Mutex<[UInt64: Slot]>([:])

  /// The number of known pages, for tests.
  var count: Int { slots.withLock { $0.count } }

  /// Returns a page that is known at a time in milliseconds. Allocates nothing.
  func page(
    _ generation: Int, _ site: Int, _ path: UnsafeRawBufferPointer, _ languages: Languages, now: Int
  ) -> HostedPage? {
    let hash = Self.hash(site, path, languages)
    return slots.withLock { slots in
      guard let slot = slots[hash], slot.knownUntil > now, slot.key.site == site, slot.key.generation == generation,
        slot.key.path.count == path.count, path.elementsEqual(slot.key.path), slot.key.languages == languages
      else { return nil }
      return slot.page
    }
  }

  /// Adds a request that waits for a page. Returns whether it is the first one, which then has to look for the page and
  /// call ``finish(_:_:knownUntil:)``.
  func join(_ key: PageKey, now: Int, _ waiter: @escaping Waiter) -> Bool {
    let hash = key.path.withUnsafeBytes { Self.hash(key.site, $0, key.languages) }
    return slots.withLock { slots in
      if let slot = slots[hash], slot.waiters != nil {
        if slot.key == key {
          slots[hash]?.waiters?.append(waiter)
          return false
        }
        // Another path with the same hash: this request looks for its page without the table.
        return true
      }
      if slots.count >= HostingLimits.pathsMax { Self.evict(&slots, now: now) }
      slots[hash] = Slot(key: key, waiters: [])
      return true
    }
  }

  /// Stores the result of a look-up, and returns the requests that waited for it.
  func finish(_ key: PageKey, _ result: Result<HostedPage, SiteFailure>, knownUntil: Int) -> [Waiter] {
    let hash = key.path.withUnsafeBytes { Self.hash(key.site, $0, key.languages) }
    return slots.withLock { slots in
      guard let slot = slots[hash], slot.key == key, let waiters = slot.waiters else { return [] }
      if case .success(let page) = result {
        slots[hash] = Slot(key: key, page: page, knownUntil: knownUntil)
      } else {
        slots[hash] = nil
      }
      return waiters
    }
  }

  /// Forgets a page, so that the next request looks for it.
  func forget(_ key: PageKey) {
    let hash = key.path.withUnsafeBytes { Self.hash(key.site, $0, key.languages) }
    slots.withLock { slots in
      if let slot = slots[hash], slot.key == key, slot.waiters == nil { slots[hash] = nil }
    }
  }

  /// Removes the pages that are no longer known, or all if that is not enough. Look-ups under way stay.
  private static func evict(_ slots: inout [UInt64: Slot], now: Int) {
    slots = slots.filter { $0.value.waiters != nil || $0.value.knownUntil > now }
    if slots.count >= HostingLimits.pathsMax { slots = slots.filter { $0.value.waiters != nil } }
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
