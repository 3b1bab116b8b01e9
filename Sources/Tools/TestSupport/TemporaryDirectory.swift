import Foundation

/// A directory of its own for one test, removed with everything in it at the end.
package final class TemporaryDirectory: Sendable {
  /// Where it is.
  package let path: String

  /// Makes a directory.
  package init() throws {
    path = FileManager.default.temporaryDirectory.appending(path: "hearth-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit {
    try? FileManager.default.removeItem(atPath: path)
  }
}
