import Synchronization

/// A server in the process of an app's own tests: in memory, in emulator mode, without a port.
///
///     let base = try TestServer(rules: .file("firestore.rules"), fixtures: [.file("fixtures/journeys.json")])
///
///     @Test func peopleReadTheirOwn() async throws {
///       let db = try base.fork()
///       let reply = try await db.respond(to: .init("GET", "/v1/…/documents/users/ann"), as: .user("ann"))
///       #expect(reply.status == 200)
///     }
///
/// Each test takes a ``fork()``, which shares nothing with the others, so that tests run in parallel; or a test calls
/// ``reset()`` in between. Everything a server holds is given back when it goes away.
///
/// What a fork carries: every database with its indexes and its change log, the rules in force (also those that were
/// uploaded), accounts with their sessions, files, and the time. What it does not: listeners and streams, client
/// transactions, uploads that are not finished, and codes sent to telephones. Each life has an id of its own, so a
/// resume token or a page token of one means nothing to another.
public final class TestServer: Sendable {
  /// A text, or the file that holds it.
  public enum Input: Sendable {
    /// The path of a file.
    case file(String)
    /// The text itself.
    case text(String)
  }

  /// The project whose `(default)` database fixtures go into, and whose accounts these are.
  public var project: String { origin.settings.project }

  private let origin: TestOrigin
  private let life: Mutex<TestLife>

  /// Makes a server that holds fixtures. Nothing listens, and no thread is begun but the process's first loops.
  ///
  /// - Parameters:
  ///   - rules: security rules of all databases; without any everybody may do everything.
  ///   - storageRules: rules of files; without any only administrators reach files.
  ///   - indexes: declared indexes of the `(default)` database, as `firestore.indexes.json` has them.
  ///   - requiresIndexes: refuses queries that production would refuse because an index is not declared.
  ///   - fixtures: documents, in any format that `hearth import` reads; of one path the last stands.
  /// - Throws: ``HearthError`` for the first mistake in what was given, with its place.
  public init(
    project: String = "demo", rules: Input? = nil, storageRules: Input? = nil, indexes: Input? = nil,
    requiresIndexes: Bool = false, fixtures: [Input] = []
  ) throws(HearthError) {
    let settings = TestOrigin.Settings(project: project, requiresIndexes: requiresIndexes)
    origin = try TestOrigin(
      settings, rules: rules, storageRules: storageRules, indexes: indexes, fixtures: fixtures)
    life = Mutex(try TestLife(origin))
  }

  private init(_ origin: TestOrigin) throws(HearthError) {
    self.origin = origin
    life = Mutex(try TestLife(origin))
  }

  deinit { life.withLock { $0.end() } }

  /// A server of its own that begins with all that this one holds now.
  ///
  /// Cost: a copy of what is stored, and another one where this server was written to since it was made: make the
  /// state that many tests begin with once, in a server that they only fork.
  /// - Throws: ``HearthError/storage(_:)`` when there is no memory.
  public func fork() throws(HearthError) -> TestServer {
    // Not under the lock: forks are made side by side.
    let life = currentLife
    return try TestServer(life.isUnchanged ? origin : try TestOrigin(of: life, origin))
  }

  /// Goes back to how this server began: with its fixtures, or as it was forked. Streams end; a client that comes back
  /// is told that the database is another one.
  /// - Throws: ``HearthError/storage(_:)`` when there is no memory; then nothing has changed.
  public func reset() throws(HearthError) {
    let fresh = try TestLife(origin)
    let old = life.withLock { life in
      let old = life
      life = fresh
      return old
    }
    old.end()
  }

  /// Moves this server's time on: what it says is now, when tokens end, what reads in the past find. Forks begin at the
  /// time of the server they were made of; ``reset()`` goes back.
  public func advanceTime(by duration: Duration) { currentLife.time.advance(by: duration) }

  var currentLife: TestLife { life.withLock { $0 } }
}
