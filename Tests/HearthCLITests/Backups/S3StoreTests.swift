import ContentSharing
import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// Buckets in a store of another project, which checks every signature.
@Suite(.needs(.hearth), .needs(.s3Store), .needs(.tool(.setpriv))) struct S3StoreTests {
  /// The store of all tests. Each has its own prefix.
  private static let shared = Result { try S3Store() }

  private let directory: TemporaryDirectory
  private let store: S3Store

  init() throws {
    directory = try TemporaryDirectory()
    store = try Self.shared.get()
  }

  private func bucket(_ name: String? = nil, prefix: String, secret: String? = nil) throws -> S3Bucket {
    let credentials = S3Credentials(id: store.accessKeyID, secret: secret ?? store.secretAccessKey, token: nil)
    return try S3Bucket(
      name ?? store.bucket, prefix: prefix, at: store.url,
      S3Signature(credentials: credentials, region: store.region), authoritiesFile: nil)
  }

  private func names(in bucket: S3Bucket, _ prefix: String = "") throws -> [String] {
    var names: [String] = []
    try bucket.list(prefix) { names += $0.map(\.name) }
    return names
  }

  @Test func objectsAreStoredListedAndRemoved() throws {
    let bucket = try bucket(prefix: "a b/ü+%/")
    #expect(try names(in: bucket) == [])
    #expect(try bucket.get("none") == nil)
    try bucket.remove("none")
    let contents: [String: [UInt8]] = [
      "empty": [], "a/b c": [1], "a/ü+&=?#%2F": Array("text".utf8), "a~b/'(*)!": Array(repeating: 7, count: 100_000),
    ]
    for (name, content) in contents { try bucket.put(name, content) }
    for (name, content) in contents { #expect(try bucket.get(name) == content, "\(name)") }
    #expect(try Set(names(in: bucket)) == Set(contents.keys))
    #expect(try Set(names(in: bucket, "a/")) == ["a/b c", "a/ü+&=?#%2F"])
    #expect(try names(in: self.bucket(prefix: "other/")) == [])
    try bucket.put("empty", [2])
    #expect(try bucket.get("empty") == [2])
    #expect(try bucket.putNew("empty", [3]) == false)
    #expect(try bucket.get("empty") == [2])
    try bucket.remove("empty")
    #expect(try bucket.get("empty") == nil)
    #expect(try bucket.putNew("empty", [3]))
    #expect(try bucket.get("empty") == [3])
  }

  /// A store lists at most 1,000 objects in a response.
  @Test func listsOfSeveralPagesAreWhole() async throws {
    let expected = (0..<1005).map { "\(10_000 + $0)" }
    let pages = try await onDedicatedThread { [self] in
      let bucket = try bucket(prefix: "pages/")
      for name in expected { try bucket.put(name, []) }
      var pages: [[String]] = []
      try bucket.list("") { pages.append($0.map(\.name)) }
      return pages
    }
    #expect(pages.flatMap { $0 } == expected)
    #expect(pages.count == 2)
  }

  @Test func refusalsNameTheRemedy() throws {
    let wrongSecret = #expect(throws: CommandFailure.self) { try bucket(prefix: "", secret: "wrong").put("a", []) }
    #expect(
      wrongSecret?.message.hasSuffix("check the access key and its secret") == true, "\(wrongSecret?.message ?? "")")
    let noBucket = #expect(throws: CommandFailure.self) { try bucket("no-such-bucket", prefix: "").put("a", []) }
    #expect(noBucket?.message.hasSuffix("create the bucket no-such-bucket first") == true, "\(noBucket?.message ?? "")")
    let noList = #expect(throws: CommandFailure.self) { try names(in: bucket("no-such-bucket", prefix: "")) }
    #expect(noList?.message == "the bucket s3://no-such-bucket does not exist; create it first")
  }

  @Test func backupsAreMadeListedAndRestored() throws {
    let key = try directory.write(
      "credentials",
      "[default]\naws_access_key_id=\(store.accessKeyID)\naws_secret_access_key=\(store.secretAccessKey)\n")
    func run(_ words: String...) throws -> String {
      let result = try HearthBinary.run(words)
      try #require(result.exit == .code(0), "\(words.joined(separator: " ")): \(result.output)")
      return result.output
    }
    func backups(_ words: String...) throws -> String {
      let place = ["--endpoint", store.url, "--region", store.region, "--key", key]
      let result = try HearthBinary.run(["backups"] + words + place)
      try #require(result.exit == .code(0), "\(words.joined(separator: " ")): \(result.output)")
      return result.output
    }
    let (data, place) = (directory.file("d"), "s3://\(store.bucket)/backups")
    _ = try run("import", Fixtures.path("dilly-daily"), "--data", data, "--project", "demo", "--quiet")
    _ = try backups("create", place, "--data", data, "--quiet")
    _ = try run("import", Fixtures.path("shop"), "--data", data, "--project", "demo", "--quiet")
    let text = try backups("create", place, "--data", data, "--incremental")
    #expect(text.hasPrefix("stored the incremental backup"), "\(text)")
    #expect(try backups("list", place).split(separator: "\n").count == 2)
    _ = try backups("restore", place, directory.file("r"), "--quiet")
    let restored = try run("export", "--data", directory.file("r"), "--project", "demo")
    #expect(try restored == run("export", "--data", data, "--project", "demo"))
  }

  /// The nodes of a cluster share the content of files in a bucket.
  @Test func contentIsShared() throws {
    let content = BucketContent("s3://", pieceBytes: 100) { [self] in try bucket(prefix: "files/") }
    let text = String(repeating: "0123456789", count: 25)
    let copy = SharedCopy(of: ContentDigest(bytes: [UInt8](repeating: 1, count: 32)))
    try content.publish(copy, fromFile: directory.write("source", text), size: text.utf8.count)
    #expect(try content.copies(of: copy.digest) == [copy])
    var bytes: [UInt8] = []
    #expect(try content.fetch(copy) { (piece) throws(SharedContentError) in bytes += piece })
    #expect(String(decoding: bytes, as: UTF8.self) == text)
    #expect(try content.identity(claiming: nil) == nil)
    #expect(try content.identity(claiming: 7) == 7)
    #expect(try content.identity(claiming: 8) == 7)
    try content.remove(copy)
    #expect(try content.copies(of: copy.digest) == [])
  }
}
