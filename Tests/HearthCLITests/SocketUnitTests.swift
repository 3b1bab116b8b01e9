import Foundation
import Testing
import TestSupport
@testable import HearthCLI

/// The systemd units that `hearth doctor` reads.
@Suite struct SocketUnitTests {
  private static let file = "/etc/hearth/hearth.json"
  private let directory: TemporaryDirectory
  private var folders: [String] { ["etc", "lib"].map(directory.file) }

  /// Writes the units of the package. The administrator has enabled the socket.
  init() throws {
    directory = try TemporaryDirectory()
    for folder in ["lib", "etc/sockets.target.wants", "etc/hearth.socket.d"] {
      try FileManager.default.createDirectory(atPath: directory.file(folder), withIntermediateDirectories: true)
    }
    for unit in ["hearth.service", "hearth.socket"] {
      try directory.write("lib/\(unit)", String(contentsOfFile: "\(GuidePage.root)/packaging/\(unit)", encoding: .utf8))
    }
    try directory.write("etc/sockets.target.wants/hearth.socket", "")
  }

  @Test func readsThePackagedUnit() throws {
    let unit = try #require(SocketUnit(ofConfiguration: Self.file, in: folders))
    #expect(unit.path == directory.file("lib/hearth.socket") && unit.addresses == ["127.0.0.1:8080"])
    #expect(unit.findings(named: nil) == [.ok("socket", "\(unit.path) listens on 127.0.0.1:8080")])
    #expect(unit.findings(named: ("127.0.0.1", 8080))[0].level == .ok)
    let ignored = unit.findings(named: ("0.0.0.0", 443))[0]
    #expect(ignored.level == .warning && ignored.text.hasSuffix("so the server ignores 0.0.0.0:443"), "\(ignored)")
    // Other configurations belong to other servers.
    #expect(SocketUnit(ofConfiguration: "/srv/ann/hearth.json", in: folders) == nil)
    try FileManager.default.removeItem(atPath: directory.file("etc/sockets.target.wants/hearth.socket"))
    #expect(SocketUnit(ofConfiguration: Self.file, in: folders) == nil, "the socket is not enabled")
  }

  /// The text of a drop-in, the addresses in force, and the level of the finding.
  @Test(
    arguments: [
      ("[Socket]\nListenStream=\nListenStream=443\n", ["443"], Finding.Level.ok),
      ("[Socket]\n ListenStream = [::]:443 \n", ["127.0.0.1:8080", "[::]:443"], .problem),
      ("[Socket]\nListenStream=\nListenStream=/run/hearth.sock\n", ["/run/hearth.sock"], .problem),
      ("[Socket]\nListenStream=\n", [], .problem), ("# ListenStream=1\n", ["127.0.0.1:8080"], .ok),
    ] as [(String, [String], Finding.Level)])
  func dropInsChangeIt(_ text: String, _ addresses: [String], _ level: Finding.Level) throws {
    try directory.write("etc/hearth.socket.d/override.conf", text)
    let unit = try #require(SocketUnit(ofConfiguration: Self.file, in: folders))
    #expect(unit.addresses == addresses)
    #expect(unit.findings(named: nil).map(\.level) == [level])
  }

  @Test func addressesHaveAHostAndAPort() {
    for (text, host, port) in [("443", "::", 443), ("[::]:80", "::", 80), ("10.0.0.1:8080", "10.0.0.1", 8080)] {
      let found = SocketUnit.endpoint(text)
      #expect(found?.host == host && found?.port == port, "\(text)")
    }
    for text in ["", "/run/x", "%t/x", "a:b"] { #expect(SocketUnit.endpoint(text) == nil, "\(text)") }
  }
}
