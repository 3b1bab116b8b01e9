import DatabaseService
import Dispatch
import DocumentModel
import DocumentStore
import FixtureTree
import Glibc
import KeyValue
import LMDBEngine
import RulesEngine

/// The initial content of test servers, to which a reset returns. It is never written, so any number of servers
/// share it.
final class TestOrigin: Sendable {
  /// The settings that forks and resets of a server keep.
  struct Settings: Sendable {
    var project: String
    var requiresIndexes: Bool
    /// The largest size of each database file, in bytes. This reserves address space, and many servers exist at
    /// once.
    var mapBytes = 4 << 30
  }

  let settings: Settings
  let databases: [DatabaseID: LMDBStore]
  let accounts: LMDBStore?
  let files: OriginFiles?
  let rules: RulesRegistry
  let fileRules: FileRules
  let offsetMicroseconds: Int64

  /// Reads the initial content of a server.
  init(
    _ settings: Settings, rules: TestServer.Input?, storageRules: TestServer.Input?, indexes: TestServer.Input?,
    fixtures: [TestServer.Input]
  ) throws(HearthError) {
    self.settings = settings
    guard let id = DatabaseID(project: settings.project) else {
      throw .configuration(
        "\"\(settings.project)\" is not a valid project ID; use lower-case letters, digits and hyphens")
    }
    self.rules = RulesRegistry()
    fileRules = FileRules()
    if let rules { self.rules.set(try Self.compile(rules, "rules", "cloud.firestore"), forDatabase: nil) }
    if let storageRules { fileRules.set(try Self.compile(storageRules, "storage rules", FileRules.service)) }
    do {
      let configuration = try indexes.map { try IndexFile.read($0.source("indexes")) }
      databases = [id: try Self.load(fixtures, into: id, configuration, settings)]
    } catch { throw Self.error(error) }
    accounts = nil
    files = nil
    offsetMicroseconds = 0
  }

  /// Copies the current content of a server.
  init(of state: TestServerState, _ before: TestOrigin) throws(HearthError) {
    settings = before.settings
    rules = RulesRegistry(copying: state.rules)
    fileRules = FileRules(copying: state.fileRules)
    offsetMicroseconds = state.time.offsetMicroseconds
    do throws(StorageError) {
      var copies: [DatabaseID: LMDBStore] = [:]
      for (id, store) in state.stores.all { copies[id] = try Self.copy(store, settings) }
      databases = copies
      accounts = try Self.copy(state.accountsStore, settings)
    } catch { throw .storage(error.description) }
    // Copied after the documents: documents committed together with a file must not be copied without it.
    files = try state.originFiles()
  }

  /// Returns a copy of a store's current content.
  static func copy(
    _ store: LMDBStore, isCompact: Bool = false, _ settings: Settings
  ) throws(StorageError) -> LMDBStore {
    try .openInMemory(copyOf: store, isCompact: isCompact, options: options(settings))
  }

  static func options(_ settings: Settings) -> LMDBOptions {
    .inMemory(mapBytes: settings.mapBytes, readersMax: 128)
  }

  // MARK: Reading

  private static func load(
    _ fixtures: [TestServer.Input], into id: DatabaseID, _ indexes: IndexConfiguration?, _ settings: Settings
  ) throws -> LMDBStore {
    let store = try LMDBStore.open(options(settings))
    let isBuilt = DispatchSemaphore(value: 0)
    let database = try DocumentDatabase(
      id: id, store: store,
      indexObserver: { reports in
        if !reports.contains(where: { $0.state == .building || $0.state == .removing }) { isBuilt.signal() }
      })
    try database.adopt(indexes: indexes)
    let sources = fixtures.enumerated().map { number, input -> ImportFiles.Source in
      switch input {
      case .file(let path): .file(path)
      case .text(let text): .text(name: "fixture \(number + 1)", Array(text.utf8))
      }
    }
    _ = try database.load(ImportFiles(sources, database: id))
    // Otherwise every fork would build the indexes again.
    if try database.indexReports().contains(where: { $0.state != .ready }) {
      database.continueBackgroundWork()
      guard isBuilt.wait(timeout: .now() + .seconds(600)) == .success else {
        throw HearthError.storage("the indexes of the fixtures were not built within ten minutes")
      }
    }
    return try copy(store, isCompact: true, settings)
  }

  private static func compile(
    _ input: TestServer.Input, _ name: String, _ service: String
  ) throws(HearthError) -> Ruleset {
    do throws(FixtureTreeError) {
      let source = try input.source(name)
      let bytes = try source.readAll(bytesMax: SourceText.bytesMax + 1)
      guard let text = String(validating: bytes, as: UTF8.self) else {
        throw FixtureTreeError(file: source.name, message: "not UTF-8")
      }
      return try compile(text, source.name, service)
    } catch { throw .data(error.description) }
  }

  private static func compile(
    _ text: String, _ name: String, _ service: String
  ) throws(FixtureTreeError) -> Ruleset {
    do throws(RulesetError) { return try Ruleset(compiling: text, service: service) } catch {
      let errors = error.diagnostics.filter { $0.severity == .error }
      throw FixtureTreeError(file: name, message: errors.map { $0.rendered(file: name) }.joined(separator: "\n"))
    }
  }

  private static func error(_ error: any Error) -> HearthError {
    switch error {
    case let error as HearthError: error
    case let error as FixtureTreeError: .data(error.description)
    case let error as StorageError: .storage(error.description)
    default: .storage("\(error)")
    }
  }
}

extension TestServer.Input {
  /// Returns the bytes, with the name that errors contain.
  func source(_ name: String) throws(FixtureTreeError) -> ByteSource {
    switch self {
    case .file(let path): try ByteSource(file: path)
    case .text(let text): ByteSource(Array(text.utf8), name: name)
    }
  }
}
