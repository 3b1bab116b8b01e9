import Synchronization

/// A server inside the process of an app's own tests: in memory, in emulator mode, without a port.
///
///     let base = try TestServer(rules: .file("firestore.rules"), fixtures: [.file("fixtures/journeys.json")])
///
///     @Test func peopleReadTheirOwn() async throws {
///       let db = try base.fork()
///       let response = try await db.respond(to: .init("GET", "/v1/…/documents/users/ann"), as: .user("ann"))
///       #expect(response.status == 200)
///     }
///
/// Each test uses a ``fork()``, which is independent of all others, so tests run in parallel. Alternatively, a test
/// calls ``reset()`` before the next one. All resources are released with the server.
///
/// A fork contains every database with its indexes and its change log, the rules in force (including uploaded
/// rules), accounts with their sessions, files, and the time. It does not contain listeners and streams, client
/// transactions, unfinished uploads, or codes sent to telephones. Each fork and each reset gets a
/// new ID, so resume tokens and page tokens of another fork, or from before a reset, are not valid.
public final class TestServer: Sendable {
  /// A text, or the file that contains it.
  public enum Input: Sendable {
    /// The path of a file.
    case file(String)
    /// The text itself.
    case text(String)
  }

  /// The project of the accounts and of the `(default)` database that receives the fixtures.
  public var project: String { origin.settings.project }

  private let origin: TestOrigin
  private let state: Mutex<TestServerState>

  /// Creates a server with fixtures. It does not listen, and starts no threads except the process's first event
  /// loops.
  ///
  /// - Parameters:
  ///   - rules: the security rules of all databases. Without rules, everything is allowed.
  ///   - storageRules: the security rules of files. Without rules, only administrators can access files.
  ///   - indexes: the declared indexes of the `(default)` database, in the format of `firestore.indexes.json`.
  ///   - requiresIndexes: whether to reject queries that production rejects because an index is not declared.
  ///   - fixtures: documents, in any format that `hearth import` reads. If a path occurs twice, the last document
  ///     wins.
  /// - Throws: ``HearthError`` for the first mistake in an input, with its location.
  public init(
    project: String = "demo", rules: Input? = nil, storageRules: Input? = nil, indexes: Input? = nil,
    requiresIndexes: Bool = false, fixtures: [Input] = []
  ) throws(HearthError) {
    let settings = TestOrigin.Settings(project: project, requiresIndexes: requiresIndexes)
    origin = try TestOrigin(
      settings, rules: rules, storageRules: storageRules, indexes: indexes, fixtures: fixtures)
    state = Mutex(try TestServerState(origin))
  }

  private init(_ origin: TestOrigin) throws(HearthError) {
    self.origin = origin
    state = Mutex(try TestServerState(origin))
  }

  deinit { state.withLock { $0.end() } }

  /// Returns an independent server with the current content of this one.
  ///
  /// Cost: a copy of the content, and a second copy if this server was written since it was created. So create the
  /// state that many tests share once, in a server that is only forked.
  /// - Throws: ``HearthError/storage(_:)`` if there is not enough memory.
  public func fork() throws(HearthError) -> TestServer {
    // Not under the lock, so forks can be created concurrently.
    let state = currentState
    return try TestServer(state.isUnchanged ? origin : try TestOrigin(of: state, origin))
  }

  /// Returns this server to its initial content: its fixtures, or its state when it was forked. Streams end.
  /// Clients that reconnect learn that their resume tokens belong to another database.
  /// - Throws: ``HearthError/storage(_:)`` if there is not enough memory. Then nothing has changed.
  public func reset() throws(HearthError) {
    let fresh = try TestServerState(origin)
    let old = state.withLock { state in
      let old = state
      state = fresh
      return old
    }
    old.end()
  }

  /// Advances this server's clock, which determines the current time, the expiry of tokens, and reads in the past.
  /// A fork begins with the clock of its original. ``reset()`` restores the initial clock.
  public func advanceTime(by duration: Duration) { currentState.time.advance(by: duration) }

  var currentState: TestServerState { state.withLock { $0 } }
}
