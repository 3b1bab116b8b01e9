import Testing

@testable import HearthCLI

/// The configuration as operators see it in the console.
@Suite struct ConsoleOptionsTests {
  private static func shown(_ json: String) -> String {
    String(decoding: ConsoleOptions.shown(Array(json.utf8)), as: UTF8.self)
  }

  @Test(arguments: [
    (#"{"port": 8080, "tls-cert": null, "rules": [], "quiet": false}"#, #"{"port":8080,"quiet":false}"#),
    (#"{"mail-command": "send --password hunter2"}"#, #"{"mail-command":"hidden"}"#),
    (#"{"providers": "{\"google.com\": {\"clientSecret\": \"x\"}}"}"#, #"{"providers":"hidden"}"#),
    (#"{"identity-provider": ["google.com=a,b"]}"#, #"{"identity-provider":"hidden"}"#),
    (#"{"backup-to": "s3://user:pass@store/b?key=x"}"#, #"{"backup-to":"s3://hidden@store/b?hidden"}"#),
    (#"{"public-url": "https://db.example.com/?a@b"}"#, #"{"public-url":"https://db.example.com/?hidden"}"#),
    (#"{"action-url": "https://example.com/a@b"}"#, #"{"action-url":"https://example.com/a@b"}"#),
    (#"{"rules": ["a.rules", "b=b.rules"]}"#, #"{"rules":["a.rules","b=b.rules"]}"#), ("no JSON", "{}"),
  ])
  func secretsAreHidden(configuration: String, shown: String) {
    #expect(Self.shown(configuration) == shown)
  }

  /// Every option is either known to contain no secret, or hidden. A new option has to be added here.
  @Test func everyOptionIsConsidered() {
    let known: Set<String> = [
      "providers", "mail-command", "identity-provider", "trust-issuer", "tls-key", "backup-key", "cluster-key",
      "shared-files-key",
    ]
    let suspicious = Command.serve.options.filter { $0.value != nil }.map(\.name).filter { name in
      ["key", "secret", "password", "token", "command", "provider", "credential"].contains { name.contains($0) }
    }
    #expect(Set(suspicious).subtracting(known).isEmpty)
    #expect(known.isSubset(of: Command.serve.options.map(\.name)))
  }
}
