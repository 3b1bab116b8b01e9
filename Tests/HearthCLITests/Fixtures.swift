import Foundation
import TestSupport

/// The fixtures of the repository.
enum Fixtures {
  static let names = ["dilly-daily", "fit-care", "habitual", "journeys", "well-meing"]

  static func path(_ name: String) -> String { "\(GuidePage.root)/fixtures/\(name).json" }
}

extension TemporaryDirectory {
  /// Makes an empty data directory, as a server does at its first start. Returns its path.
  /// - Throws: an error if it cannot be written.
  @discardableResult func makeDataDirectory(_ name: String) throws -> String {
    try FileManager.default.createDirectory(
      atPath: file(name), withIntermediateDirectories: true, attributes: [.posixPermissions: 0o700])
    try Data("1\n".utf8).write(to: URL(fileURLWithPath: file("\(name)/FORMAT")))
    return file(name)
  }

  /// Returns the path of the default database's file in a data directory.
  func dataFile(_ directory: String, project: String = "demo") -> String {
    file("\(directory)/databases/\(project)/(default)/data.mdb")
  }
}
