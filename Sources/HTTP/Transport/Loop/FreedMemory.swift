import Basics
import CUV
import Glibc
import Synchronization

/// Gives memory that a burst of requests used back to the system. The allocator would keep it for the next burst.
package enum FreedMemory {
  /// The size of blocks that the allocator maps separately, in bytes.
  private static let mappedBlockBytes: Int32 = 2 * 1024 * 1024

  /// Makes the allocator map large blocks separately, and give them back when they are freed. Call it before the first
  /// thread starts.
  ///
  /// By default the allocator raises this size with each block that is freed, and then clears recycled memory for LMDB.
  /// Each database that is written has a block of 2 MiB of which it uses little, so a thousand databases would take 2 GiB.
  package static func mapLargeBlocks() { cuv_map_large_blocks(mappedBlockBytes) }

  /// The interval between checks. Each reads one file of the kernel.
  private static let checkMicroseconds = 3_000_000
  /// Memory above the lowest use so far that is not worth the search for freed parts.
  private static let slackBytes = 32 * 1024 * 1024
  /// A change since the last search that makes another one worthwhile.
  private static let changeBytes = 8 * 1024 * 1024

  private struct Seen {
    var lowestBytes = Int.max
    var usedBytes = 0
    var freedBytes = 0
  }

  private static let nextCheck = Atomic(0)
  private static let seen = Mutex(Seen())
  private static let workers = BoundedWorkers("hearth-memory", unfinishedMax: 1)

  /// Checks the memory of the process on a thread of its own, at most once per interval. Every loop calls this in its
  /// sweeps.
  static func sweep() {
    let now = EventLoop.microseconds()
    let next = nextCheck.load(ordering: .relaxed)
    guard now >= next else { return }
    let isFirst = nextCheck.compareExchange(
      expected: next, desired: now + checkMicroseconds, ordering: .relaxed
    ).exchanged
    if isFirst { _ = workers.run(check) }
  }

  private static func check() {
    seen.withLock { seen in
      let used = privateBytes()
      seen.lowestBytes = min(seen.lowestBytes, used)
      guard used > seen.lowestBytes + slackBytes else { return }
      // Freed memory stays freed memory after it was given back, so only a change shows that there is more to give.
      let freed = Int(clamping: cuv_freed_bytes())
      guard abs(freed - seen.freedBytes) > changeBytes || abs(used - seen.usedBytes) > changeBytes else { return }
      malloc_trim(0)
      seen.freedBytes = Int(clamping: cuv_freed_bytes())
      seen.usedBytes = privateBytes()
    }
  }

  /// The resident memory of the process without files and shared memory, such as LMDB's maps. 0 if it is unknown.
  private static func privateBytes() -> Int {
    let file = open("/proc/self/statm", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return 0 }
    defer { close(file) }
    var bytes = [UInt8](repeating: 0, count: 128)
    let count = max(read(file, &bytes, bytes.count), 0)
    let pages = bytes[..<count].split(separator: 0x20).map { Int(String(decoding: $0, as: UTF8.self)) ?? 0 }
    guard pages.count > 2 else { return 0 }
    return (pages[1] - pages[2]) * Int(sysconf(Int32(_SC_PAGESIZE)))
  }
}
