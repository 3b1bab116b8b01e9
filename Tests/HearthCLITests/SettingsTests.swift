import DocumentModel
import Testing

@testable import HearthCLI

/// The parsing of `hearth.json`, of server addresses and of fields to change.
@Suite struct SettingsTests {
  @Test func readsTheConfigurationFile() throws {
    let text = #"{"port": 9090, "emulator": true, "quiet": false, "data": "d", "import": ["a", "b"], "host": null}"#
    let values = try ConfigurationFile.parse(Array(text.utf8))
    #expect(values == ["port": ["9090"], "emulator": [""], "data": ["d"], "import": ["a", "b"]])
    #expect(try ConfigurationFile.parse(Array(#"{"import": "a"}"#.utf8)) == ["import": ["a"]])
  }

  @Test(arguments: [
    (#"{"prot": 1}"#, #"unknown option "prot"; did you mean "port"?"#),
    (#"[1]"#, "must be a JSON object of options"),
    (#"{"port": true}"#, #""port" must be a string"#),
    (#"{"emulator": "yes"}"#, #""emulator" must be true or false"#),
    (#"{"import": 1.5}"#, #""import" must be a string or an array of strings"#),
    (#"{"import": ["a", 1]}"#, #""import" must be a string or an array of strings"#),
    (#"{"port": "#, "JSON"),
  ])
  func refusesConfigurationFiles(text: String, message: String) {
    let failure = #expect(throws: CommandFailure.self) { try ConfigurationFile.parse(Array(text.utf8)) }
    #expect(failure?.exitCode == 65)
    #expect(failure?.message.hasPrefix("hearth.json: ") == true)
    #expect(failure?.message.contains(message) == true, "\(failure?.message ?? "")")
  }

  @Test(arguments: [
    ("http://127.0.0.1:8080", "127.0.0.1", 8080), ("localhost:81/", "localhost", 81), ("http://[::1]:9", "::1", 9),
    ("example.test", "example.test", 80), ("https://a.example.test", "a.example.test", 443),
    ("https://[::1]:9/", "::1", 9),
  ])
  func readsServerAddresses(text: String, host: String, port: Int) throws {
    let address = try ServerClient.address(text)
    #expect(address.isSecure == text.hasPrefix("https:"))
    #expect(address.host == host)
    #expect(address.port == port)
  }

  @Test(arguments: [
    "https://a/b", "https://", "ftp://a", "http://", "a:0", "a:b", "a b:1", "http://a/b", "a:99999", "a\r\nX: y:1",
  ])
  func refusesServerAddresses(text: String) {
    #expect(throws: CommandFailure.self) { try ServerClient.address(text) }
  }

  @Test func gathersTheFieldsOfAnUpdate() throws {
    let database = try #require(DatabaseID(project: "demo"))
    let key = try #require(DocumentKey(try ResourcePath("users/ann")))
    var change = try FieldChange([#"a.b="x=y""#, "`odd name`=[1, 2.5]"], of: key, in: database)
    try change.remove("c.d")
    #expect(
      change.map
        == MapValue([
          ("a", .map(MapValue([("b", .string("x=y"))]))), ("odd name", .array([.integer(1), .double(2.5)])),
        ]))
    #expect(change.paths.map(\.text) == ["a.b", "`odd name`", "c.d"])
    for word in ["novalue", "a..b=1", "a=1 bare words", "a="] {
      #expect(throws: CommandFailure.self, "\(word)") { try FieldChange([word], of: key, in: database) }
    }
  }
}
