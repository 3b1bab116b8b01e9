import Foundation
import HearthServer
import Testing

/// Uploads of Cloud Storage's API that commit documents together with the object.
@Suite struct FileCommitRequestTests {
  private static let upload = "/upload/storage/v1/b/bucket/o?uploadType=multipart"
  private static let object = "/storage/v1/b/bucket/o/scan"

  private static func put(
    _ server: TestServer, _ commit: String, content: String = "%PDF", target: String = upload,
    headers: [(String, String)] = []
  ) throws -> TestServer.Response {
    let body = [
      "--cut", "Content-Type: application/json", "", #"{"name": "scan", "commit": \#(commit)}"#, "--cut",
      "Content-Type: application/pdf", "", content, "--cut--", "",
    ].joined(separator: "\r\n")
    return try server.call(
      "POST", target, body, headers: [("Content-Type", "multipart/related; boundary=cut")] + headers)
  }

  private static func write(_ path: String, _ number: Int, _ condition: String = "") -> String {
    #"{"update": {"name": "\#(TestServer.name)/\#(path)", "fields": {"n": {"integerValue": "\#(number)"}}}\#(condition)}"#
  }

  private static func number(_ server: TestServer, _ path: String) throws -> String? {
    try server.call("GET", "/\(path)", headers: [("Authorization", "Bearer owner")])
      .json("fields", "n", "integerValue")
  }

  @Test func uploadStoresObjectAndDocuments() throws {
    let server = try TestServer()
    let reply = try Self.put(
      server, #"{"writes": [\#(Self.write("scans/a", 1)), \#(Self.write("scans/b", 2))]}"#)
    #expect(reply.status == 200, "\(reply.text)")
    #expect(reply.json("name") == "scan" && reply.json("size") == "4")
    #expect(reply.json("commit", "writeResults", as: [Any].self)?.count == 2)
    let time: String = try #require(reply.json("commit", "commitTime"))
    #expect(reply.json("commit", "writeResults", 1, "updateTime") == time)
    #expect(try Self.number(server, "scans/a") == "1")
    #expect(try Self.number(server, "scans/b") == "2")
    #expect(try server.call("GET", Self.object + "?alt=media").text == "%PDF")
  }

  @Test func refusalOfEitherPartChangesNothing() throws {
    let server = try TestServer()
    #expect(try Self.put(server, #"{"writes": [\#(Self.write("scans/a", 1))]}"#).status == 200)
    for (commit, target, status, text) in [
      (Self.write("scans/a", 2, #", "currentDocument": {"exists": false}"#), Self.upload, 409, "already exists"),
      (
        Self.write("scans/none", 2, #", "currentDocument": {"exists": true}"#), Self.upload, 404,
        "No document to update"
      ),
      (Self.write("scans/a", 2), Self.upload + "&ifGenerationMatch=0", 412, "ifGenerationMatch"),
      (Self.write("scans/a", 2, #", "other": 1"#), Self.upload, 400, "other"),
      (#"{"delete": "scans/a"}"#, Self.upload, 400, "commit: "),
      ("", Self.upload, 400, "nothing to commit"),
      (
        Self.write("scans/a", 2) + "," + #"{"delete": "projects/q/databases/(default)/documents/a/b"}"#, Self.upload,
        400, "one database"
      ),
    ] as [(String, String, Int, String)] {
      let reply = try Self.put(server, #"{"writes": [\#(commit)]}"#, content: "other", target: target)
      #expect(reply.status == status, "\(commit): \(reply.status)")
      #expect(reply.message.contains(text), "\(commit): \(reply.message)")
      #expect(try Self.number(server, "scans/a") == "1")
      #expect(try server.call("GET", Self.object + "?alt=media").text == "%PDF")
    }
  }

  @Test func onlyAdministratorsMayCommitWithAMultipartUpload() throws {
    let server = try TestServer()
    let commit = #"{"writes": [\#(Self.write("scans/a", 1))]}"#
    let user = try Self.put(server, commit, headers: [("Authorization", "Bearer nonsense")])
    #expect([401, 403].contains(user.status))
    let admin = [("Authorization", "Bearer owner")]
    let firebase = try Self.put(
      server, commit, target: "/v0/b/bucket/o?name=scan", headers: admin + [("X-Goog-Upload-Protocol", "multipart")])
    let resumable = try server.call(
      "POST", "/upload/storage/v1/b/bucket/o?uploadType=resumable", #"{"name": "scan", "commit": \#(commit)}"#)
    for reply in [firebase, resumable] {
      #expect(reply.status == 400 && reply.message.contains("uploadType=multipart"), "\(reply.text)")
    }
    #expect(try Self.number(server, "scans/a") == nil)
    #expect(try server.call("GET", Self.object).status == 404)
  }
}
