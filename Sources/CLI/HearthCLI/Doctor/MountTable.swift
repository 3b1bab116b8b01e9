import Glibc

/// Reads the kernel's table of mounted file systems.
enum MountTable {
  private static let bytesMax = 1 << 20

  /// Returns the type of the file system that contains a path, such as `ext4`, or `nil` if it is unknown.
  static func fileSystem(of path: String) -> String? {
    var status = stat()
    guard stat(path, &status) == 0, let text = read() else { return nil }
    // Split the device as makedev(3) joins it. The C library's functions for this are macros, which Swift cannot call.
    let device = UInt64(status.st_dev)
    let major = (device >> 8 & 0xFFF) | (device >> 32 & 0xFFFF_F000)
    let minor = (device & 0xFF) | (device >> 12 & 0xFFFF_FF00)
    return fileSystem(ofDevice: "\(major):\(minor)", in: text)
  }

  /// Returns the type of a device's file system from a text in the form of `/proc/self/mountinfo` (proc(5)). The device
  /// is the third word of a line, and the type is the first word after a dash.
  static func fileSystem(ofDevice device: String, in text: String) -> String? {
    for line in text.split(separator: "\n") {
      let words = line.split(separator: " ")
      guard words.count > 6, words[2] == device, let dash = words[6...].firstIndex(of: "-"), dash + 1 < words.count
      else { continue }
      return String(words[dash + 1])
    }
    return nil
  }

  private static func read() -> String? {
    let file = open("/proc/self/mountinfo", O_RDONLY | O_CLOEXEC)
    guard file >= 0 else { return nil }
    defer { close(file) }
    var (bytes, count) = ([UInt8](repeating: 0, count: bytesMax), 0)
    while count < bytesMax {
      let more = bytes.withUnsafeMutableBytes { Glibc.read(file, $0.baseAddress.map { $0 + count }, bytesMax - count) }
      guard more > 0 else { break }
      count += more
    }
    return String(decoding: bytes[..<count], as: UTF8.self)
  }
}
