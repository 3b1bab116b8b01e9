import Foundation
import Glibc
import HearthServer
import IdentityService
import Testing
import TestSupport

@testable import HearthCLI

/// The providers of sign-in pages in the configuration, and the requests that the server sends to them.
@Suite struct SignInProviderTests {
  @Test func theFileContainsProvidersAsAnObject() throws {
    let text =
      #"{"providers": {"oidc.work": {"issuer": "https://id.example.com", "clientId": "web", "scopes": ["a"]}}}"#
    let values = try ConfigurationFile.parse(Array(text.utf8))
    #expect(
      values["providers"] == [#"{"oidc.work":{"issuer":"https://id.example.com","clientId":"web","scopes":["a"]}}"#]
        || values["providers"] == [
          #"{"oidc.work":{"clientId":"web","issuer":"https://id.example.com","scopes":["a"]}}"#
        ])
    // The printed configuration has the same meaning.
    var arguments = try Arguments([], for: .serve)
    arguments.adopt(["providers": Arguments.Setting(values: values["providers"] ?? [], origin: "x")])
    let printed = ConfigurationFile.effective(arguments, computed: [:])
    #expect(try ConfigurationFile.parse(printed) == values)
    #expect(throws: CommandFailure.self) { try ConfigurationFile.parse(Array(#"{"host": {"a": 1}}"#.utf8)) }
  }

  @Test(
    .needs(.hearth),
    arguments: [
      ("[]", "must be a JSON object"), (#"{"github.com": {"clientId": "a"}}"#, "github.com: is not supported"),
      (#"{"oidc.": {"clientId": "a"}}"#, "is not supported"), (#"{"google.com": 1}"#, "must be an object"),
      (#"{"google.com": {}}"#, "lacks \"clientId\""), (#"{"google.com": {"clientId": "a"}}"#, "clientSecretFile"),
      (#"{"apple.com": {"clientId": "a"}}"#, "teamId"), (#"{"oidc.x": {"clientId": "a"}}"#, "lacks \"issuer\""),
      (#"{"oidc.x": {"clientId": "a", "issuer": "http://id.example.com"}}"#, "must be an https URL"),
      (#"{"oidc.x": {"clientId": "a", "issuer": "https://id.example.com?a"}}"#, "must be an https URL"),
      (#"{"oidc.x": {"clientId": "a", "clientSecret": "b"}}"#, "unknown member \"clientSecret\""),
      (#"{"oidc.x": {"clientId": 1}}"#, "must be a string"),
      (
        #"{"oidc.x": {"clientId": "a", "issuer": "https://id.example.com", "scopes": [1]}}"#,
        "must be an array of strings"
      ),
      (
        #"{"oidc.x": {"clientId": "a", "issuer": "https://id.example.com", "clientSecretFile": "/missing"}}"#,
        "/missing cannot be read"
      ),
      (
        #"{"oidc.x": {"clientId": "a", "issuer": "https://id.example.com", "clientSecretFile": "/dev/null"}}"#,
        "must contain the client secret"
      ),
    ])
  func unusableProvidersAreRefused(text: String, reason: String) throws {
    let directory = try TemporaryDirectory()
    let file = try directory.write("providers.json", text)
    let (exit, output) = try HearthBinary.run([
      "serve", "--in-memory", "--project", "demo", "--port", "0", "--providers", file,
    ])
    #expect(exit != .code(0) && output.contains(reason), "\(output)")
  }

  @Test(arguments: ["db.example.com", "https://", "https://a/b", "ftp://a", "https://a b"])
  func publicURLsAreChecked(url: String) throws {
    var configuration = HearthConfiguration(storage: .inMemory)
    let arguments = try Arguments(["--public-url", url], for: .serve)
    #expect(throws: CommandFailure.self) { try SignInOptions.apply(arguments, to: &configuration) }
  }

  /// A provider that accepts connections and never responds.
  @Test func requestsToSlowProvidersEnd() throws {
    let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue), 0)
    defer { close(listener) }
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_addr.s_addr = UInt32(0x7F00_0001).bigEndian
    var length = socklen_t(MemoryLayout<sockaddr_in>.size)
    let status = withUnsafeMutablePointer(to: &address) { pointer in
      pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { address in
        bind(listener, address, length) == 0 && listen(listener, 8) == 0 && getsockname(listener, address, &length) == 0
      }
    }
    #expect(status)
    let port = UInt16(bigEndian: address.sin_port)
    #expect(throws: (any Error).self) {
      try DocumentFetch.send(
        ProviderRequest("http://127.0.0.1:\(port)/token"), authoritiesFile: nil, milliseconds: 200)
    }
  }
}
