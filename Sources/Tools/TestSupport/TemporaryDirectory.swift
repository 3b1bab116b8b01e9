import Foundation

/// A directory for one test, removed with its content at the end.
package final class TemporaryDirectory: Sendable {
  package let path: String

  /// Creates the directory.
  /// - Throws: the error of the file system.
  package init() throws {
    path = FileManager.default.temporaryDirectory.appending(path: "hearth-test-\(UUID().uuidString)").path
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: false)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Returns the path of a file in the directory.
  package func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file and returns its path.
  /// - Throws: the error of the file system.
  @discardableResult
  package func write(_ name: String, _ text: String) throws -> String {
    try text.write(toFile: file(name), atomically: true, encoding: .utf8)
    return file(name)
  }

  /// Returns the text of a file in the directory.
  /// - Throws: the error of the file system.
  package func text(_ name: String) throws -> String { try String(contentsOfFile: file(name), encoding: .utf8) }

  /// The names of the files in the directory.
  /// - Throws: the error of the file system.
  package var fileNames: Set<String> {
    get throws { Set(try FileManager.default.contentsOfDirectory(atPath: path)) }
  }
}
