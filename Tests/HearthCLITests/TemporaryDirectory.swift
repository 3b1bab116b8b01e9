import Foundation

/// A directory of a test's own, removed when it goes away.
final class TemporaryDirectory: Sendable {
  let path: String

  init() throws {
    path = NSTemporaryDirectory() + "hearth-test-" + UUID().uuidString
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
  }

  deinit { try? FileManager.default.removeItem(atPath: path) }

  /// The path of something in it.
  func file(_ name: String) -> String { "\(path)/\(name)" }

  /// Writes a file and returns its path.
  func write(_ name: String, _ text: String) throws -> String {
    try text.write(toFile: file(name), atomically: true, encoding: .utf8)
    return file(name)
  }

  /// The text of a file in it.
  func text(_ name: String) throws -> String { try String(contentsOfFile: file(name), encoding: .utf8) }

  /// The data file of the default database in a data directory in it.
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
