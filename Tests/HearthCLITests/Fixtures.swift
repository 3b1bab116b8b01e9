import TestSupport

/// The fixtures of the repository.
enum Fixtures {
  static let names = ["dilly-daily", "fit-care", "habitual", "journeys", "well-meing"]

  static func path(_ name: String) -> String { "\(GuidePage.root)/fixtures/\(name).json" }
}

extension TemporaryDirectory {
  /// Returns the path of the default database's file in a data directory.
  func dataFile(_ directory: String, project: String = "demo") -> String {
    file("\(directory)/databases/\(project)/(default)/data.mdb")
  }
}
