import Glibc

/// The processor's time that `body` takes on this thread: what other tests and programs do meanwhile does not count,
/// nor does waiting.
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
