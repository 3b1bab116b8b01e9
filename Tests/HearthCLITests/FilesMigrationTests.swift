import Foundation
import Testing
import TestSupport

/// `hearth files cp --from`: files move from one server to another with their metadata.
@Suite(.needs(.hearth)) struct FilesMigrationTests {
  private let directory: TemporaryDirectory
  private static let bucket = "gs://shop.appspot.com/"

  init() throws { directory = try TemporaryDirectory() }

  private func succeed(_ words: [String]) throws -> String {
    let (exit, output) = try HearthBinary.run(words, timeoutSeconds: 120)
    #expect(exit == .code(0), "hearth \(words.joined(separator: " ")): \(output)")
    return output
  }

  private func client(_ server: HearthProcess) -> TestHTTPClient { TestHTTPClient(port: server.port) }

  /// Stores a file and sets its metadata.
  private func put(_ name: String, _ text: String, _ metadata: String, _ client: TestHTTPClient) throws {
    let owner = ("Authorization", "Bearer owner")
    let escaped = name.replacing("/", with: "%2F")
    let stored = try client.send(
      "POST", "/upload/storage/v1/b/shop.appspot.com/o?uploadType=media&name=\(escaped)",
      headers: [owner, ("Content-Type", "text/plain")], body: Array(text.utf8))
    #expect(stored.status == 200, "\(stored.text)")
    let patched = try client.send(
      "PATCH", "/storage/v1/b/shop.appspot.com/o/\(escaped)", headers: [owner, ("Content-Type", "application/json")],
      body: Array(metadata.utf8))
    #expect(patched.status == 200, "\(patched.text)")
  }

  private func metadata(_ name: String, _ client: TestHTTPClient) throws -> [String: Any] {
    let response = try client.send(
      "GET", "/storage/v1/b/shop.appspot.com/o/\(name.replacing("/", with: "%2F"))",
      headers: [("Authorization", "Bearer owner")])
    return try #require(try JSONSerialization.jsonObject(with: Data(response.body)) as? [String: Any])
  }

  @Test func anUnreachableSourceNamesItsOption() throws {
    let run = try HearthBinary.run([
      "files", "cp", "-r", Self.bucket, Self.bucket, "--from", "http://127.0.0.1:1", "--data", directory.file("data"),
      "--project", "shop",
    ])
    #expect(run.exit == .code(1), "\(run.output)")
    #expect(
      run.output.contains("no Hearth server responds at http://127.0.0.1:1")
        && run.output.contains("another with --from") && !run.output.contains("--server"), "\(run.output)")
  }

  @Test func filesAreCopiedWithTheirMetadata() throws {
    let source = try HearthProcess(arguments: ["--emulator", "--in-memory", "--project", "shop"])
    defer { source.process.stop() }
    let sourceClient = client(source)
    let settings =
      #"{"contentType": "image/png", "cacheControl": "max-age=60", "contentDisposition": "inline; filename=\"a\"","#
      + #""contentLanguage": "it", "metadata": {"owner": "ann", "firebaseStorageDownloadTokens": "t-1"}}"#
    try put("users/ann/a.png", "picture", settings, sourceClient)
    try put("empty", "", #"{"contentType": "text/x-empty"}"#, sourceClient)
    try put("large", String(repeating: "0123456789", count: 200_000), "{}", sourceClient)
    for number in 0..<20 { try put("many/\(number)", "\(number)", "{}", sourceClient) }
    let data = directory.file("data")
    let copy = [
      "files", "cp", "-r", Self.bucket, Self.bucket, "--from", "http://127.0.0.1:\(source.port)", "--data", data,
      "--project", "shop",
    ]
    #expect(try succeed(copy).contains("copied 23 files"))
    // Files that are there already are skipped, unless they differ.
    try put("empty", "full", #"{"contentType": "text/x-empty"}"#, sourceClient)
    try put("many/1", "1", #"{"cacheControl": "no-store"}"#, sourceClient)
    let again = try succeed(copy)
    #expect(again.contains("copied 2 files") && again.contains("skipped 21"), "\(again)")
    let target = try HearthProcess(arguments: ["--emulator", "--data", data, "--project", "shop"])
    defer { target.process.stop() }
    let targetClient = client(target)
    let fields = ["contentType", "cacheControl", "contentDisposition", "contentLanguage", "size", "crc32c", "md5Hash"]
    for name in ["users/ann/a.png", "empty", "large", "many/1"] {
      let (old, new) = (try metadata(name, sourceClient), try metadata(name, targetClient))
      for field in fields { #expect(old[field] as? String == new[field] as? String, "\(name) \(field)") }
      #expect(old["metadata"] as? [String: String] == new["metadata"] as? [String: String], "\(name)")
    }
    // A download URL stays valid.
    let download = try targetClient.send(
      "GET", "/v0/b/shop.appspot.com/o/users%2Fann%2Fa.png?alt=media&token=t-1")
    #expect(download.status == 200 && download.text == "picture", "\(download.status)")
    // And back, into another server.
    let third = try HearthProcess(arguments: ["--emulator", "--in-memory", "--project", "shop"])
    defer { third.process.stop() }
    let back = try succeed([
      "files", "cp", "-r", Self.bucket, Self.bucket, "--from", "http://127.0.0.1:\(target.port)", "--server",
      "http://127.0.0.1:\(third.port)", "--project", "shop",
    ])
    #expect(back.contains("copied 23 files"), "\(back)")
    let one = try succeed([
      "files", "cp", Self.bucket + "empty", Self.bucket + "one/", "--from", "http://127.0.0.1:\(target.port)",
      "--server", "http://127.0.0.1:\(third.port)", "--project", "shop",
    ])
    #expect(one.contains("copied 1 file"), "\(one)")
    #expect(try metadata("one/empty", client(third))["contentType"] as? String == "text/x-empty")
  }

  @Test(arguments: [
    (["./a", "gs:///a"], 64, "with --from, both SOURCE and DEST are in buckets"),
    (["gs:///a", "gs:///b", "--content-type", "text/plain"], 64, "remove '--content-type'"),
    (["gs:///a", "gs:///b"], 1, "127.0.0.1:9"),
  ])
  func wrongCommandLinesAreExplained(words: [String], code: Int, problem: String) throws {
    let options = ["--from", "http://127.0.0.1:9", "--data", directory.file("data"), "--project", "shop"]
    let (exit, output) = try HearthBinary.run(["files", "cp"] + words + options, timeoutSeconds: 60)
    #expect(exit == .code(Int32(code)) && output.contains(problem), "\(output)")
  }
}
