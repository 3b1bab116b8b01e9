import DocumentModel
import Glibc
import PostgresEngine

/// The rules and index files of a cluster's configuration, as files in the data directory of a node.
///
///     DIR/deployed/rules                    the rules of all databases without their own
///     DIR/deployed/rules-{database}         those of one database
///     DIR/deployed/indexes-{database}       the indexes of a database
///     DIR/deployed/storage-rules            the rules for files
struct DeployedFiles: Sendable {
  private let folder: String

  init(directory: String) { folder = "\(directory)/deployed" }

  /// Writes the files of a configuration, and removes those that it does not have. Files with the same content stay as they
  /// are, so that nothing reloads them.
  /// - Throws: ``HearthError/storage(_:)`` if a file cannot be written; ``HearthError/data(_:)`` if the configuration names
  ///   a database that cannot exist.
  func write(_ deployed: ClusterConfiguration) throws(HearthError) {
    if mkdir(folder, 0o700) != 0, errno != EEXIST { throw Self.failure("mkdir", folder) }
    var kept: Set<String> = []
    for part in deployed.parts {
      let name = try Self.name(of: part)
      kept.insert(name)
      if (try? RulesFiles.read("\(folder)/\(name)")) != part.text { try replace(name, part.text) }
    }
    for name in try names() where !kept.contains(name) { unlink("\(folder)/\(name)") }
  }

  /// Makes a configuration use the files, in place of those that it names.
  func apply(_ deployed: ClusterConfiguration, to configuration: inout HearthConfiguration) throws(HearthError) {
    configuration.rules = []
    configuration.indexes = []
    configuration.storageRules = nil
    for part in deployed.parts {
      let path = "\(folder)/\(try Self.name(of: part))"
      switch part.kind {
      case .rules:
        configuration.rules.append(.init(path, database: part.database.isEmpty ? nil : part.database))
      case .indexes:
        configuration.indexes.append(.init(path, database: part.database.isEmpty ? "(default)" : part.database))
      case .storageRules: configuration.storageRules = path
      }
    }
  }

  /// Returns the options of `hearth serve` that name the files.
  /// - Throws: ``HearthError/data(_:)`` if the configuration names a database that cannot exist.
  func options(_ deployed: ClusterConfiguration) throws(HearthError) -> [String] {
    var words: [String] = []
    for part in deployed.parts {
      let path = "\(folder)/\(try Self.name(of: part))"
      let isUsual = part.database.isEmpty || part.kind == .indexes && part.database == DatabaseID.defaultDatabase
      let option =
        switch part.kind {
        case .rules: "--rules"
        case .indexes: "--indexes"
        case .storageRules: "--storage-rules"
        }
      words += [option, isUsual ? path : "\(part.database)=\(path)"]
    }
    return words
  }

  private static func name(of part: ClusterConfiguration.Part) throws(HearthError) -> String {
    let kind =
      switch part.kind {
      case .rules: "rules"
      case .indexes: "indexes"
      case .storageRules: "storage-rules"
      }
    guard !part.database.isEmpty else { return kind }
    guard DatabaseID(project: "p", database: part.database) != nil else {
      throw .data("the deployed configuration names the database '\(part.database)', which is not valid")
    }
    return "\(kind)-\(part.database)"
  }

  private func names() throws(HearthError) -> [String] {
    guard let stream = opendir(folder) else { throw Self.failure("open", folder) }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafePointer(to: &entry.pointee.d_name) {
        $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
      }
      if name != ".", name != ".." { names.append(name) }
    }
    return names
  }

  /// Replaces a file as a whole, so that a crash leaves the old or the new one.
  private func replace(_ name: String, _ text: [UInt8]) throws(HearthError) {
    let new = "\(folder)/.new"
    let descriptor = open(new, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure("open", new) }
    var written = 0
    while written < text.count {
      let count = text.withUnsafeBytes { Glibc.write(descriptor, $0.baseAddress! + written, text.count - written) }
      guard count > 0 else { break }
      written += count
    }
    let isWritten = written == text.count && fsync(descriptor) == 0
    close(descriptor)
    guard isWritten, rename(new, "\(folder)/\(name)") == 0 else { throw Self.failure("write", "\(folder)/\(name)") }
  }

  private static func failure(_ operation: String, _ path: String) -> HearthError {
    .storage("\(operation) \(path): \(String(cString: strerror(errno)))")
  }
}
