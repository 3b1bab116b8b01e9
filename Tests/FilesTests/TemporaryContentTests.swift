import Foundation
import Glibc
import Testing
import TestSupport

@testable import Files

/// Directories that exist as long as their process: those of killed servers are removed, those in use are kept.
@Suite struct TemporaryContentTests {
  private static let prefix = "files-"

  private static func make(in root: TemporaryDirectory) throws -> ContentDirectory {
    try ContentDirectory.temporary(in: root.path, prefix: prefix, bytesMax: 1 << 20)
  }

  @Test func directoryIsRemovedWithItsOwner() throws {
    let root = try TemporaryDirectory()
    do {
      let contents = try Self.make(in: root)
      try Data("x".utf8).write(to: URL(filePath: contents.path + "/incoming/x"))
      let names = try root.fileNames
      #expect(names.count == 1 && names.allSatisfy { $0.hasPrefix(Self.prefix) })
    }
    #expect(try root.fileNames.isEmpty)
  }

  /// A process ID would not show who uses a directory: processes in other PID namespaces cannot see each other.
  @Test func onlyAbandonedDirectoriesAreRemoved() throws {
    let root = try TemporaryDirectory()
    let used = try Self.make(in: root)
    let usedName = try #require(try root.fileNames.first)
    // A killed process leaves a directory without a lock. Its ID may be that of a running process.
    let abandoned = root.file("\(Self.prefix)\(getpid())-1")
    for folder in ["", "/content", "/content/ab", "/incoming"] { mkdir(abandoned + folder, 0o700) }
    try Data("x".utf8).write(to: URL(filePath: abandoned + "/content/ab/cd"))
    mkdir(root.file("other-1"), 0o700)
    ContentDirectory.removeAbandoned(in: root.path, prefix: Self.prefix)
    #expect(try root.fileNames == [usedName, "other-1"])
    #expect(FileManager.default.fileExists(atPath: used.path + "/incoming"))
  }

  @Test func concurrentRemovalNeverTakesAUsedDirectory() throws {
    let root = try TemporaryDirectory()
    let errors = onThreads(4) { thread -> String? in
      for round in 0..<200 {
        if thread == 0 {
          ContentDirectory.removeAbandoned(in: root.path, prefix: Self.prefix)
        } else {
          do {
            let contents = try Self.make(in: root)
            let isThere = FileManager.default.fileExists(atPath: contents.path + "/incoming")
            if !isThere { return "round \(round) of thread \(thread): the directory is gone" }
          } catch { return "\(error)" }
        }
      }
      return nil
    }
    #expect(errors.compactMap { $0 } == [])
    #expect(try root.fileNames.isEmpty)
  }
}
