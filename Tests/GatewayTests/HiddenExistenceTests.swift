import Accounts
import Foundation
import GatewayCore
import HearthServer
import Testing
import TestSupport

/// A caller without permission cannot tell whether a document or an object exists: status, header fields and body of
/// each response are the same for both.
@Suite struct HiddenExistenceTests {
  /// A production server with the document `secrets/here` and the file `here`, whose rules deny everything.
  private static func server() throws -> TestServer {
    let directory = try TemporaryDirectory()
    defer { withExtendedLifetime(directory) {} }
    let documents = directory.file("firestore.rules")
    let files = directory.file("storage.rules")
    try """
    rules_version = '2';
    service cloud.firestore { match /databases/{d}/documents { match /{path=**} { allow read, write: if false; } } }
    """.write(toFile: documents, atomically: true, encoding: .utf8)
    try """
    rules_version = '2';
    service firebase.storage { match /b/{b}/o { match /{path=**} {
      allow read, write: if request.resource.md5Hash == 'x' || resource.md5Hash == 'x';
    } } }
    """.write(toFile: files, atomically: true, encoding: .utf8)
    let server = try TestServer(.production) { configuration in
      configuration.rules = [HearthConfiguration.RulesFile(documents)]
      configuration.storageRules = files
    }
    let admin = [("Authorization", "Bearer \(server.server.accounts.serviceKeys.localAccessToken())")]
    let document = #"{"fields": {"n": {"integerValue": "1"}}}"#
    #expect(try server.call("PATCH", "/secrets/here", document, headers: admin).status == 200)
    let upload = "/upload/storage/v1/b/p.appspot.com/o?uploadType=media&name=here"
    #expect(try server.request("POST", upload, "content", headers: admin).status == 200)
    return server
  }

  /// Queries and header fields that set conditions on what exists.
  private static let conditions: [(query: String, header: (String, String)?)] = [
    ("", nil), ("ifGenerationMatch=0", nil), ("ifGenerationMatch=1", nil), ("ifGenerationNotMatch=0", nil),
    ("ifMetagenerationMatch=1", nil), ("ifMetagenerationNotMatch=1", nil), ("alt=media", nil),
    ("alt=media&token=x", nil), ("generation=1", nil), ("uploadType=media", nil), ("uploadType=resumable", nil),
    ("currentDocument.exists=true", nil), ("currentDocument.exists=false", nil),
    ("currentDocument.updateTime=2020-01-01T00:00:00Z", nil), ("updateMask.fieldPaths=n", nil),
    ("", ("If-Match", "*")), ("", ("If-None-Match", "*")), ("", ("X-Goog-If-Generation-Match", "0")),
    ("", ("If-Modified-Since", "Sun, 01 Jan 2045 00:00:00 GMT")), ("", ("Range", "bytes=0-1")),
    ("", ("X-Goog-Upload-Protocol", "resumable")),
  ]

  private static let bodies = [
    "{}", #"{"fields": {"n": {"integerValue": "2"}}}"#, #"{"metadata": {"a": "b"}}"#, #"{"contentType": 7}"#,
  ]

  @Test func responsesAreTheSameForExistingAndMissingNames() throws {
    let server = try Self.server()
    var count = 0
    for route in server.server.endpoints where route.access == .caller && route.kind != .grpc {
      for pattern in route.paths.map(\.text) where Self.namesOne(pattern) {
        for method in Self.methods(route) {
          for condition in Self.conditions {
            for body in method == "GET" || method == "HEAD" || method == "DELETE"
              ? [nil] : Self.bodies.map(Optional.init)
            {
              let responses = try ["here", "gone"].map { name in
                let target = Self.path(pattern, name) + (condition.query.isEmpty ? "" : "?" + condition.query)
                return try server.request(method, target, body, headers: condition.header.map { [$0] } ?? [])
              }
              count += 1
              let (here, gone) = (Self.text(responses[0]), Self.text(responses[1]))
              #expect(
                here == gone, "\(method) \(pattern) \(condition.query) \(condition.header?.0 ?? "") \(body ?? "")")
            }
          }
        }
      }
    }
    // Commits name their documents in the body.
    for operation in ["update", "delete", "verify"] {
      for exists in ["", #", "currentDocument": {"exists": true}"#, #", "currentDocument": {"exists": false}"#] {
        for call in [":commit", ":batchWrite"] {
          let responses = try ["here", "gone"].map { name in
            let document = "\(TestServer.name)/secrets/\(name)"
            let value = operation == "update" ? #"{"name": "\#(document)"}"# : #""\#(document)""#
            let write = #"{"writes": [{"\#(operation)": \#(value)\#(exists)}]}"#
            return try server.call("POST", call, write)
          }
          count += 1
          #expect(Self.text(responses[0]) == Self.text(responses[1]), "\(call) \(operation) \(exists)")
        }
      }
    }
    #expect(count > 500, "few requests were compared: \(count)")
  }

  /// Whether a pattern names a document or an object.
  private static func namesOne(_ pattern: String) -> Bool {
    pattern.contains("/documents/{") || pattern.contains("/o/{") || pattern.hasSuffix("/o")
  }

  private static func methods(_ route: any Endpoint) -> [String] {
    route.methods == .all
      ? ["GET", "POST", "PUT", "PATCH", "DELETE"] : route.methods.text.components(separatedBy: ", ")
  }

  private static func path(_ pattern: String, _ name: String) -> String {
    let captures = [
      "{project}": "p", "{database}": "(default)", "{document...}": "secrets/\(name)", "{collection...}": "secrets",
      "{bucket}": "p.appspot.com", "{object}": name, "{object...}": name,
      "{path...}": pattern.contains("/documents/") ? "secrets/\(name)" : name,
    ]
    var path = pattern
    for (capture, text) in captures { path = path.replacingOccurrences(of: capture, with: text) }
    return path
  }

  /// Everything that a client sees of a response, without the name, the date and the IDs of uploads, which are random.
  private static func text(_ response: TestServer.Response) -> String {
    let headers = response.headers.filter { $0.name != "date" }.map { "\($0.name): \($0.value)" }
    return (["\(response.status)"] + headers + [response.text]).joined(separator: "\n")
      .replacingOccurrences(of: "gone", with: "here").replacing(/[0-9a-f]{32}/, with: "ID")
  }
}
