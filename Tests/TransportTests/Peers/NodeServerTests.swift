import Testing
import TestSupport

@testable import Transport

/// The port for nodes accepts only the key, and clients cannot make a node say something about them.
@Suite struct NodeServerTests {
  @Test func aNodeWithAnotherKeyIsRefused() throws {
    let handler = RelayHandler()
    let pair = try RelayPair(usesManualClock: true, relayKey: RelayPair.key(2), handler: handler)
    let client = try pair.front.connect()
    client.send("GET /seen HTTP/1.1\r\nHost: x\r\n\r\n")
    #expect(pair.front.wait { pair.relay.counts.repeated > 0 })
    pair.front.advance(seconds: 11)
    #expect(try client.readReply().status == 503)
    #expect(handler.begun.value == 0)
  }

  @Test(arguments: [
    "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "\u{16}\u{3}\u{1}\u{0}\u{1}\u{1}",
  ])
  func plainBytesAreRefused(text: String) throws {
    let handler = RelayHandler()
    let pair = try RelayPair(handler: handler)
    let client = try RawClient(port: pair.address.port)
    client.send(text)
    // At most an alert.
    #expect(client.readToEnd().count <= 7)
    #expect(handler.begun.value == 0)
  }

  @Test(
    .needs(.tool(.openssl)),
    arguments: [
      [], ["-tls1_2"], ["-alpn", "hearth-peer/1"], ["-psk_identity", "hearth-cluster-key/1", "-psk", "00112233"],
    ])
  func otherTLSIsRefused(arguments: [String]) throws {
    let pair = try RelayPair(handler: RelayHandler())
    let seen = try Tool.openssl.run(["s_client", "-connect", "127.0.0.1:\(pair.address.port)"] + arguments, input: "")
    #expect(seen.status != 0)
    #expect(!seen.output.contains("Cipher is TLS_AES"), "\(seen.output)")
  }

  /// OpenSSL's own client, with the same key, shows that only the key opens the port.
  @Test(.needs(.tool(.openssl)), arguments: ["hearth-peer/1", "h2", nil])
  func theKeyAndTheProtocolOpenThePort(name: String?) throws {
    var derived = [UInt8](repeating: 0, count: NodeKey.byteCount)
    #expect(derived.withUnsafeMutableBytes { RelayPair.key.derive("hearth-peer/1 tls", into: $0) })
    let digits = derived.map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined()
    let pair = try RelayPair(handler: RelayHandler())
    let seen = try Tool.openssl.run(
      [
        "s_client", "-connect", "127.0.0.1:\(pair.address.port)", "-psk_identity", "hearth-cluster-key/1", "-psk",
        digits,
      ] + (name.map { ["-alpn", $0] } ?? []), input: "")
    #expect(seen.output.contains("ALPN protocol: hearth-peer/1") == (name == "hearth-peer/1"))
    if name == "hearth-peer/1" { #expect(seen.output.contains("Reused, TLSv1.3, Cipher is TLS_AES_128_GCM_SHA256")) }
  }

  @Test(.needs(.tool(.curl)))
  func theOwnerSeesTheAddressOfTheClient() throws {
    let pair = try RelayPair(handler: RelayHandler())
    for server in [pair.direct, pair.front] {
      let seen = try Tool.curl.run(["-s", "--interface", "127.0.0.5", "http://127.0.0.1:\(server.port)/seen"])
      #expect(seen.output.contains("\n127.0.0.5 [127, 0, 0, 5] true false false\n"), "\(seen.output)")
    }
  }

  @Test func aForgedEnvelopeIsAnOrdinaryField() throws {
    let pair = try RelayPair(handler: RelayHandler())
    for server in [pair.direct, pair.front] {
      let client = try server.connect()
      client.send(
        "GET /seen HTTP/1.1\r\nhearth-envelope: 2 2 ap 9.9.9.9 -\r\nhearth-client-is-admin: 1\r\nHost: x\r\n\r\n")
      let text = try client.readReply().text
      #expect(text.contains("\n127.0.0.1 [127, 0, 0, 1] true false false\n"), "\(text)")
      #expect(text.contains("hearth-envelope: 2 2 ap 9.9.9.9 -") && text.contains("hearth-client-is-admin: 1"))
    }
  }

  @Test(arguments: [
    ("1 1.1 aph 203.0.113.7 -", "203.0.113.7", 4), ("1 2 - 2001:db8::1 -", "2001:db8::1", 16), ("1 1.0 t - -", "", 0),
    ("2 2 p 203.0.113.7 -", "203.0.113.7", 4),
    ("1 2 p fe80::1%eth0 000102030405060708090a0b0c0d0e0f", "fe80::1%eth0", 16),
  ])
  func anEnvelopeIsReadAsItWasWritten(text: String, address: String, count: Int) throws {
    let client = try #require(Array(text.utf8).withUnsafeBytes { RelayedClient($0) })
    #expect(String(decoding: client.text(), as: UTF8.self) == text)
    #expect(client.address == address && client.addressBytes.count == count)
  }

  @Test func aRelayForTheConsoleSaysSo() throws {
    let pair = try RelayPair(isForConsole: true, handler: RelayHandler())
    let client = try pair.front.connect()
    client.send("GET /seen HTTP/1.1\r\nHost: x\r\n\r\n")
    let text = try client.readReply().text
    #expect(text.contains("\n127.0.0.1 [127, 0, 0, 1] true false true\n"), "\(text)")
  }

  @Test(arguments: [
    "", "1", "3 2 - 127.0.0.1 -", "1 3 - 127.0.0.1 -", "1 2 - 127.0.0.1", "1 2 - 127.0.0.1 0", "1 2 - 127.0.0.1 - -",
    "1 2 - 127.0.0.1 zz0102030405060708090a0b0c0d0e0f",
  ])
  func aMalformedEnvelopeIsRefused(text: String) {
    #expect(Array(text.utf8).withUnsafeBytes { RelayedClient($0) } == nil)
  }

  @Test func keysAreComparedByTheirBytes() {
    #expect(RelayPair.key(1) == RelayPair.key(1))
    #expect(RelayPair.key(1) != RelayPair.key(2))
    #expect(NodeKey([1, 2, 3]) == nil)
    #expect("\(RelayPair.key(1))" == "NodeKey")
  }
}
