import Synchronization
import Testing
import TestSupport
import Transport

@testable import HearthServer
@testable import OperationsAPI

/// The ports of an emulator, and the hub that lists them.
@Suite struct EmulatorHubTests {
  /// The log lines of a server.
  private final class Lines: Sendable {
    private let lines = Mutex<[String]>([])
    var all: [String] { lines.withLock { $0 } }
    func add(_ line: String) { lines.withLock { $0.append(line) } }
  }

  private func server(
    _ ports: [HearthConfiguration.EmulatorPort], _ lines: Lines = Lines(), host: String = "127.0.0.1"
  ) throws -> TestServer {
    try TestServer {
      $0.host = host
      $0.emulatorPorts = ports
      $0.warn = { lines.add("warn: \($0)") }
      $0.report = { lines.add($0) }
    }
  }

  /// Returns the port of a service by the list that the main port serves.
  private func port(of service: String, _ server: TestServer) throws -> UInt16 {
    let port: Int = try #require(try server.request("GET", "/emulators").json(service, "port", as: Int.self))
    return try #require(UInt16(exactly: port))
  }

  /// Sends a request to a port and returns the status and the body.
  private func send(_ request: String, to port: UInt16) throws -> (status: Int, text: String) {
    let head = "\(request) HTTP/1.1\r\nHost: 127.0.0.1:\(port)\r\nConnection: close\r\n\r\n"
    let response = try StreamedResponse(port: port, request: Array(head.utf8), hasBody: true)
    try response.readToEnd()
    return (response.status, String(decoding: response.body + response.readRest(), as: UTF8.self))
  }

  private func entry(_ name: String, _ port: UInt16) -> String {
    #""\#(name)":{"listen":[{"address":"127.0.0.1","family":"IPv4","port":\#(port)}],"#
      + #""name":"\#(name)","host":"127.0.0.1","port":\#(port)}"#
  }

  /// The requests of `@firebase/rules-unit-testing`, and of tools that wait for the hub.
  @Test func theHubAnswersAsClientsExpect() throws {
    let server = try server([.init(.auth, port: 0), .init(.storage, port: 0), .init(.hub, port: 0)])
    let (auth, storage) = (try port(of: "auth", server), try port(of: "storage", server))
    let hub = try port(of: "hub", server)
    #expect(Set([auth, storage, hub, server.port]).count == 4)
    let list = [entry("hub", hub), entry("auth", auth), entry("firestore", server.port), entry("storage", storage)]
    for (request, body) in [
      (
        "GET /",
        #"{"version":"\#(Server.version)","origins":["http://127.0.0.1:\#(hub)"],"#
          + #""host":"127.0.0.1","port":\#(hub)}"#
      ),
      ("GET /emulators", "{\(list.joined(separator: ","))}"),
      ("PUT /functions/disableBackgroundTriggers", #"{"enabled":false}"#),
      ("PUT /functions/enableBackgroundTriggers", #"{"enabled":false}"#),
    ] {
      let response = try send(request, to: hub)
      #expect(response.status == 200, "\(request)")
      #expect(response.text.trimmingNewlines == body, "\(request)")
    }
    // Only the hub's own port has another page at the root: programs wait for the text of the others.
    for port in [server.port, auth, storage] { #expect(try send("GET /", to: port).text == "Ok\n") }
    #expect(try send("POST /emulators", to: hub).status == 404)
  }

  @Test func everyPortServesEveryAPI() throws {
    let server = try server([.init(.auth, port: 0), .init(.storage, port: 0), .init(.hub, port: 0)])
    for service in ["auth", "storage", "hub", "firestore"] {
      let port = try port(of: service, server)
      #expect(try send("GET /emulator/v1/projects/p/config", to: port).status == 200)
      #expect(try send("GET \(TestServer.root)/c", to: port).status == 200)
      #expect(try send("GET /storage/v1/b/p.appspot.com/o", to: port).status == 200)
    }
  }

  @Test func servicesWithoutAPortAreOnTheMainOne() throws {
    let lines = Lines()
    let server = try server([], lines)
    for service in ["auth", "storage", "hub", "firestore"] { #expect(try port(of: service, server) == server.port) }
    #expect(try send("GET /", to: server.port).text == "Ok\n")
    #expect(!lines.all.contains { $0.contains("port") })
  }

  @Test func servicesShareAPort() throws {
    var configuration = HearthConfiguration(storage: .inMemory)
    configuration.mode = .emulator
    configuration.emulatorPorts = [
      .init(.auth, port: 8080), .init(.storage, port: 9199, isRequired: false), .init(.hub, port: 9199),
    ]
    // The first is the main port, and the others are one port, which one of them requires.
    #expect(try EmulatorPorts(configuration).further == [.init(9199, isRequired: true)])
  }

  @Test func optionalPortsInUseAreAWarning() throws {
    let other = try server([.init(.auth, port: 0)])
    let taken = Int(try port(of: "auth", other))
    let lines = Lines()
    let server = try server(
      [.init(.auth, port: taken, isRequired: false), .init(.storage, port: taken, isRequired: false)], lines)
    #expect(
      lines.all == [
        "warn: in use by another program: \(taken) (auth), \(taken) (storage); these services are on port "
          + "\(server.port) only (--one-port disables the further ports)"
      ])
    #expect(try port(of: "auth", server) == server.port)
  }

  @Test func aNamedPortInUseEndsTheStart() throws {
    let other = try server([])
    let taken = Int(other.port)
    let error = #expect(throws: HearthError.self) { try server([.init(.storage, port: taken)]) }
    #expect(
      error?.description == "port \(taken) on 127.0.0.1, which is to serve storage, is already in use; stop the "
        + "program that uses it, choose another port with --storage-port, or leave that option out")
  }

  @Test func theLogListsTheFurtherPorts() throws {
    let lines = Lines()
    let server = try server([.init(.storage, port: 0), .init(.auth, port: 0)], lines)
    let (auth, storage) = (try port(of: "auth", server), try port(of: "storage", server))
    #expect(lines.all == ["further ports: \(auth) (auth), \(storage) (storage)"])
  }

  @Test(arguments: [("0.0.0.0", "127.0.0.1"), ("::", "::1"), ("::1", "::1"), ("192.0.2.1", "192.0.2.1")])
  func hostsAreAddressesToConnectTo(host: String, listed: String) {
    let hub = EmulatorHub()
    hub.announce([.init("auth", port: 1)], host: host, ownPort: 2)
    let family = host.contains(":") ? "IPv6" : "IPv4"
    #expect(
      String(decoding: hub.emulators(), as: UTF8.self).trimmingNewlines
        == #"{"auth":{"listen":[{"address":"\#(host)","family":"\#(family)","port":1}],"name":"auth","#
        + #""host":"\#(listed)","port":1}}"#)
    let origin = listed.contains(":") ? "http://[\(listed)]:2" : "http://\(listed):2"
    let locator = hub.locator(version: "1").map { String(decoding: $0, as: UTF8.self) }
    #expect(locator?.contains(#""origins":["\#(origin)"]"#) == true, "\(locator ?? "")")
  }

  @Test func otherMachinesReachNoPortUnlessAllowed() throws {
    var configuration = HearthConfiguration(storage: .inMemory)
    (configuration.mode, configuration.port, configuration.host) = (.emulator, 0, "0.0.0.0")
    configuration.emulatorPorts = [.init(.auth, port: 0)]
    let error = #expect(throws: HearthError.self) { try Server(configuration) }
    #expect(error?.description.contains("loopback") == true)
    configuration.host = "127.0.0.1"
    configuration.mode = .production
    let production = #expect(throws: HearthError.self) { try Server(configuration) }
    #expect(production?.description == "the further ports of an emulator need --emulator")
  }

  @Test func aProductionServerHasNoHub() throws {
    let server = try TestServer(.production)
    for (method, path) in [("GET", "/emulators"), ("PUT", "/functions/disableBackgroundTriggers")] {
      #expect(try server.request(method, path).status == 403)
    }
  }

  @Test func foreignPagesCannotAskTheHub() throws {
    let server = try server([])
    for (origin, status) in [("https://evil.example", 403), ("http://localhost:3000", 200)] {
      #expect(try server.request("GET", "/emulators", headers: [("Origin", origin)]).status == status)
    }
  }
}

extension String {
  /// The text without line breaks at its ends.
  fileprivate var trimmingNewlines: String { String(drop { $0.isNewline }.reversed().drop { $0.isNewline }.reversed()) }
}
