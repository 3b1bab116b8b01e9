import Foundation
import Glibc
import Synchronization
import Testing
import TestSupport

/// Two PostgreSQL servers of which Patroni makes one the primary and the other its synchronous standby, as users run them.
/// Patroni keeps its state in an etcd server. All ends with this object. Tests that use it need ``Requirement/postgres`` and
/// the tools `etcd`, `patroni` and `setpriv`.
final class PatroniServers: PostgresService {
  /// A PostgreSQL server and the Patroni process that runs it.
  private struct Member: Sendable {
    var name: String
    var port: UInt16
    /// The port of Patroni's API.
    var controlPort: UInt16
    /// The path of its data directory, and the beginning of those of its other files.
    var path: String

    var configuration: String { "\(path).yml" }
  }

  private let directory: String
  private let etcd: ServerProcess
  private let members: [Member]
  private let processes: Mutex<[ServerProcess]>
  /// Bound sockets, so that no other program gets the ports.
  private let held: [Int32]

  /// Creates the servers, and waits until the standby is synchronous.
  /// - Throws: an error if a server cannot be set up.
  init() throws {
    let directory = try PostgresServer.makeDirectory()
    self.directory = directory
    let bound = try (0..<6).map { _ in try LoopbackAddress.bind() }
    held = bound.map(\.descriptor)
    let ports = bound.map(\.port)
    let (etcdURL, peerURL) = ("http://127.0.0.1:\(ports[0])", "http://127.0.0.1:\(ports[1])")
    etcd = try Self.start(
      .etcd,
      [
        "--data-dir", "\(directory)/etcd", "--listen-client-urls", etcdURL, "--advertise-client-urls", etcdURL,
        "--listen-peer-urls", peerURL, "--initial-advertise-peer-urls", peerURL, "--initial-cluster",
        "default=\(peerURL)", "--unsafe-no-fsync",
      ])
    members = try (0..<2).map { index in
      let (name, port, controlPort) = ("pg\(index + 1)", ports[2 + index], ports[4 + index])
      let member = Member(name: name, port: port, controlPort: controlPort, path: "\(directory)/\(name)")
      let text = Self.configuration(member, etcdPort: ports[0])
      try text.write(toFile: member.configuration, atomically: false, encoding: .utf8)
      return member
    }
    processes = Mutex(try members.map { try Self.start(.patroni, [$0.configuration]) })
    try waitForStandby()
  }

  private static func start(_ tool: Tool, _ arguments: [String]) throws -> ServerProcess {
    let (setpriv, program) = (try #require(Tool.setpriv.path), try #require(tool.path))
    // If the test process dies, Patroni stops its server.
    let words = PostgresServer.user + ["--pdeathsig", "TERM", program]
    return try ServerProcess(executable: setpriv, arguments: words + arguments)
  }

  /// The file of a member, with the shortest times that Patroni permits.
  private static func configuration(_ member: Member, etcdPort: UInt16) -> String {
    """
    scope: hearth
    name: \(member.name)
    restapi: {listen: "127.0.0.1:\(member.controlPort)", connect_address: "127.0.0.1:\(member.controlPort)"}
    etcd3: {host: "127.0.0.1:\(etcdPort)"}
    bootstrap:
      dcs:
        ttl: 20
        loop_wait: 1
        retry_timeout: 3
        primary_start_timeout: 0
        synchronous_mode: true
        postgresql: {use_pg_rewind: true, use_slots: true}
      initdb: [{encoding: UTF8}, {locale: C}, {auth: trust}, {username: hearth}]
    postgresql:
      listen: "127.0.0.1:\(member.port)"
      connect_address: "127.0.0.1:\(member.port)"
      data_dir: "\(member.path)"
      pgpass: "\(member.path).pass"
      bin_dir: "\(PostgresServer.programs)"
      authentication: {superuser: {username: hearth}, replication: {username: hearth}, rewind: {username: hearth}}
      pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
      parameters: {unix_socket_directories: "", fsync: "off"}

    """
  }

  deinit {
    // Without its Patroni process, a server is not started again.
    processes.withLock { for process in $0 { process.send(signal: SIGKILL) } }
    for member in members { if let id = serverID(member) { _ = kill(id, SIGKILL) } }
    processes.withLock { for process in $0 { _ = process.waitForExit(timeoutSeconds: 10) } }
    etcd.stop()
    for descriptor in held { _ = close(descriptor) }
    try? FileManager.default.removeItem(atPath: directory)
  }

  /// The process ID of a member's PostgreSQL server, or `nil` if it does not run.
  private func serverID(_ member: Member) -> pid_t? {
    let text = try? String(contentsOfFile: "\(member.path)/postmaster.pid", encoding: .utf8)
    guard let id = text?.split(separator: "\n").first.flatMap({ pid_t($0) }), id > 0,
      let words = try? String(contentsOfFile: "/proc/\(id)/cmdline", encoding: .utf8), words.contains(member.path)
    else { return nil }
    return id
  }

  /// The members by their roles, such as `leader` and `sync_standby`, of those that run. Empty if no member answers.
  private var roles: [String: Member] {
    var roles: [String: Member] = [:]
    for member in members {
      guard let answer = try? TestHTTPClient(port: member.controlPort, timeoutSeconds: 5).send("GET", "/cluster"),
        answer.status == 200, let cluster = try? JSONNode(parsing: answer.body)
      else { continue }
      for node in cluster["members"]?.elements ?? [] {
        // Versions of Patroni differ in the state of a standby.
        guard let state = node["state"]?.stringValue, ["running", "streaming"].contains(state),
          let role = node["role"]?.stringValue
        else { continue }
        roles[role] = members.first { $0.name == node["name"]?.stringValue }
      }
      break
    }
    return roles
  }

  /// Waits until there are a primary, which is not the server named `former`, and a synchronous standby.
  /// - Throws: an error if they are missing for two minutes.
  func waitForStandby(insteadOf former: String? = nil) throws {
    let isThere = OtherProcess.eventually(secondsMax: 120) {
      let roles = roles
      guard let leader = roles["leader"], roles["sync_standby"] != nil else { return false }
      return leader.name != former
    }
    try #require(isThere, "no synchronous standby: \(processes.withLock { $0.map { $0.output.suffix(2000) } })")
  }

  /// Waits until there is a primary, and returns it.
  private func leader() throws -> Member {
    var leader: Member?
    _ = OtherProcess.eventually {
      leader = roles["leader"]
      return leader != nil
    }
    return try #require(leader)
  }

  /// Makes the standby the primary, as `patronictl switchover` does. Returns the name of the former primary.
  /// - Throws: an error if Patroni refuses.
  func switchOver() throws -> String {
    let leader = try leader()
    let answer = try TestHTTPClient(port: leader.controlPort).send(
      "POST", "/switchover", headers: [("Content-Type", "application/json")],
      body: Array("{\"leader\": \"\(leader.name)\"}".utf8))
    // Patroni may not know the outcome yet.
    try #require(answer.status == 200 || answer.status == 503, "\(answer.text)")
    return leader.name
  }

  /// Kills the primary's PostgreSQL server, as `kill -9` does. Patroni promotes the standby. Returns the name of the former
  /// primary.
  /// - Throws: an error if no server is the primary.
  func killPrimary() throws -> String {
    let leader = try leader()
    let id = try #require(serverID(leader))
    try #require(kill(id, SIGKILL) == 0)
    return leader.name
  }

  /// Kills the primary and its Patroni process, as if the machine died, and starts Patroni again when another server is the
  /// primary. Patroni waits for the end of the former one's lease of 20 seconds. Returns the name of the former primary.
  /// - Throws: an error if no other server becomes the primary.
  func killPrimaryMachine() throws -> String {
    let leader = try leader()
    let index = try #require(members.firstIndex { $0.name == leader.name })
    let process = processes.withLock { $0[index] }
    let id = try #require(serverID(leader))
    process.send(signal: SIGKILL)
    try #require(kill(id, SIGKILL) == 0)
    _ = process.waitForExit(timeoutSeconds: 30)
    let isReplaced = OtherProcess.eventually(secondsMax: 60) { roles["leader"].map { $0.name != leader.name } ?? false }
    try #require(isReplaced, "no other primary: \(processes.withLock { $0.map { $0.output.suffix(2000) } })")
    let restarted = try Self.start(.patroni, [leader.configuration])
    processes.withLock { $0[index] = restarted }
    return leader.name
  }

  /// The URL of a database at the server that accepts writes.
  private func url(_ database: String) -> String {
    let hosts = members.map { "127.0.0.1:\($0.port)" }.joined(separator: ",")
    return "postgres://hearth@\(hosts)/\(database)"
  }

  func makeDatabase(_ name: String) throws -> String {
    try sql("CREATE DATABASE \(name)", in: "postgres")
    // A client that connects to a standby which lacks the database does not try the next server.
    for member in members {
      let url = "postgres://hearth@127.0.0.1:\(member.port)/\(name)"
      let isThere = OtherProcess.eventually { (try? PostgresServer.sql("SELECT 1", at: url)) == "1" }
      try #require(isThere, "\(member.name) lacks the database \(name)")
    }
    return url(name)
  }

  @discardableResult func sql(_ text: String, in database: String) throws -> String {
    try PostgresServer.sql(text, at: "\(url(database))?target_session_attrs=read-write")
  }
}
