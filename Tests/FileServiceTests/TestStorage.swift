import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Files
import FileService
import Glibc
import KeyValue
import LMDBEngine
import RulesEngine
import Synchronization
import Testing
import TestSupport

/// A storage service in memory, with rules and a clock that a test controls, and without HTTP.
final class TestStorage {
  private(set) var service: StorageService
  /// The service keys that were revoked.
  let revokedKeys = Observed<Set<String>>([])
  private let metadata: LMDBStore
  private let configuration: FileStore.Configuration
  let time = SteppedTime()
  let rules = FileRules()
  let database: FirestoreService
  private var directory: TemporaryDirectory

  /// Creates a service whose rules match `/{bucket}/o/{name=**}` with the given statements.
  init(_ statements: String? = nil, change: (inout FileStore.Configuration) -> Void = { _ in }) throws {
    directory = try TemporaryDirectory()
    let store = try LMDBStore.open(.inMemory(mapBytes: 64 << 20))
    let registry = DatabaseRegistry(clock: Clock { [time] in time.now }, idleSeconds: nil) {
      (_) throws(StorageError) in store
    }
    database = FirestoreService(databases: registry, mode: .production)
    var configuration = FileStore.Configuration { [time] in time.now }
    configuration.makesBuckets = true
    configuration.wasCommitted = { (_, number) throws(FilesError) in
      do throws(StorageError) { return try DocumentDatabase.lastMark(in: store) == number } catch {
        throw .storage(error)
      }
    }
    change(&configuration)
    self.configuration = configuration
    metadata = try LMDBStore.open(.inMemory(mapBytes: 64 << 20))
    service = try Self.service(metadata, directory, configuration, rules, database, revokedKeys)
    if let statements { try set(statements) }
  }

  private static func service(
    _ metadata: LMDBStore, _ directory: TemporaryDirectory, _ configuration: FileStore.Configuration,
    _ rules: FileRules, _ database: FirestoreService, _ revokedKeys: Observed<Set<String>>
  ) throws -> StorageService {
    let files = FileStore(
      metadata: metadata, contents: try ContentDirectory(directory.path + "/f"), configuration: configuration)
    try files.recover()
    return StorageService(
      store: LazyFileStore { files }, rules: rules, documents: database, project: "p",
      isCurrentKey: { !revokedKeys.value.contains($0) })
  }

  /// Opens the stored files again, as after a restart of the server.
  func restart() throws {
    service = try Self.service(metadata, directory, configuration, rules, database, revokedKeys)
  }

  /// Opens the stored files with an empty directory, as another node of a cluster does.
  func failOver() throws {
    directory = try TemporaryDirectory()
    try restart()
  }

  /// Replaces the rules of all objects.
  func set(_ statements: String) throws {
    let text = """
      rules_version = '2';
      service firebase.storage { match /b/{bucket}/o { match /{name=**} { \(statements) } } }
      """
    rules.set(try Ruleset(compiling: text, service: FileRules.service))
  }

  static let stranger = Caller.user(nil)

  static func user(_ uid: String, isGuest: Bool = false, _ check: (any TokenRevocationCheck)? = nil) -> Caller {
    let provider: Value = .string(isGuest ? "anonymous" : "password")
    var firebase = MapValue()
    firebase["sign_in_provider"] = provider
    var claims = MapValue()
    claims["sub"] = .string(uid)
    claims["firebase"] = .map(firebase)
    return .user(RulesAuth(uid: uid, claims: claims, revocationCheck: check))
  }

  static func name(_ name: String) -> ObjectName { ObjectName(bucket: "b", name: name) }

  static func draft(_ name: String, bytes: Int? = nil) -> ObjectDraft {
    var draft = ObjectDraft(Self.name(name))
    draft.sizes = bytes.map { $0...$0 }
    return draft
  }

  @discardableResult
  func put(_ name: String, _ text: String, as caller: Caller = .admin) throws -> StoredObject {
    try service.insertObject(Self.draft(name), content: Array(text.utf8), as: caller)
  }

  func text(_ name: String, token: String? = nil, as caller: Caller = .admin) throws -> String? {
    guard let content = try service.getContent(Self.name(name), token: token, as: caller) else { return nil }
    defer { content.close() }
    var bytes = [UInt8](repeating: 0, count: content.object.content.size)
    #expect(pread(content.descriptor, &bytes, bytes.count, 0) == bytes.count)
    return String(decoding: bytes, as: UTF8.self)
  }

  /// Begins a resumable upload.
  func begin(
    _ name: String, bytes: Int? = nil, owner: UploadOwner? = nil, remembersCaller: Bool = false,
    as caller: Caller = .admin
  ) throws -> String {
    try service.beginUpload(
      Self.draft(name, bytes: bytes), owner: owner, remembersCaller: remembersCaller, as: caller)
  }

  /// Sends one part of a resumable upload.
  func append(
    _ id: String, _ text: String, at start: Int?, count: Int? = nil, total: UploadPart.Total,
    declared: DeclaredChecksums = DeclaredChecksums(), as caller: Caller = .admin
  ) throws -> UploadResult? {
    var part = UploadPart(of: id, start: start, count: count, total: total)
    part.declared = declared
    let upload = try service.appendUpload(part, as: caller)
    upload.open()
    upload.append(Array(text.utf8))
    return try upload.finish()
  }
}

/// Returns the error of a call, or `nil` if it succeeds.
func failure(_ body: () throws -> Void) -> FilesError? {
  do {
    try body()
    return nil
  } catch { return error as? FilesError ?? .invalid("\(error)") }
}

extension FilesError {
  var isDenied: Bool { if case .denied = self { true } else { false } }
}

extension UploadResult {
  /// The stored object, if the upload is complete.
  var object: StoredObject? { if case .stored(let object, _) = self { object } else { nil } }
  /// The number of bytes received, if more may follow.
  var receivedBytes: Int? { if case .received(let count) = self { count } else { nil } }
}
