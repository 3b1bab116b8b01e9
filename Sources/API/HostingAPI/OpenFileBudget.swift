import Glibc
import Hosting
import Synchronization

/// Counts the files that are open for responses, so that clients that do not read cannot use up the process's
/// descriptors.
final class OpenFileBudget: Sendable {
  /// The right to have one file open. It ends with the object.
  final class Lease: Sendable {
    private let budget: OpenFileBudget

    fileprivate init(_ budget: OpenFileBudget) { self.budget = budget }

    deinit { budget.free.withLock { $0 += 1 } }
  }

  private let free: Mutex<Int>

  /// Creates a budget of `filesMax` files. The default is ``HostingLimits/openFilesMax``, or a sixteenth of the
  /// process's open files if that is less.
  init(filesMax: Int = OpenFileBudget.standardMax) { free = Mutex(filesMax) }

  /// Returns the right to open one file, or `nil` if all are in use.
  func take() -> Lease? {
    let isFree = free.withLock { free in
      guard free > 0 else { return false }
      free -= 1
      return true
    }
    return isFree ? Lease(self) : nil
  }

  private static var standardMax: Int {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return HostingLimits.openFilesMax }
    return max(1, min(HostingLimits.openFilesMax, Int(clamping: limit.rlim_cur) / 16))
  }
}
