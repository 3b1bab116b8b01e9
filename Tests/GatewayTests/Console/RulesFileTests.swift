import Foundation
import HearthServer
import Testing
import TestSupport

/// The console of an emulator writes the file of the rules, and nobody else does.
@Suite struct RulesFileTests {
  private static let path = "/hearth/v1/projects/p/databases/(default)/rulesFile"
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents { match /a/{id} { allow read: if true; } }
    }

    """

  /// An emulator with a file of rules, and the secret of its start.
  private struct World {
    let directory: TemporaryDirectory
    let server: TestServer
    let key: String
    let file: String

    init(change: (inout HearthConfiguration) -> Void = { _ in }) throws {
      let directory = try TemporaryDirectory()
      self.directory = directory
      try directory.write("f.rules", RulesFileTests.rules)
      let file = directory.file("f.rules")
      self.file = file
      server = try TestServer {
        $0.rules = [.init(file)]
        change(&$0)
      }
      let url = server.server.consoleURL ?? ""
      key = url.firstMatch(of: /#\/\?key=([0-9a-f]{32})$/).map { String($0.output.1) } ?? ""
    }

    func request(_ method: String, _ body: JSONNode? = nil, _ headers: [(String, String)]) throws -> TestServer.Response
    {
      try server.request(method, RulesFileTests.path, body?.text, headers: headers)
    }

    var text: String { (try? String(contentsOfFile: file, encoding: .utf8)) ?? "" }
  }

  @Test func theEditorSavesAFile() throws {
    let world = try World()
    try #require(world.key.count == 32)
    let own = [("X-Hearth-Key", world.key), ("Sec-Fetch-Site", "same-origin")]
    let read = try world.request("GET", nil, own)
    #expect(read.status == 200 && read.json("text") == Self.rules && read.json("path") == world.file)
    let hash: String = try #require(read.json("hash"))
    let new = Self.rules.replacingOccurrences(of: "if true", with: "if false")
    let saved = try world.request("PUT", ["text": .string(new), "hash": .string(hash)], own)
    #expect(saved.status == 200 && world.text == new, "\(saved.text)")
    #expect(try world.server.call("GET", "/a/x").status == 403)
    #expect(try FileManager.default.contentsOfDirectory(atPath: world.directory.path) == ["f.rules"])
    // The hash is that of the old text, so another change of the file is not lost.
    let stale = try world.request("PUT", ["text": .string(Self.rules), "hash": .string(hash)], own)
    #expect(stale.status == 400 && stale.message.contains("has changed") && world.text == new)
    let hash2: String = try #require(saved.json("hash"))
    let broken = try world.request("PUT", ["text": "service {", "hash": .string(hash2)], own)
    #expect(broken.status == 400 && broken.message.hasPrefix("Error compiling rules:") && world.text == new)
  }

  @Test func nobodyElseWritesAFile() throws {
    let world = try World()
    let read = try world.request("GET", nil, [("X-Hearth-Key", world.key)])
    let hash: String = try #require(read.json("hash"))
    let body: JSONNode = ["text": .string(Self.rules + "// changed\n"), "hash": .string(hash)]
    let attacks: [[(String, String)]] = [
      [], [("Authorization", "Bearer owner")], [("X-Hearth-Key", "")],
      [("X-Hearth-Key", String(repeating: "0", count: 32))],
      [("X-Hearth-Key", String(world.key.dropLast()))],
      [("X-Hearth-Key", world.key), ("Origin", "https://evil.example")],
      [("X-Hearth-Key", world.key), ("Origin", "null")],
      [("X-Hearth-Key", world.key), ("Host", "evil.example")],
      [("X-Hearth-Key", world.key), ("Sec-Fetch-Site", "cross-site")],
      [("X-Hearth-Key", world.key), ("Sec-Fetch-Site", "same-site")],
    ]
    for headers in attacks {
      #expect(try world.request("PUT", body, headers).status == 403, "\(headers)")
      #expect(try world.request("GET", nil, headers).status == 403, "\(headers)")
    }
    #expect(world.text == Self.rules)
    // The page does not contain the secret: any program on the machine can read the page.
    #expect(!(try world.server.request("GET", "/_/console/").text.contains(world.key)))
  }

  @Test func noKeyWithoutAFileToWrite() throws {
    for change in [
      { (configuration: inout HearthConfiguration) in configuration.rules = [] },
      { (configuration: inout HearthConfiguration) in configuration.hasConsole = false },
      { (configuration: inout HearthConfiguration) in configuration.allowsRemoteEmulator = true },
    ] {
      let world = try World(change: change)
      #expect(world.key.isEmpty)
      #expect(try world.request("GET", nil, [("X-Hearth-Key", "")]).status >= 400)
    }
  }

  @Test func eachStartHasItsOwnSecret() throws { #expect(try World().key != World().key) }
}
