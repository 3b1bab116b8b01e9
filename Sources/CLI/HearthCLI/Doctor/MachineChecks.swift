import CTimex
import Glibc

/// Checks the machine: its clock, its memory and its limits.
enum MachineChecks {
  /// 2025-01-01, in microseconds: the program did not exist before.
  private static let earliest: Int64 = 1_735_689_600_000_000
  /// The kernel's flag for a clock that no service synchronizes (`STA_UNSYNC`).
  private static let unsynchronized: Int32 = 0x40

  /// Checks the clock, which determines versions of commits, `request.time` and the validity of tokens.
  static func clock(now: Int64) -> [Finding] {
    guard now > earliest else {
      return [.problem("clock", "the clock shows a time before 2025", "Set it: tokens and request.time depend on it.")]
    }
    var state = timex()
    guard adjtimex(&state) >= 0 else { return [] }
    guard state.status & unsynchronized == 0 else {
      return [
        .warning(
          "clock", "no service synchronizes it, as far as the kernel knows",
          "Run systemd-timesyncd or chrony: tokens and request.time depend on the clock.")
      ]
    }
    return [.ok("clock", "synchronized by the system")]
  }

  /// Checks the memory file system that `--in-memory` uses.
  static func memory() -> Finding {
    var system = statvfs()
    guard statvfs("/dev/shm", &system) == 0 else {
      let text = "/dev/shm, which holds data in memory, does not exist"
      return .problem("memory", text, "Mount a tmpfs there, or use --data.")
    }
    let free = Int(clamping: system.f_bavail) * Int(system.f_frsize)
    let text = "\(ByteCount.text(free)) free in /dev/shm; all data are lost when the server stops"
    guard free < 64 << 20 else { return .ok("memory", text) }
    return .warning("memory", text, "Give the container more than its 64 MiB (--shm-size), or use --data.")
  }

  /// Checks the limit of file descriptors. Every connection and every open database needs some.
  static func limits() -> [Finding] {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return [] }
    let files = limit.rlim_max
    guard files < 65_536 else { return [.ok("open files", files > 1 << 40 ? "no limit" : "up to \(files)")] }
    return [
      .warning(
        "open files", "at most \(files) files can be open",
        "Raise the hard limit (LimitNOFILE=): each connection needs one.")
    ]
  }
}
