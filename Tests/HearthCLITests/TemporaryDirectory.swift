import Foundation

/// A temporary directory of a test, which is removed when it is released.
final class TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "hearth-test-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// Returns the path of a file in the directory.
  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file and returns its path.
  func write(_ name: String, _ text: String) throws -> String {
    try text.write(toFile: file(name), atomically: true, encoding: .utf8)
    return file(name)
  }

  /// Returns the text of a file in the directory.
  func text(_ name: String) throws -> String { try String(contentsOfFile: file(name), encoding: .utf8) }

  /// Returns the path of the default database's file in a data directory.
  func dataFile(_ directory: String, project: String = "demo") -> String {
    file("\(directory)/databases/\(project)/(default)/data.mdb")
  }
}

/// The fixtures of the repository.
enum Fixtures {
  static let names = ["dilly-daily", "fit-care", "habitual", "journeys", "well-meing"]

  static func path(_ name: String) -> String {
    URL(fileURLWithPath: #filePath).deletingLastPathComponent().deletingLastPathComponent().deletingLastPathComponent()
      .appendingPathComponent("fixtures/\(name).json").path
  }
}
