import Foundation
import Glibc

/// A description of the machine without host names and paths.
enum Machine {
  static var description: String {
    var name = utsname()
    uname(&name)
    let kernel = withUnsafeBytes(of: &name.release) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    let model = line("/proc/cpuinfo", "model name") ?? "unknown CPU"
    let memory = (line("/proc/meminfo", "MemTotal").flatMap { Double($0.filter(\.isNumber)) } ?? 0) / 1_048_576
    let cores = sysconf(Int32(_SC_NPROCESSORS_ONLN))
    return "\(cores) cores of \(model), \(Format.tenths(memory)) GiB of memory, Linux \(kernel)"
  }

  /// Returns the type of the file system that contains `path`.
  static func fileSystem(of path: String) -> String {
    let mounts = (try? String(contentsOfFile: "/proc/mounts", encoding: .utf8)) ?? ""
    var best = (point: "", type: "unknown")
    for line in mounts.split(separator: "\n") {
      let fields = line.split(separator: " ")
      guard fields.count > 2, path == fields[1] || fields[1] == "/" || path.hasPrefix("\(fields[1])/"),
        fields[1].count >= best.point.count
      else { continue }
      best = (String(fields[1]), String(fields[2]))
    }
    return best.type
  }

  private static func line(_ path: String, _ label: String) -> String? {
    let text = (try? String(contentsOfFile: path, encoding: .utf8)) ?? ""
    guard let line = text.split(separator: "\n").first(where: { $0.hasPrefix(label) }) else { return nil }
    return line.split(separator: ":", maxSplits: 1).last?.trimmingCharacters(in: .whitespaces)
  }
}
