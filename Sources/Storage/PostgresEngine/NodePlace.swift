import Glibc
package import KeyValue

/// The place of a data directory: the boot of its machine, and the file that locks it. A copy of the directory has
/// another place, and so has the same directory after the machine booted again.
package struct NodePlace: Equatable, Sendable {
  /// The identity that the kernel gave to this boot.
  let boot: String
  let device: UInt64
  let inode: UInt64

  /// Finds the place of a data directory, whose lock file must exist.
  /// - Throws: `StorageError` if the lock file or the identity of the boot cannot be read.
  package init(lockFile: String) throws(StorageError) {
    var status = stat()
    guard stat(lockFile, &status) == 0 else { throw .system(operation: "stat", path: lockFile, code: errno) }
    let path = "/proc/sys/kernel/random/boot_id"
    boot = String((try DurableFile.text(path, bytesMax: 64) ?? "").prefix { $0 != "\n" && $0 != " " })
    (device, inode) = (UInt64(status.st_dev), UInt64(status.st_ino))
  }

  /// Parses ``text``. Returns `nil` for any other text.
  init?(_ text: some StringProtocol) {
    let parts = text.split(separator: " ")
    guard parts.count == 3, let device = UInt64(parts[1]), let inode = UInt64(parts[2]) else { return nil }
    (boot, self.device, self.inode) = (String(parts[0]), device, inode)
  }

  /// The form that is stored: the three parts, separated by spaces.
  var text: String { "\(boot) \(device) \(inode)" }

  /// Whether two places are the same file, maybe seen in different boots.
  package func isSameFile(as other: NodePlace) -> Bool { device == other.device && inode == other.inode }
}
