import Glibc

/// Returns the CPU time that `body` uses on this thread, without other threads, other programs and waiting.
/// - Throws: the error of `body`.
package func threadTime(of body: () throws -> Void) rethrows -> Duration {
  let start = threadClock
  try body()
  return threadClock - start
}

private var threadClock: Duration {
  var time = timespec()
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time)
  return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
