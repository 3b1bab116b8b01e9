import ContentSharing
import DocumentModel
import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// The content of files in a bucket.
@Suite struct BucketContentTests {
  private let directory: TemporaryDirectory
  private let bucket = MemoryBucket()

  init() throws { directory = try TemporaryDirectory() }

  /// Returns the place with small pieces. Its clients are the same object, which one thread uses.
  private func content() -> BucketContent {
    // Safe because one thread uses the content and its clients.
    nonisolated(unsafe) let bucket = bucket
    let now = bucket.now
    return BucketContent("memory://", pieceBytes: 100, now: { now }) { bucket }
  }

  private func publish(_ text: String, _ copy: SharedCopy, _ content: BucketContent) throws {
    try content.publish(copy, fromFile: directory.write("source", text), size: text.utf8.count)
  }

  private func text(_ copy: SharedCopy, _ content: BucketContent) throws -> String? {
    var bytes: [UInt8] = []
    let exists = try content.fetch(copy) { (piece) throws(SharedContentError) in bytes += piece }
    return exists ? String(decoding: bytes, as: UTF8.self) : nil
  }

  private static func copy(_ byte: UInt8) -> SharedCopy {
    SharedCopy(of: ContentDigest(bytes: [UInt8](repeating: byte, count: 32)))
  }

  @Test(arguments: [0, 1, 99, 100, 101, 1000])
  func copiesAreWhole(size: Int) throws {
    let content = content()
    let text = String((0..<size).map { Character(UnicodeScalar(UInt8(97 + $0 % 26))) })
    let copies = [Self.copy(1), Self.copy(1), Self.copy(2)]
    for copy in copies { try publish(text, copy, content) }
    #expect(try Set(content.copies(of: copies[0].digest)) == Set(copies[..<2]))
    for copy in copies { #expect(try self.text(copy, content) == text) }
    var all: Set<SharedCopy> = []
    try content.forEachCopy { all.formUnion($0) }
    #expect(all == Set(copies))
    try content.remove(copies[0])
    try content.remove(copies[0])
    #expect(try self.text(copies[0], content) == nil)
    #expect(try self.text(copies[1], content) == text)
    try content.remove(copies[1])
    try content.remove(copies[2])
    #expect(bucket.objects.isEmpty)
  }

  @Test func identityIsStoredOnce() throws {
    #expect(try content().identity(claiming: nil) == nil)
    #expect(try content().identity(claiming: 7) == 7)
    #expect(try content().identity(claiming: 8) == 7)
    #expect(try content().identity(claiming: nil) == 7)
    bucket.objects["hearth-files-id"]?.content = Array("damage".utf8)
    #expect(throws: SharedContentError.self) { try content().identity(claiming: nil) }
  }

  @Test func interruptedPublicationIsNotWholeAndGoesAfterADay() throws {
    struct Broken: Error {}
    let copy = Self.copy(3)
    bucket.beforePut = { if $0.hasSuffix("/2") || $0.contains("+") { throw Broken() } }
    #expect(throws: SharedContentError.self) { try publish(String(repeating: "x", count: 250), copy, content()) }
    bucket.beforePut = { _ in }
    let whole = Self.copy(4)
    try publish(String(repeating: "y", count: 250), whole, content())
    #expect(try content().copies(of: copy.digest) == [])
    #expect(bucket.objects.count == 6)
    try content().removeLeftovers()
    #expect(bucket.objects.count == 6)
    bucket.now = Timestamp(uncheckedMicroseconds: bucket.now.microseconds + 86_401 * 1_000_000)
    try content().removeLeftovers()
    #expect(bucket.objects.count == 4)
    #expect(try text(whole, content())?.count == 250)
  }

  @Test func failuresSayWhetherToTryAgain() throws {
    var temporary = CommandFailure.failed("busy")
    temporary.httpStatus = 503
    temporary.isTemporary = true
    var denied = CommandFailure.failed("denied")
    denied.httpStatus = 403
    var full = CommandFailure.failed("full")
    full.httpStatus = 507
    for (failure, expected) in [
      (temporary, SharedContentError.unavailable("busy")), (denied, .refused("denied")), (full, .full("full")),
    ] {
      bucket.beforePut = { _ in throw failure }
      #expect(throws: expected) { try publish("a", Self.copy(5), content()) }
    }
  }

  // MARK: Options

  private func place(_ words: String...) throws -> (any SharedContent)? {
    try SharedFilesOption.place(Arguments(words, for: Self.command)) { SharedFolder("/postgres") }
  }

  private static var command: Command {
    Command(name: "test", summary: "", options: SharedFilesOption.options, run: { _ in 0 })
  }

  @Test func optionsChooseThePlace() throws {
    #expect(try place() == nil)
    #expect(try place("--shared-files", "/srv/files")?.place == "/srv/files")
    #expect(try place("--shared-files", "postgres")?.place == "/postgres")
    for words in [["--shared-files", "files"], ["--shared-files", "/a", "--shared-files-region", "x"]] {
      #expect(throws: CommandFailure.self) {
        try SharedFilesOption.place(Arguments(words, for: Self.command)) { SharedFolder("/") }
      }
    }
  }
}
