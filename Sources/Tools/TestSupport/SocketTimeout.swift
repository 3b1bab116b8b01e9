import Glibc

/// Sets how long a read from a socket waits for bytes, and how long a write waits for room, before it fails with
/// `EAGAIN`. A time of `nil` is not changed.
///
/// Test modules that import a C library as well as Glibc call this instead of making a `timeval` themselves: the
/// compiler may take the structure for a declaration of that library, depending on the order in which it compiles files.
package func setTimeouts(of socket: Int32, readSeconds: Int? = nil, writeSeconds: Int? = nil) {
  for (option, seconds) in [(SO_RCVTIMEO, readSeconds), (SO_SNDTIMEO, writeSeconds)] {
    guard let seconds else { continue }
    var limit = timeval(tv_sec: seconds, tv_usec: 0)
    setsockopt(socket, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
  }
}
