import Foundation
import Glibc
import Testing
import TestSupport

/// A wrong clock for a node, which a test sets: a library that the node loads first gives it other times of day, and another
/// rate of the clock by which leases are measured.
///
/// libfaketime cannot be used: Swift programs that load it get no arguments.
final class NodeClock: Sendable {
  private let directory: TemporaryDirectory

  /// Compiles the library. The clock is right until ``set(ahead:rate:)``.
  init() throws {
    directory = try TemporaryDirectory()
    let source = try directory.write("clock.c", Self.source)
    let compiler = Process()
    compiler.executableURL = URL(fileURLWithPath: "/usr/bin/env")
    compiler.arguments = ["clang", "-shared", "-fPIC", "-O1", "-o", directory.file("clock.so"), source]
    try compiler.run()
    compiler.waitUntilExit()
    try #require(compiler.terminationStatus == 0, "the library cannot be compiled")
    try set()
  }

  /// Sets the clock: its lead in seconds, and how much faster it runs, such as 0.01 for 1 %, from the start of the node on.
  /// The node has it within a tenth of a second.
  func set(ahead seconds: Int = 0, rate: Double = 0) throws { try directory.write("clock", "\(seconds) \(rate)\n") }

  /// The variables with which a node has this clock.
  var environment: [String] { ["LD_PRELOAD=\(directory.file("clock.so"))", "NODE_CLOCK=\(directory.file("clock"))"] }

  private static let source = """
    #include <fcntl.h>
    #include <stdio.h>
    #include <stdlib.h>
    #include <sys/syscall.h>
    #include <sys/time.h>
    #include <time.h>
    #include <unistd.h>

    static long long begun, read_at;
    static double ahead, rate;

    static long long now(clockid_t clock) {
      struct timespec t;
      syscall(SYS_clock_gettime, clock, &t);
      return t.tv_sec * 1000000000LL + t.tv_nsec;
    }

    /* A race between threads reads the file twice, and nothing else. */
    static void refresh(void) {
      long long at = now(CLOCK_BOOTTIME);
      if (!begun) begun = at;
      if (read_at && at - read_at < 100000000LL) return;
      read_at = at;
      const char *path = getenv("NODE_CLOCK");
      int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
      char text[64] = {0};
      double a, r;
      if (file < 0) return;
      if (read(file, text, sizeof text - 1) > 0 && sscanf(text, "%lf %lf", &a, &r) == 2) ahead = a, rate = r;
      close(file);
    }

    int clock_gettime(clockid_t clock, struct timespec *t) {
      int status = syscall(SYS_clock_gettime, clock, t);
      if (status || (clock != CLOCK_REALTIME && clock != CLOCK_BOOTTIME)) return status;
      refresh();
      long long time = t->tv_sec * 1000000000LL + t->tv_nsec + (long long)((now(CLOCK_BOOTTIME) - begun) * rate);
      if (clock == CLOCK_REALTIME) time += (long long)(ahead * 1e9);
      t->tv_sec = time / 1000000000LL;
      t->tv_nsec = time % 1000000000LL;
      return 0;
    }

    int gettimeofday(struct timeval *t, void *zone) {
      struct timespec s;
      (void)zone;
      clock_gettime(CLOCK_REALTIME, &s);
      t->tv_sec = s.tv_sec;
      t->tv_usec = s.tv_nsec / 1000;
      return 0;
    }

    time_t time(time_t *t) {
      struct timespec s;
      clock_gettime(CLOCK_REALTIME, &s);
      if (t) *t = s.tv_sec;
      return s.tv_sec;
    }
    """
}
