import Foundation
import Glibc
import TestSupport

/// A PostgreSQL server for tests, on a socket in a temporary directory. It ends with this process.
package final class PostgresServer: Sendable {
  /// The reason why the server did not do something.
  package struct Failure: Error { let reason: String }

  private static let programs = "/usr/lib/postgresql/15/bin"
  /// A short path, because that of a socket is limited to 107 bytes, which every user can reach.
  private let directory: String
  private let process: Process

  /// Creates a server and waits until it accepts connections.
  /// - Throws: ``Failure``, or the error of the system.
  package init() throws {
    var template = Array("/tmp/hearth-pg-XXXXXX".utf8CString)
    try require(mkdtemp(&template) != nil, "mkdtemp failed")
    directory = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
    // PostgreSQL refuses to run as root.
    if geteuid() == 0 {
      guard let user = getpwnam("postgres") else { throw Failure(reason: "there is no user postgres") }
      try require(chown(directory, user.pointee.pw_uid, user.pointee.pw_gid) == 0, "chown failed")
    }
    let data = "\(directory)/data"
    let initialize = try Self.start(
      "initdb", ["-D", data, "-U", "hearth", "-A", "trust", "-N", "--encoding=UTF8", "--locale=C"])
    initialize.waitUntilExit()
    try require(initialize.terminationStatus == 0, "initdb failed")
    process = try Self.start(
      "postgres",
      ["-D", data, "-k", directory, "-c", "listen_addresses=", "-c", "fsync=off", "-c", "log_min_messages=panic"])
    let isReady = try OtherProcess.eventually {
      let ready = try Self.start("pg_isready", ["-q", "-h", directory])
      ready.waitUntilExit()
      return ready.terminationStatus == 0
    }
    try require(isReady, "the server does not accept connections")
  }

  deinit {
    process.interrupt()
    process.waitUntilExit()
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// The process ID of the server.
  package var processID: Int32 { process.processIdentifier }

  /// Returns the URL of a database. `role` is the name of the user.
  package func url(_ database: String, role: String = "hearth") -> String {
    "postgres://\(role)@/\(database)?host=\(directory)"
  }

  /// Makes a database, and returns its URL.
  /// - Throws: as ``sql(_:in:)``.
  package func makeDatabase(_ name: String) throws -> String {
    try sql("CREATE DATABASE \(name)", in: "postgres")
    return url(name)
  }

  /// Runs SQL text, and returns its output without headings.
  /// - Throws: ``Failure`` if PostgreSQL refuses it.
  @discardableResult
  package func sql(_ text: String, in database: String) throws -> String {
    let pipe = Pipe()
    let psql = try Self.start(
      "psql", ["-X", "-q", "-t", "-A", "-h", directory, "-U", "hearth", "-d", database, "-c", text], output: pipe)
    let output = pipe.fileHandleForReading.readDataToEndOfFile()
    psql.waitUntilExit()
    try require(psql.terminationStatus == 0, "psql failed: \(text)")
    return String(decoding: output, as: UTF8.self).trimmingCharacters(in: .newlines)
  }

  private static func start(_ program: String, _ arguments: [String], output: Pipe? = nil) throws -> Process {
    let process = Process()
    process.executableURL = URL(fileURLWithPath: "/usr/bin/setpriv")
    let user = geteuid() == 0 ? ["--reuid=postgres", "--regid=postgres", "--clear-groups"] : []
    process.arguments = user + ["--pdeathsig", "KILL", "\(programs)/\(program)"] + arguments
    process.standardInput = FileHandle.nullDevice
    process.standardOutput = output ?? FileHandle.nullDevice
    process.standardError = FileHandle.nullDevice
    try process.run()
    return process
  }
}

private func require(_ holds: Bool, _ reason: String) throws {
  if !holds { throw PostgresServer.Failure(reason: reason) }
}
