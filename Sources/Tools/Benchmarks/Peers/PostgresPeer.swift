import Foundation
import Glibc

/// PostgreSQL 15 of Debian, with two gigabytes of caches, on a loopback port. It runs as the user `postgres` if this
/// program runs as root, because it refuses to run as root.
final class PostgresPeer {
  static var obstacle: String? {
    guard access("\(programs)/initdb", X_OK) == 0 else {
      return "PostgreSQL 15 is not installed (Debian: postgresql-15)"
    }
    return findProgram("psql") == nil ? "psql is not installed (Debian: postgresql-client-15)" : nil
  }

  static let programs = "/usr/lib/postgresql/15/bin"

  let process: ChildProcess
  let port: Int
  private let directory: String

  /// Starts a server with an empty database. If `isDurable`, a commit returns when it is on the disk.
  /// - Throws: ``BenchmarkError`` if it does not start.
  init(isDurable: Bool = false) throws {
    directory = try Run.makeDirectory("postgres")
    port = try LoadClient.freePort()
    // The account of the server must be able to reach its folder.
    var asServer: [String] = []
    if geteuid() == 0 {
      guard let user = getpwnam("postgres") else { throw BenchmarkError("there is no user 'postgres'") }
      for path in [Run.scratchDirectory, directory] { chmod(path, 0o755) }
      chown(directory, user.pointee.pw_uid, user.pointee.pw_gid)
      asServer = ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups"]
    }
    let data = "\(directory)/data"
    let made = try ChildProcess(asServer + ["\(Self.programs)/initdb", "-D", data, "-A", "trust", "-U", "postgres"])
    guard made.wait(seconds: 120) == 0 else { throw BenchmarkError("initdb failed") }
    let settings = [
      "listen_addresses=127.0.0.1", "port=\(port)", "unix_socket_directories=", "shared_buffers=1GB", "work_mem=64MB",
      "maintenance_work_mem=512MB", "effective_cache_size=2GB", "synchronous_commit=\(isDurable ? "on" : "off")",
    ]
    process = try ChildProcess(
      asServer + ["\(Self.programs)/postgres", "-D", data] + settings.flatMap { ["-c", $0] },
      output: "\(directory)/log")
    let watch = Stopwatch()
    while (try? run(["select 1"])) == nil {
      guard process.isRunning, watch.seconds < 60 else { throw BenchmarkError("PostgreSQL did not start") }
      usleep(50_000)
    }
  }

  /// Makes a database. Returns its name.
  func makeDatabase(_ name: String) throws -> String {
    try run(["CREATE DATABASE \(name)"])
    return name
  }

  /// Runs statements in one session of a database. Returns the output without headers, with the time of each statement.
  /// - Throws: ``BenchmarkError`` if one fails.
  @discardableResult
  func run(_ statements: [String], in database: String = "postgres") throws -> String {
    let output = "\(Run.scratchDirectory)/psql-\(UUID().uuidString)"
    defer { unlink(output) }
    let client = try ChildProcess(
      ["psql", "-h", "127.0.0.1", "-p", "\(port)", "-U", "postgres", "-d", database, "-XAtq", "-v", "ON_ERROR_STOP=1"]
        + ["\\timing on"].flatMap { ["-c", $0] } + statements.flatMap { ["-c", $0] }, output: output)
    let status = client.wait(seconds: 600)
    let text = (try? String(contentsOfFile: output, encoding: .utf8)) ?? ""
    guard status == 0 else { throw BenchmarkError("psql failed: \(text)") }
    return text
  }

  /// Returns the result of a query, and the seconds that psql waited for it.
  /// - Throws: ``BenchmarkError`` if it fails.
  func time(_ query: String, in database: String = "postgres") throws -> (result: String, seconds: Double) {
    let lines = try run([query], in: database).split(separator: "\n").map(String.init)
    guard let time = lines.last(where: { $0.hasPrefix("Time: ") }),
      let milliseconds = Double(time.split(separator: " ")[1])
    else { throw BenchmarkError("psql printed no time") }
    return (lines.filter { !$0.hasPrefix("Time: ") }.joined(separator: "\n"), milliseconds / 1000)
  }
}
