import Foundation
package import Glibc

/// Wrong times of day for programs, by libfaketime. Clocks that never step stay right.
package enum WrongClock {
  /// The path of libfaketime, or `nil` if it is neither installed nor unpacked in `.build/peers`.
  package static let library: String? = ["", "\(GuidePage.root)/.build/peers"].flatMap { root in
    ["x86_64", "aarch64"].map { "\(root)/usr/lib/\($0)-linux-gnu/faketime/libfaketimeMT.so.1" }
  }.first { FileManager.default.fileExists(atPath: $0) }

  /// Returns the environment of a program whose clock is `offset` ahead, such as `+1h`, `-1h`, or `+0 x1.05` for one that is
  /// 5 % fast.
  package static func environment(_ offset: String) -> [String] { variables + ["FAKETIME=\(offset)"] }

  /// Returns the environment of a program that reads the offset of its clock from a file, again within a second.
  package static func environment(offsetIn file: String) -> [String] {
    variables + ["FAKETIME_TIMESTAMP_FILE=\(file)", "FAKETIME_CACHE_DURATION=1"]
  }

  private static var variables: [String] { ["LD_PRELOAD=\(library ?? "")", "FAKETIME_DONT_FAKE_MONOTONIC=1"] }

  /// Removes what libfaketime leaves behind in shared memory.
  package static func removeTraces(of processes: [pid_t]) {
    for process in processes {
      unlink("/dev/shm/faketime_shm_\(process)")
      unlink("/dev/shm/sem.faketime_sem_\(process)")
    }
  }
}
