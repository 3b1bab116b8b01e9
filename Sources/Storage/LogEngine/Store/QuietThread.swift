import Glibc

/// A thread of low priority, on which work runs that nobody waits for.
///
/// If a thread that serves a client wakes, the system lets it run at once instead of after the turn of this thread. A
/// thread cannot raise its priority again, so each run has a thread of its own.
enum QuietThread {
  /// Runs `body` on such a thread and waits for it. If the system allows no more threads, runs it here.
  static func run(_ body: () -> Void) {
    withoutActuallyEscaping(body) { body in
      let work = Unmanaged.passRetained(Work(body))
      var thread = pthread_t()
      let status = pthread_create(
        &thread, nil,
        { context in
          // Linux applies this to the calling thread only.
          setpriority(__priority_which_t(PRIO_PROCESS.rawValue), 0, QuietThread.niceness)
          if let context { Unmanaged<Work>.fromOpaque(context).takeUnretainedValue().body() }
          return nil
        }, work.toOpaque())
      if status == 0 { pthread_join(thread, nil) } else { body() }
      work.release()
    }
  }

  private static let niceness: Int32 = 10

  private final class Work {
    let body: () -> Void
    init(_ body: @escaping () -> Void) { self.body = body }
  }
}
