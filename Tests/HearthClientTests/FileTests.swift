import Foundation
import HearthClient
import TestSupport
import Testing

/// Files beside the documents.
@Suite struct FileTests {
  private static let rules = """
    rules_version = '2';
    service firebase.storage {
      match /b/{bucket}/o {
        match /own/{uid}/{name} { allow read, write: if request.auth.uid == uid; }
      }
    }
    """

  @Test func filesAreStored() async throws {
    let hearth = try TestHearth(storageRules: Self.rules)
    let client = try hearth.client()
    let user = try await client.auth.signInAnonymously()
    let file = client.file("own/\(user.uid)/a b.txt")
    let stored = try await file.upload(Data("hello".utf8), contentType: "text/plain", metadata: ["for": "Ann"])
    #expect(stored.size == 5 && stored.contentType == "text/plain" && stored.metadata == ["for": "Ann"])
    #expect(try await file.download() == Data("hello".utf8))
    let metadata = try await file.metadata()
    #expect(metadata.path == "own/\(user.uid)/a b.txt" && metadata.md5 == "XUFAKrxLKna5cZ2REBfFkg==")
    // Whoever has the link needs no sign-in.
    let target = try #require(metadata.sharedTarget)
    let link = try #require(URL(string: hearth.url + target))
    #expect(try Data(contentsOf: link) == Data("hello".utf8))
    try await file.delete()
    await #expect { try await file.download() } throws: { ($0 as? HearthClientError)?.code == .notFound }
    await #expect { try await client.file("own/x/y").upload(Data()) } throws: {
      ($0 as? HearthClientError)?.code == .permissionDenied
    }
  }

  @Test(arguments: [0, 1, (4 << 20) + 1]) func filesGoFromDiskToDisk(size: Int) async throws {
    let hearth = try TestHearth(storageRules: Self.rules)
    let client = try hearth.client(.bearer("owner"))
    let directory = try TemporaryDirectory()
    let content = Data((0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31) })
    let source = URL(fileURLWithPath: directory.path + "/source")
    let copy = URL(fileURLWithPath: directory.path + "/copy")
    try content.write(to: source)
    try Data("old".utf8).write(to: copy)
    let file = client.file("shared/film.mp4")
    #expect(try await file.upload(from: source, contentType: "video/mp4").size == size)
    try await file.download(to: copy)
    #expect(try Data(contentsOf: copy) == content)
    await #expect(throws: HearthClientError.self) { try await client.file("none").download(to: copy) }
    #expect(try Data(contentsOf: copy) == content)
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() == ["copy", "source"])
  }
}
