import Foundation

/// A directory for one test, removed with its content at the end.
package final class TemporaryDirectory: Sendable {
  package let path: String

  /// Creates the directory.
  /// - Throws: the error of the file system.
  package init() throws {
    path = FileManager.default.temporaryDirectory.appending(path: "hearth-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }
}
