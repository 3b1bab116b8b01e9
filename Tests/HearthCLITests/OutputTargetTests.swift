import Foundation
import Glibc
import Testing
import TestSupport

@testable import HearthCLI

/// Outputs that are no regular files: a verb writes them and never replaces them by a file.
@Suite struct OutputTargetTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func link(_ name: String, to target: String) throws {
    try FileManager.default.createSymbolicLink(atPath: directory.file(name), withDestinationPath: target)
  }

  /// A named pipe with a reader, so that a writer does not wait.
  private final class Pipe {
    let path: String
    private let descriptor: Int32

    init(_ path: String) throws {
      self.path = path
      guard mkfifo(path, 0o600) == 0 else { throw POSIXError(.EIO) }
      descriptor = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC)
    }

    deinit { close(descriptor) }

    var exists: Bool {
      var status = stat()
      return lstat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFIFO
    }

    /// The bytes that writers have written, at most what a pipe holds.
    func read() -> String {
      var buffer = [UInt8](repeating: 0, count: 64 << 10)
      let count = Glibc.read(descriptor, &buffer, buffer.count)
      return String(decoding: buffer.prefix(max(0, count)), as: UTF8.self)
    }
  }

  @Test func linksAreFollowedAndPipesAreWrittenInPlace() throws {
    let pipe = try Pipe(directory.file("pipe"))
    let file = try directory.write("file", "x")
    try FileManager.default.createDirectory(atPath: directory.file("folder"), withIntermediateDirectories: true)
    try link("absolute", to: file)
    try link("relative", to: "folder/../file")
    try link("two", to: "relative")
    try link("dangling", to: "folder/new")
    try link("to-pipe", to: "pipe")
    try link("to-folder", to: "folder")
    try link("loop", to: "loop")
    func target(_ name: String) throws -> OutputTarget { try OutputTarget(directory.file(name)) }
    #expect(try target("file") == .file(file))
    #expect(try target("new") == .file(directory.file("new")))
    #expect(try target("absolute") == .file(file))
    #expect(try target("relative") == .file(directory.file("folder/../file")))
    #expect(try target("two") == .file(directory.file("folder/../file")))
    #expect(try target("dangling") == .file(directory.file("folder/new")))
    #expect(try target("pipe") == .inPlace(pipe.path))
    #expect(try target("to-pipe") == .inPlace(directory.file("to-pipe")))
    for name in ["folder", "to-folder", "loop", "file/x"] {
      #expect(throws: CommandFailure.self, "\(name)") { try target(name) }
    }
    #expect(try OutputTarget("/proc/self/fd/1") == .standardOutput)
  }

  @Test func anOutputReplacesTheTargetOfALink() throws {
    try FileManager.default.createDirectory(atPath: directory.file("folder"), withIntermediateDirectories: true)
    _ = try directory.write("folder/file", "old")
    try link("link", to: "folder/file")
    let output = try OutputFile(directory.file("link"))
    try output.write(Array("new".utf8))
    #expect(try directory.text("folder/file") == "old")
    try output.finish()
    #expect(try directory.text("folder/file") == "new")
    #expect(try FileManager.default.destinationOfSymbolicLink(atPath: directory.file("link")) == "folder/file")
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.file("folder")) == ["file"])
  }

  @Test(.needs(.hearth)) func verbsWriteToPipes() throws {
    let data = ["--data", directory.file("d"), "--project", "demo"]
    func run(_ words: String...) throws -> (exit: ProcessExit?, output: String) { try HearthBinary.run(words + data) }
    let tree = try directory.write("tree.json", #"{"$collections": ["notes"], "notes": {"a": {"n": 1}}}"#)
    #expect(try run("import", tree).exit == .code(0))
    #expect(try run("files", "cp", directory.write("a.txt", "content of a"), "gs:///pipe").exit == .code(0))
    #expect(try run("accounts", "create", "--email", "ann@example.com").exit == .code(0))
    let pipe = try Pipe(directory.file("pipe"))
    for (words, part) in [
      (["export", "--format", "ndjson", "--output", pipe.path], "\"path\""),
      (["accounts", "export", "--output", pipe.path], "ann@example.com"),
      (["files", "cp", "gs:///pipe", pipe.path], "content of a"),
    ] {
      let done = try HearthBinary.run(words + data)
      #expect(done.exit == .code(0) && pipe.exists, "\(words[0]): \(done.output)")
      #expect(pipe.read().contains(part), "\(words[0])")
    }
    // The name comes from the server.
    for words in [["gs:///pipe", "\(directory.path)/"], ["gs:///pipe", directory.path]] {
      let refused = try run("files", "cp", words[0], words[1])
      #expect(refused.exit == .code(1) && pipe.exists, "\(refused.output)")
      #expect(refused.output.contains("a device, pipe or socket of that name exists"), "\(refused.output)")
    }
    let names = try directory.fileNames
    #expect(!names.contains { $0.hasSuffix(".part") }, "\(names)")
    // Another name of standard output.
    let copied = try run("files", "cp", "gs:///pipe", "/proc/self/fd/1")
    #expect(copied.exit == .code(0) && copied.output == "content of a", "\(copied.output)")
    let exported = try run("export", "--output", "/proc/self/fd/1")
    #expect(exported.exit == .code(0) && exported.output.contains("\"notes\""), "\(exported.output)")
  }
}
