import Foundation
import Glibc
import Synchronization
import Testing

/// PostgreSQL for tests: one server, or several of which one accepts writes.
package protocol PostgresService: Sendable {
  /// Makes a database, and returns its URL.
  /// - Throws: an error if that fails.
  func makeDatabase(_ name: String) throws -> String

  /// Runs SQL text, and returns its output without headings.
  /// - Throws: an error if PostgreSQL refuses it.
  @discardableResult func sql(_ text: String, in database: String) throws -> String
}

/// A PostgreSQL server for tests, on a socket in a temporary directory. It ends with this process. Tests that use it
/// need ``Requirement/postgres`` and the tool `setpriv`.
package final class PostgresServer: PostgresService {
  package static let programs = "/usr/lib/postgresql/15/bin"
  /// The directory of the socket.
  package let directory: String
  private let process: Mutex<Process>
  private let arguments: [String]

  /// Creates a server and waits until it accepts connections. `settings` are such as `max_connections=20`. By
  /// default, it does not wait for the disk.
  /// - Throws: an error if PostgreSQL cannot be set up.
  package convenience init(settings: [String] = ["fsync=off"]) throws {
    try self.init(settings: settings) { data in
      try Self.start(
        "initdb", ["-D", data, "-U", "hearth", "-A", "trust", "-N", "--encoding=UTF8", "--locale=C"])
    }
  }

  /// Creates a standby of another server, which replicates it.
  /// - Throws: an error if PostgreSQL cannot be set up.
  package convenience init(standbyOf primary: PostgresServer) throws {
    try self.init(settings: ["fsync=off"]) { data in
      try Self.start(
        "pg_basebackup", ["-D", data, "-h", primary.directory, "-U", "hearth", "-R", "-c", "fast", "-X", "stream"])
    }
  }

  private init(settings: [String], _ initialize: (String) throws -> Process) throws {
    directory = try Self.makeDirectory()
    let data = "\(directory)/data"
    let initializer = try initialize(data)
    initializer.waitUntilExit()
    try #require(initializer.terminationStatus == 0, "the data directory of PostgreSQL cannot be made")
    arguments =
      ["-D", data, "-k", directory]
      + (["listen_addresses=", "log_min_messages=panic"] + settings).flatMap { ["-c", $0] }
    process = Mutex(try Self.start("postgres", arguments))
    try #require(try OtherProcess.eventually { try acceptsConnections }, "the server does not accept connections")
  }

  private var acceptsConnections: Bool {
    get throws {
      let ready = try Self.start("pg_isready", ["-q", "-h", directory])
      ready.waitUntilExit()
      return ready.terminationStatus == 0
    }
  }

  deinit {
    stop()
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// Stops the server: it ends transactions and connections.
  package func stop() {
    process.withLock { process in
      if process.isRunning { process.interrupt() }
      process.waitUntilExit()
    }
  }

  /// Kills the server, as `kill -9` does. Its other processes notice that, and end.
  package func kill() {
    process.withLock { process in
      _ = Glibc.kill(process.processIdentifier, SIGKILL)
      process.waitUntilExit()
    }
  }

  /// Starts the server again on its data, after ``stop()`` or ``kill()``, and waits until it accepts connections.
  /// - Throws: an error if it does not.
  package func restart() throws {
    let isReady = try OtherProcess.eventually {
      // It refuses to start while processes of a killed one end.
      try process.withLock { process throws in
        if !process.isRunning { process = try Self.start("postgres", arguments) }
      }
      return try acceptsConnections
    }
    try #require(isReady, "the server does not accept connections")
  }

  /// The path of its socket.
  package var socket: String { "\(directory)/.s.PGSQL.5432" }

  /// The process ID of the server.
  package var processID: Int32 { process.withLock { $0.processIdentifier } }

  /// Returns the URL of a database. `role` is the name of the user.
  package func url(_ database: String, role: String = "hearth") -> String {
    "postgres://\(role)@/\(database)?host=\(directory)"
  }

  /// Makes a database, and returns its URL.
  /// - Throws: an error if that fails.
  package func makeDatabase(_ name: String) throws -> String {
    try sql("CREATE DATABASE \(name)", in: "postgres")
    return url(name)
  }

  /// Requires the password of every role except `hearth`, which needs none.
  /// - Throws: an error if the file of the server cannot be written.
  package func requirePasswords() throws {
    let lines = "local all hearth trust\nlocal all all scram-sha-256\n"
    try lines.write(toFile: "\(directory)/data/pg_hba.conf", atomically: false, encoding: .utf8)
    try sql("SELECT pg_reload_conf()", in: "postgres")
  }

  /// Runs SQL text, and returns its output without headings.
  /// - Throws: an error if PostgreSQL refuses it.
  @discardableResult
  package func sql(_ text: String, in database: String) throws -> String {
    try Self.sql(text, at: url(database))
  }

  /// Runs SQL text in the database of a URL, and returns its output without headings.
  /// - Throws: an error if PostgreSQL refuses it.
  package static func sql(_ text: String, at url: String) throws -> String {
    let pipe = Pipe()
    let psql = try start("psql", ["-X", "-q", "-t", "-A", "-d", url, "-c", text], output: pipe)
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    psql.waitUntilExit()
    // An error, and not a requirement, so that a test can try again.
    guard psql.terminationStatus == 0 else { throw ServerProcessError(description: "psql failed: \(text)") }
    return String(decoding: output, as: UTF8.self).trimmingCharacters(in: .newlines)
  }

  /// The options of `setpriv` that change from root, as which PostgreSQL refuses to run.
  package static var user: [String] {
    geteuid() == 0 ? ["--reuid=postgres", "--regid=postgres", "--clear-groups"] : []
  }

  /// Makes a directory with a short path, because that of a socket is limited to 107 bytes, which every user can reach.
  package static func makeDirectory() throws -> String {
    var template = Array("/tmp/hearth-pg-XXXXXX".utf8CString)
    try #require(mkdtemp(&template) != nil)
    // PostgreSQL refuses to run as root.
    if geteuid() == 0 {
      let user = try #require(getpwnam("postgres"))
      try #require(chown(template, user.pointee.pw_uid, user.pointee.pw_gid) == 0)
    }
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func start(_ program: String, _ arguments: [String], output: Pipe? = nil) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
    process.arguments = user + ["--pdeathsig", "KILL", "\(programs)/\(program)"] + arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output ?? FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }
}

extension PostgresService {
  /// Has PostgreSQL end each transaction that writes to a table twice in favor of others, before it commits.
  /// - Throws: an error if PostgreSQL refuses that.
  package func addConflicts(to tables: [String], in database: String) throws {
    let triggers = tables.map { table in
      """
      CREATE TRIGGER conflict BEFORE INSERT OR UPDATE OR DELETE ON \(table)
      FOR EACH STATEMENT EXECUTE FUNCTION conflict();
      """
    }
    // A sequence keeps its number if the transaction ends.
    try sql(
      """
      CREATE SEQUENCE attempts;
      CREATE FUNCTION conflict() RETURNS trigger LANGUAGE plpgsql AS $$
      BEGIN
        -- Once for each transaction.
        IF current_setting('test.passed', true) IS NOT DISTINCT FROM txid_current()::text THEN RETURN NULL; END IF;
        IF nextval('attempts') % 3 <> 0 THEN RAISE EXCEPTION 'conflict' USING ERRCODE = '40001'; END IF;
        PERFORM set_config('test.passed', txid_current()::text, true);
        RETURN NULL;
      END $$;
      \(triggers.joined(separator: "\n"))
      """, in: database)
  }

  /// The number of attempts of transactions since ``addConflicts(to:in:)``.
  /// - Throws: an error if PostgreSQL refuses the question.
  package func attempts(in database: String) throws -> Int {
    try #require(Int(sql("SELECT last_value FROM attempts", in: database)))
  }
}
