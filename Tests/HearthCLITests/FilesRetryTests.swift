import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// Copies of files over connections that break.
@Suite(.needs(.hearth)) struct FilesRetryTests {
  private let directory: TemporaryDirectory
  private let server: HearthProcess

  init() throws {
    directory = try TemporaryDirectory()
    server = try HearthProcess(arguments: ["--emulator", "--in-memory", "--project", "demo"])
  }

  /// A client, and the pauses that it made, in milliseconds.
  private final class Attempt {
    let client: FilesClient
    private(set) var pauses: [Int] = []
    private(set) var reasons: [String] = []
    var atPause: () throws -> Void = {}
    private var isServerReady: () -> Bool = { true }

    /// A client of a proxy. Between two tries, it waits until the server has noticed a broken connection.
    convenience init(through proxy: CuttingProxy, partBytes: Int = 1 << 20) throws {
      try self.init(port: proxy.port, partBytes: partBytes)
      isServerReady = { [unowned proxy] in proxy.waitUntilUploadIsFree() }
    }

    init(port: UInt16, partBytes: Int = 1 << 20) throws {
      var client = try FilesClient(
        Arguments(["a", "b", "--server", "http://127.0.0.1:\(port)", "--project", "demo"], for: .filesCopy))
      client.partBytes = partBytes
      self.client = client
      client.retries.wait = { [unowned self] milliseconds in
        pauses.append(milliseconds)
        try? atPause()
        #expect(isServerReady(), "the server did not notice that the connection broke")
      }
      client.retries.onPause = { [unowned self] _, reason in reasons.append(reason) }
    }

    func upload(_ path: String, as name: String) throws -> [Int] {
      var shown: [Int] = []
      try client.upload(LocalSource(path), as: name, in: "b", type: "a/b") { shown.append($0) }
      return shown
    }

    func download(_ name: String) throws -> [UInt8] {
      var bytes: [UInt8] = []
      let object = try #require(try client.object(name, in: "b"))
      try client.download(object) { bytes += $0 }
      return bytes
    }
  }

  private static func content(_ count: Int, seed: Int) -> [UInt8] {
    // Build the content from blocks, because doing it by bytes would take longer than the copies.
    let block = (0..<1021).map { UInt8(truncatingIfNeeded: ($0 &+ seed) &* 2_654_435_761 >> 13) }
    var bytes: [UInt8] = []
    while bytes.count < count {
      bytes += block
      bytes.append(UInt8(truncatingIfNeeded: bytes.count >> 10))
    }
    return Array(bytes.prefix(count))
  }

  private func make(_ name: String, _ bytes: [UInt8]) throws -> String {
    let path = directory.file(name)
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    return path
  }

  @Test func anUploadResumesAtTheServersPosition() throws {
    defer { server.process.stop() }
    let size = 3 << 20
    let content = Self.content(size, seed: 1)
    let path = try make("f", content)
    let proxy = try CuttingProxy(
      to: server.port, [.cut(up: 300_000), .cut(up: 1_800_000), .answer(503), .cut(up: 1), .cut(down: 10)])
    let attempt = try Attempt(through: proxy, partBytes: 512 << 10)
    let shown = try attempt.upload(path, as: "f")
    #expect(proxy.isThrough)
    #expect(attempt.pauses.count >= 4 && attempt.pauses.allSatisfy { $0 >= 500 }, "\(attempt.pauses)")
    #expect(try Attempt(port: server.port).download("f") == content)
    // The client sent again only the bytes that had not arrived.
    #expect(proxy.upBytes < size + 1_500_000, "\(proxy.upBytes)")
    // The shown progress decreased by the lost bytes, and ended at the size of the file.
    #expect(zip(shown, shown.dropFirst()).contains { $0 > $1 })
    #expect(shown.last == size && shown.allSatisfy { (0...size).contains($0) })
  }

  @Test func aSmallFileIsSentAgainCompletely() throws {
    defer { server.process.stop() }
    let path = try make("f", Self.content(200_000, seed: 2))
    let proxy = try CuttingProxy(to: server.port, [.cut(up: 100_000), .answer(429), .answer(408), .answer(500)])
    let attempt = try Attempt(through: proxy)
    _ = try attempt.upload(path, as: "f")
    #expect(attempt.pauses == [500, 1000, 2000, 4000])
    #expect(try Attempt(port: server.port).download("f") == Self.content(200_000, seed: 2))
  }

  /// This includes a file in a single request without any response yet.
  @Test(arguments: [200_000, 3 << 20]) func anUploadResumesWhenItsServerIsBack(size: Int) throws {
    defer { server.process.stop() }
    let content = Self.content(size, seed: 8)
    let path = try make("f", content)
    let proxy = try CuttingProxy(to: server.port, [.cut(up: size / 2)])
    let attempt = try Attempt(through: proxy)
    attempt.atPause = { [unowned attempt] in
      switch attempt.pauses.count {
      case 1: try proxy.refuse()
      case 3: try proxy.resume()
      default: break
      }
    }
    _ = try attempt.upload(path, as: "f")
    #expect(attempt.pauses.starts(with: [500, 1000, 2000]), "\(attempt.pauses)")
    let refusals = attempt.reasons.filter { $0.contains("no Hearth server responds") }
    #expect(refusals.count == 2, "\(attempt.reasons)")
    #expect(try Attempt(port: server.port).download("f") == content)
  }

  /// The server no longer knows the upload.
  @Test func aLostUploadStartsAgain() throws {
    defer { server.process.stop() }
    let content = Self.content(3 << 20, seed: 3)
    let path = try make("f", content)
    let proxy = try CuttingProxy(to: server.port, [.cut(up: 1_500_000), .answer(404)])
    let attempt = try Attempt(through: proxy)
    _ = try attempt.upload(path, as: "f")
    #expect(attempt.pauses == [500, 1000])
    #expect(try Attempt(port: server.port).download("f") == content)
  }

  @Test func aDownloadResumesAfterTheReceivedBytes() throws {
    defer { server.process.stop() }
    let size = 3 << 20
    let content = Self.content(size, seed: 4)
    _ = try Attempt(port: server.port).upload(make("f", content), as: "f")
    // The first connection also requests the metadata.
    let proxy = try CuttingProxy(
      to: server.port, [.cut(down: 700_000), .cut(down: 200), .answer(503), .cut(down: 1_500_000)])
    let attempt = try Attempt(through: proxy)
    #expect(try attempt.download("f") == content)
    #expect(proxy.isThrough)
    // The third connection transferred so much that the tries were counted from the start.
    #expect(attempt.pauses == [500, 1000, 2000, 500], "\(attempt.pauses)")
    #expect(proxy.downBytes < size + 100_000, "\(proxy.downBytes)")
    for name in ["empty", "f"] {
      _ = try Attempt(port: server.port).upload(make(name, []), as: name)
      #expect(try Attempt(port: server.port).download(name) == [])
    }
  }

  @Test func partsOfTwoContentsAreNeverJoined() throws {
    defer { server.process.stop() }
    let direct = try Attempt(port: server.port)
    _ = try direct.upload(make("f", Self.content(3 << 20, seed: 5)), as: "f")
    let other = try make("g", Self.content(3 << 20, seed: 6))
    let proxy = try CuttingProxy(to: server.port, [.cut(down: 1_000_000)])
    let attempt = try Attempt(through: proxy)
    attempt.atPause = { _ = try direct.upload(other, as: "f") }
    let failure = #expect(throws: CommandFailure.self) { try attempt.download("f") }
    #expect(failure?.httpStatus == 404)
    #expect(attempt.pauses == [500])
  }

  @Test func permanentFailuresAreNotRetried() throws {
    defer { server.process.stop() }
    let path = try make("f", Self.content(3 << 20, seed: 7))
    // No server ever responded, so the address is assumed to be wrong.
    let none = try Attempt(port: 1)
    #expect(throws: CommandFailure.self) { try none.upload(path, as: "f") }
    #expect(none.pauses == [])
    // Refusals.
    for status in [400, 401, 403, 404, 412, 501, 507] {
      let proxy = try CuttingProxy(to: server.port, [.answer(status)])
      let attempt = try Attempt(through: proxy)
      #expect(throws: (any Error).self) { try attempt.upload(path, as: "f") }
      #expect(attempt.pauses == [], "\(status)")
    }
    let proxy = try CuttingProxy(to: server.port, [CuttingProxy.Step](repeating: .answer(503), count: 100))
    let busy = try Attempt(through: proxy)
    let failure = #expect(throws: CommandFailure.self) { try busy.upload(path, as: "f") }
    #expect(failure?.httpStatus == 503 && busy.pauses == [500, 1000, 2000, 4000, 8000])
    #expect(busy.reasons.count == 5 && busy.reasons.allSatisfy { $0.contains("responded 503") }, "\(busy.reasons)")
    // A local failure ends the copy at once and cancels the upload.
    let shrinking = try Attempt(port: server.port)
    let source = try LocalSource(path)
    truncate(path, 2 << 20)
    let shorter = #expect(throws: CommandFailure.self) {
      try shrinking.client.upload(source, as: "f", in: "b", type: "a/b") { _ in }
    }
    #expect(shorter?.message.contains("was truncated") == true && shrinking.pauses == [])
    #expect(try shrinking.client.object("f", in: "b") == nil)
  }

  @Test func aRemovalSucceedsIfItsResponseIsLost() throws {
    defer { server.process.stop() }
    _ = try Attempt(port: server.port).upload(make("f", [1]), as: "f")
    let proxy = try CuttingProxy(to: server.port, [.cut(down: 1)])
    let attempt = try Attempt(through: proxy)
    #expect(try attempt.client.delete("f", in: "b"))
    #expect(try attempt.client.delete("f", in: "b") == false)
  }
}
