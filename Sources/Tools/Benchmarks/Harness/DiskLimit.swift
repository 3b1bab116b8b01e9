import Foundation
import Glibc

/// A limit of the bytes that one process writes to a disk each second, set by the kernel's block controller (cgroup
/// version 1). The limit ends with this object.
final class DiskLimit {
  private static let root = "/sys/fs/cgroup/blkio"
  private let group: String

  /// The reason why this machine cannot limit a disk, or `nil`.
  static var obstacle: String? {
    access("\(root)/blkio.throttle.write_bps_device", W_OK) == 0
      ? nil : "the kernel has no block controller of version 1 here, or this program may not use it"
  }

  /// Limits the writes of a process, and those of its threads, to the disk that contains `path`.
  /// - Throws: ``BenchmarkError`` if the kernel refuses the limit.
  init(of process: ChildProcess, onDiskOf path: String, bytesPerSecond: Int) throws {
    group = "\(Self.root)/hearth-benchmark-\(getpid())"
    var status = stat()
    guard stat(path, &status) == 0, mkdir(group, 0o700) == 0 else {
      throw BenchmarkError("cannot make \(group): \(String(cString: strerror(errno)))")
    }
    let (major, minor) = (status.st_dev >> 8 & 0xfff, status.st_dev & 0xff)
    try Self.write("\(major):\(minor) \(bytesPerSecond)", to: "\(group)/blkio.throttle.write_bps_device")
    try Self.write("\(process.pid)", to: "\(group)/cgroup.procs")
  }

  /// The kernel removes a group only after its processes have ended or left, so they return to the root group first.
  deinit {
    let processes = (try? String(contentsOfFile: "\(group)/cgroup.procs", encoding: .utf8)) ?? ""
    for pid in processes.split(separator: "\n") { try? Self.write(String(pid), to: "\(Self.root)/cgroup.procs") }
    rmdir(group)
  }

  private static func write(_ text: String, to path: String) throws {
    let file = open(path, O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { throw BenchmarkError("cannot open \(path)") }
    defer { close(file) }
    guard Glibc.write(file, text, text.utf8.count) == text.utf8.count else {
      throw BenchmarkError("cannot write to \(path): \(String(cString: strerror(errno)))")
    }
  }
}
