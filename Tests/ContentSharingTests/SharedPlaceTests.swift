import ContentSharing
import Digests
import Foundation
import Glibc
import PostgresEngine
import Synchronization
import Testing
import TestSupport

/// The checks that every place of shared content must pass.
struct SharedPlace {
  let content: any SharedContent
  let directory: TemporaryDirectory

  /// Writes a file, and returns it with its digest.
  func file(_ bytes: [UInt8]) throws -> (path: String, digest: ContentDigest) {
    let path = directory.file("source-\(UInt64.random(in: 0 ... .max))")
    try Data(bytes).write(to: URL(fileURLWithPath: path))
    return (path, ContentDigest(bytes: try digest(bytes)))
  }

  func digest(_ bytes: [UInt8]) throws -> [UInt8] {
    var digest = MessageDigest(.sha256)
    bytes.withUnsafeBytes { digest.update($0) }
    let found = digest.finish()
    return try #require(found)
  }

  func bytes(of copy: SharedCopy) throws -> [UInt8]? {
    var bytes: [UInt8] = []
    return try content.fetch(copy) { (piece) throws(SharedContentError) in
      #expect(piece.count <= SharedContentLimits.pieceBytesMax)
      bytes += piece
    } ? bytes : nil
  }

  func all() throws -> Set<SharedCopy> {
    var copies: Set<SharedCopy> = []
    try content.forEachCopy { copies.formUnion($0) }
    return copies
  }

  /// Runs all checks on an empty place.
  func check() throws {
    #expect(try content.identity(claiming: nil) == nil)
    let identity: UInt64 = 0xFEDC_BA98_7654_3210
    #expect(try content.identity(claiming: identity) == identity)
    #expect(try content.identity(claiming: 1) == identity)
    var kept: [SharedCopy: [UInt8]] = [:]
    let mebibyte = 1 << 20
    for size in [0, 1, 1000, mebibyte - 1, mebibyte, mebibyte + 1, 3 * mebibyte + 5] {
      let bytes = (0..<size).map { UInt8(truncatingIfNeeded: $0 ^ $0 >> 8 ^ size) }
      let (path, digest) = try file(bytes)
      #expect(try content.copies(of: digest) == [])
      let copies = [SharedCopy(of: digest), SharedCopy(of: digest)]
      for copy in copies { try content.publish(copy, fromFile: path, size: size) }
      #expect(try Set(content.copies(of: digest)) == Set(copies))
      for copy in copies { #expect(try self.bytes(of: copy) == bytes, "\(size) bytes") }
      #expect(try self.bytes(of: SharedCopy(of: digest)) == nil)
      try content.remove(copies[0])
      try content.remove(copies[0])
      #expect(try content.copies(of: digest) == [copies[1]])
      #expect(try self.bytes(of: copies[0]) == nil)
      #expect(try self.bytes(of: copies[1]) == bytes)
      kept[copies[1]] = bytes
    }
    #expect(try all() == Set(kept.keys))
    // A file that is not what it should be leaves nothing.
    let (path, digest) = try file([1, 2, 3])
    #expect(throws: SharedContentError.self) {
      try content.publish(SharedCopy(of: digest), fromFile: path, size: 4)
    }
    #expect(throws: SharedContentError.self) {
      try content.publish(SharedCopy(of: digest), fromFile: path + "-none", size: 3)
    }
    #expect(try content.copies(of: digest) == [])
    try content.removeLeftovers()
    #expect(try all() == Set(kept.keys))
    // The error of the receiver ends a fetch.
    let large = try #require(kept.first { $0.value.count > 3 * mebibyte })
    #expect(throws: SharedContentError.full("the test")) {
      try content.fetch(large.key) { (_) throws(SharedContentError) in throw .full("the test") }
    }
    #expect(try bytes(of: large.key) == large.value)
    try storeAtOnce()
    #expect(try content.identity(claiming: nil) == identity)
  }

  /// Several threads store the same and other content.
  private func storeAtOnce() throws {
    let files = try (0..<12).map { try file(Array("\($0 % 6)".utf8)) }
    let failures = Mutex<[String]>([])
    let done = Observed(0)
    for (path, digest) in files {
      Thread {
        do { try content.publish(SharedCopy(of: digest), fromFile: path, size: 1) } catch {
          failures.withLock { $0.append("\(error)") }
        }
        done.update { $0 += 1 }
      }.start()
    }
    #expect(done.wait { $0 == files.count })
    #expect(failures.withLock { $0 } == [])
    for (_, digest) in files { #expect(try content.copies(of: digest).count == 2) }
  }
}

/// Shared content in a folder.
@Suite struct SharedFolderTests {
  private let directory: TemporaryDirectory
  private var folder: String { directory.file("shared") }

  init() throws {
    directory = try TemporaryDirectory()
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
  }

  @Test func itIsASharedPlace() throws {
    try SharedPlace(content: SharedFolder(folder), directory: directory).check()
  }

  @Test func aMissingFolderIsNotMade() throws {
    let content = SharedFolder(directory.file("none"))
    #expect(throws: SharedContentError.self) { try content.identity(claiming: 1) }
    let place = SharedPlace(content: content, directory: directory)
    let (path, digest) = try place.file([1])
    #expect(throws: SharedContentError.self) { try content.publish(SharedCopy(of: digest), fromFile: path, size: 1) }
    #expect(!FileManager.default.fileExists(atPath: directory.file("none")))
  }

  /// The mount point of a file system that is not mounted is an empty folder.
  @Test func aFolderWithoutIdentityTakesNothing() throws {
    let content = SharedFolder(folder)
    let (path, digest) = try SharedPlace(content: content, directory: directory).file([1])
    #expect(throws: SharedContentError.self) { try content.publish(SharedCopy(of: digest), fromFile: path, size: 1) }
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder).isEmpty)
  }

  @Test func aFolderOfOtherFilesIsRefused() throws {
    try "mine".write(toFile: folder + "/letter.txt", atomically: true, encoding: .utf8)
    let error = #expect(throws: SharedContentError.self) { try SharedFolder(folder).identity(claiming: 1) }
    #expect(error?.description.contains("empty folder") == true)
  }

  @Test func unfinishedFilesOfYesterdayAreRemoved() throws {
    let content = SharedFolder(folder)
    _ = try content.identity(claiming: 1)
    for name in ["old", "new"] {
      try "x".write(toFile: folder + "/incoming/\(name)", atomically: false, encoding: .utf8)
    }
    let yesterday = Date(timeIntervalSinceNow: -2 * 86400)
    try FileManager.default.setAttributes([.modificationDate: yesterday], ofItemAtPath: folder + "/incoming/old")
    try content.removeLeftovers()
    #expect(try FileManager.default.contentsOfDirectory(atPath: folder + "/incoming") == ["new"])
  }

  @Test func nodesThatBeginTogetherAgree() throws {
    let found = Mutex<Set<UInt64>>([])
    let done = Observed(0)
    for number in 1...8 {
      Thread { [folder] in
        if let identity = try? SharedFolder(folder).identity(claiming: UInt64(number)) {
          found.withLock { _ = $0.insert(identity) }
        }
        done.update { $0 += 1 }
      }.start()
    }
    #expect(done.wait { $0 == 8 })
    #expect(found.withLock { $0.count } == 1)
  }
}
