import Testing

@testable import Transport

/// The ports on which a server listens besides its own.
@Suite struct FurtherPortTests {
  private func get(_ port: Int) throws -> Int {
    let client = try RawClient(port: port)
    client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
    return try client.readReply().status
  }

  private func server(_ ports: TransportConfiguration.FurtherPort...) throws -> TestServer {
    try TestServer(configure: { $0.furtherPorts = ports })
  }

  @Test func everyPortServesRequests() throws {
    let server = try server(.init(0, isRequired: true), .init(0, isRequired: false))
    let ports = try server.server.furtherPorts.map { try $0.get() }
    #expect(Set(ports + [server.port]).count == 3)
    for port in ports + [server.port] { #expect(try get(port) == 200) }
  }

  @Test func anOptionalPortInUseIsReported() throws {
    let other = try server()
    let server = try server(.init(other.port, isRequired: false), .init(0, isRequired: true))
    let outcomes = server.server.furtherPorts
    #expect(outcomes.count == 2)
    #expect(outcomes[0] == .failure(.addressInUse(host: "127.0.0.1", port: other.port)))
    #expect(try get(outcomes[1].get()) == 200)
  }

  @Test func aRequiredPortInUseEndsTheStart() throws {
    let other = try server()
    #expect(throws: TransportError.addressInUse(host: "127.0.0.1", port: other.port)) {
      try server(.init(0, isRequired: true), .init(other.port, isRequired: true))
    }
  }

  @Test func noPortListensAfterAStop() throws {
    let server = try server(.init(0, isRequired: true))
    let port = try server.server.furtherPorts[0].get()
    server.server.stop(graceSeconds: 0)
    // The port is free again.
    #expect(throws: Never.self) { try HTTPServer.checkAddress(host: "127.0.0.1", port: port) }
  }
}
