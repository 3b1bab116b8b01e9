import Foundation
import HearthClient
import Synchronization
import Testing
import TestSupport

/// Uploads, downloads and metadata of files.
@Suite struct FileTests {
  private static let rules = """
    rules_version = '2';
    service firebase.storage {
      match /b/{bucket}/o {
        match /own/{uid}/{name} { allow read, write: if request.auth.uid == uid; }
      }
    }
    """

  @Test func storesAFile() async throws {
    let hearth = try TestHearth(storageRules: Self.rules)
    let client = try hearth.client()
    let user = try await client.auth.signInAnonymously()
    let file = client.file("own/\(user.uid)/a b.txt")
    let stored = try await file.upload(Data("hello".utf8), contentType: "text/plain", metadata: ["for": "Ann"])
    #expect(stored.size == 5 && stored.contentType == "text/plain" && stored.metadata == ["for": "Ann"])
    #expect(try await file.download() == Data("hello".utf8))
    let metadata = try await file.metadata()
    #expect(metadata.path == "own/\(user.uid)/a b.txt" && metadata.md5 == "XUFAKrxLKna5cZ2REBfFkg==")
    // The link works without sign-in.
    let target = try #require(metadata.sharedTarget)
    let link = try #require(URL(string: hearth.url + target))
    #expect(try Data(contentsOf: link) == Data("hello".utf8))
    try await file.delete()
    await #expect { try await file.download() } throws: { ($0 as? HearthClientError)?.code == .notFound }
    await #expect { try await client.file("own/x/y").upload(Data()) } throws: {
      ($0 as? HearthClientError)?.code == .permissionDenied
    }
  }

  @Test(arguments: [0, 1, (4 << 20) + 1]) func copiesLocalFiles(size: Int) async throws {
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

  @Test func rejectsAFileThatIsTruncatedDuringTheUpload() async throws {
    let directory = try TemporaryDirectory()
    let source = URL(fileURLWithPath: directory.path + "/source")
    try Data(count: (4 << 20) + 10).write(to: source)
    let requests = Mutex(0)
    let transport = ScriptedTransport { request in
      if requests.withLock({
        $0 += 1; return $0
      }) > 5 {
        throw HearthClientError(.permissionDenied, "too many")
      }
      if request.headers["X-Goog-Upload-Command"] == "upload" {
        try FileHandle(forWritingTo: source).truncate(atOffset: 4 << 20)
      }
      return HearthResponse(status: 200, headers: ["x-goog-upload-url": "http://h/v0/b/u"])
    }
    let file = Hearth(transport: transport, project: "demo").file("film.mp4")
    await #expect { try await file.upload(from: source) } throws: {
      ($0 as? HearthClientError)?.code == .invalidArgument
    }
  }

  /// A transport without streams, so that a download cannot read one into memory.
  private struct NoStreams: HearthTransport {
    let inner: URLSessionTransport
    func send(_ request: HearthRequest) async throws -> HearthResponse { try await inner.send(request) }
    func open(_ request: HearthRequest) async throws -> HearthStream { throw HearthClientError(.unimplemented, "") }
    func download(_ request: HearthRequest, to file: URL) async throws -> HearthResponse {
      try await inner.download(request, to: file)
    }
  }

  @Test func downloadsReplaceFilesInOneStep() async throws {
    let hearth = try TestHearth(storageRules: Self.rules)
    let transport = NoStreams(inner: URLSessionTransport(url: try #require(URL(string: hearth.url))))
    let file = Hearth(transport: transport, project: "demo", credentials: .bearer("owner")).file("a.txt")
    try await file.upload(Data("new".utf8))
    let directory = try TemporaryDirectory()
    let copy = URL(fileURLWithPath: directory.path + "/copy")
    try Data("old".utf8).write(to: copy)
    let old = try FileHandle(forReadingFrom: copy)
    try await file.download(to: copy)
    #expect(try Data(contentsOf: copy) == Data("new".utf8))
    #expect(try old.readToEnd() == Data("old".utf8))
    // A directory cannot be replaced, and stays unchanged.
    let folder = URL(fileURLWithPath: directory.path + "/folder")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: false)
    try Data("kept".utf8).write(to: folder.appendingPathComponent("kept"))
    await #expect(throws: POSIXError.self) { try await file.download(to: folder) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder.path) == ["kept"])
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.path).sorted() == ["copy", "folder"])
  }
}
