import Foundation
package import Glibc

/// The memory and the descriptors that a process uses now.
package struct ProcessUse: Sendable {
  /// The resident memory without files and shared memory, such as the database, in MiB.
  package let mebibytes: Int
  package let descriptors: Int

  /// Reads them. Returns `nil` if the process does not exist.
  package init?(of process: pid_t) {
    guard
      let status = try? String(contentsOfFile: "/proc/\(process)/status", encoding: .utf8),
      let line = status.split(separator: "\n").first(where: { $0.hasPrefix("RssAnon:") }),
      let kibibytes = Int(line.filter(\.isNumber)),
      let names = try? FileManager.default.contentsOfDirectory(atPath: "/proc/\(process)/fd")
    else { return nil }
    (mebibytes, descriptors) = (kibibytes / 1024, names.count)
  }
}
