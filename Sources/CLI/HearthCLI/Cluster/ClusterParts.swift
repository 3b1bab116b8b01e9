import DatabaseService
import DocumentModel
import FixtureTree
import PostgresEngine
import RulesTesting

/// The rules and indexes that a verb deploys to a cluster.
enum ClusterParts {
  /// The options that name their files.
  static let options: [Command.Option] = [
    .repeated("rules", "FILE", "security rules; DATABASE=FILE for the rules of one database"),
    .value("storage-rules", "FILE", "storage rules; without them, only administrators can access files"),
    .repeated("indexes", "FILE", "an index file; DATABASE=FILE for a named database"),
  ]

  /// Reads and checks the files of a command line. Nothing is deployed if one of them has an error.
  /// - Throws: ``CommandFailure`` with each error of a ruleset, in the form of `hearth rules check`; `FixtureTreeError` if a
  ///   file cannot be read, or an index file is not valid.
  static func read(_ arguments: Arguments) throws -> [ClusterConfiguration.Part] {
    var parts: [ClusterConfiguration.Part] = []
    func add(_ part: ClusterConfiguration.Part, _ option: String, _ value: String) throws {
      guard !parts.contains(where: { $0.kind == part.kind && $0.database == part.database }) else {
        throw arguments.refusal(of: option, value, "is the second file for the same database")
      }
      parts.append(part)
    }
    for value in arguments.values("rules") {
      let (database, path) = databaseFile(value)
      let text = try rules(path, areStorageRules: false)
      try add(.init(.rules, database: database ?? "", text: text), "rules", value)
    }
    if let path = arguments.value("storage-rules") {
      try add(.init(.storageRules, text: try rules(path, areStorageRules: true)), "storage-rules", path)
    }
    for value in arguments.values("indexes") {
      let (database, path) = databaseFile(value)
      _ = try IndexFile.read(file: path)
      let text = try ByteSource(file: path).readAll(bytesMax: ClusterConfiguration.bytesMax)
      try add(.init(.indexes, database: database ?? DatabaseID.defaultDatabase, text: text), "indexes", value)
    }
    return parts
  }

  private static func rules(_ path: String, areStorageRules: Bool) throws -> [UInt8] {
    let text = try RulesFile.read(path)
    _ = try RulesFile.compile(text, file: path)
    guard areStorageRules == (RuleTestSuite.service(of: text) == FileRules.service) else {
      throw CommandFailure.data(
        areStorageRules
          ? "\(path) has no rules for files; deploy it with --rules"
          : "\(path) has rules for files only; deploy it with --storage-rules")
    }
    return Array(text.utf8)
  }

  /// Parses `FILE` or `DATABASE=FILE`.
  private static func databaseFile(_ text: String) -> (database: String?, path: String) {
    let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 2, DatabaseID(project: "p", database: parts[0]) != nil else { return (nil, text) }
    return (parts[0], parts[1])
  }

  /// Returns the parts of a configuration as lines for people, such as `rules of all databases, 512 bytes`.
  static func lines(_ configuration: ClusterConfiguration) -> [String] {
    configuration.parts.map { part in
      let what =
        switch part.kind {
        case .rules: part.database.isEmpty ? "rules" : "rules of database \(part.database)"
        case .indexes: "indexes of database \(part.database)"
        case .storageRules: "storage rules"
        }
      return "\(what), \(ByteCount.text(part.text.count))"
    }
  }
}
