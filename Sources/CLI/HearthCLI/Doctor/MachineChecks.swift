import CTimex
import Glibc

/// What `hearth doctor` finds out about the machine.
enum MachineChecks {
  /// 2025-01-01, in microseconds: nobody ran this before.
  private static let earliest: Int64 = 1_735_689_600_000_000
  /// The kernel's word for a clock that nobody sets right (`STA_UNSYNC`).
  private static let unsynchronised: Int32 = 0x40

  /// Versions of commits, times of rules and tokens come from the clock.
  static func clock(now: Int64) -> [Finding] {
    guard now > earliest else {
      return [.problem("clock", "it is before 2025", "Set it: tokens and request.time are judged by it.")]
    }
    var state = timex()
    guard adjtimex(&state) >= 0 else { return [] }
    guard state.status & unsynchronised == 0 else {
      return [
        .warning(
          "clock", "nothing keeps it right, as far as the kernel knows",
          "Run systemd-timesyncd or chrony: tokens and request.time are judged by it.")
      ]
    }
    return [.ok("clock", "kept right by the system")]
  }

  /// What `--in-memory` lives in.
  static func memory() -> Finding {
    var system = statvfs()
    guard statvfs("/dev/shm", &system) == 0 else {
      return .problem("memory", "there is no /dev/shm, where data in memory lie", "Mount a tmpfs there, or use --data.")
    }
    let free = Int(clamping: system.f_bavail) * Int(system.f_frsize)
    let text = "\(ByteCount.text(free)) free in /dev/shm, and all is gone when the server stops"
    guard free < 64 << 20 else { return .ok("memory", text) }
    return .warning("memory", text, "Containers often have 64 MiB there: give it more (--shm-size), or use --data.")
  }

  /// Descriptors: every connection and every open database takes some.
  static func limits() -> [Finding] {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return [] }
    let files = limit.rlim_max
    guard files < 65_536 else { return [.ok("open files", files > 1 << 40 ? "no limit" : "up to \(files)")] }
    return [
      .warning(
        "open files", "only \(files) may be open", "Raise the hard limit (LimitNOFILE=): each connection takes one.")
    ]
  }
}
