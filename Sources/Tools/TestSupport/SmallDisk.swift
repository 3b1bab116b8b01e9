import Foundation
import Testing

/// A disk of a few megabytes in memory, which a test can fill. Tests that use it need ``Requirement/mounting``.
package final class SmallDisk {
  private let path: String
  private let block: String

  /// Mounts a disk in an existing directory. `size` is such as `12m`.
  /// - Throws: an error if that fails.
  package init(at path: String, size: String) throws {
    self.path = path
    block = "\(path)/block"
    try Self.run("mount", "-t", "tmpfs", "-o", "size=\(size)", "tmpfs", path)
  }

  /// Fills what is left of the disk with a file.
  /// - Throws: an error if the file cannot be opened.
  package func fill() throws {
    if !FileManager.default.fileExists(atPath: block) { try Data().write(to: URL(filePath: block)) }
    let file = try FileHandle(forWritingTo: URL(filePath: block))
    try file.seekToEnd()
    while (try? file.write(contentsOf: [UInt8](repeating: 1, count: 4096))) != nil {}
    try file.close()
  }

  /// Empties that file.
  /// - Throws: an error if that fails.
  package func empty() throws {
    let file = try FileHandle(forWritingTo: URL(filePath: block))
    try file.truncate(atOffset: 0)
    try file.close()
  }

  /// Unmounts the disk. Nothing may use it.
  package func unmount() { try? Self.run("umount", path) }

  private static func run(_ arguments: String...) throws {
    // Foundation waits for a child process forever if another child inherits its descriptors.
    let process = try ServerProcess(executable: "/usr/bin/env", arguments: arguments)
    try #require(process.waitForExit(timeoutSeconds: 20) == .code(0), "\(arguments): \(process.output)")
  }
}
