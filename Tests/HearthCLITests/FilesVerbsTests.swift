import Foundation
import Testing
import TestSupport

@testable import HearthCLI

/// `hearth files`, run as a command: with a server, and with a data directory.
@Suite(.needs(.hearth)) struct FilesVerbsTests {
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func files(_ arguments: String...) throws -> (exit: ProcessExit?, output: String) {
    try HearthBinary.run(["files"] + arguments + ["--data", directory.file("d"), "--project", "demo"])
  }

  private func make(_ path: String, _ bytes: [UInt8]) throws {
    let url = URL(fileURLWithPath: directory.file(path))
    try FileManager.default.createDirectory(at: url.deletingLastPathComponent(), withIntermediateDirectories: true)
    try Data(bytes).write(to: url)
  }

  /// Every file below a folder with its content.
  private func tree(_ name: String) throws -> [String: Data] {
    var tree: [String: Data] = [:]
    let root = directory.file(name)
    for case let path as String in try #require(FileManager.default.enumerator(atPath: root)) {
      var isFolder: ObjCBool = false
      _ = FileManager.default.fileExists(atPath: "\(root)/\(path)", isDirectory: &isFolder)
      if !isFolder.boolValue { tree[path] = FileManager.default.contents(atPath: "\(root)/\(path)") }
    }
    return tree
  }

  @Test func anExportedFolderEqualsTheImportedOne() throws {
    try make("in/a/clip.mp4", (0..<700_000).map { UInt8(truncatingIfNeeded: $0 &* 31 >> 3) })
    try make("in/a/b/c/note.txt", Array("hello".utf8))
    try make("in/Überraschung & more?#%.json", Array("{}".utf8))
    try make("in/empty", [])
    try make("in/.hidden", [1])
    let imported = try files("cp", "-r", directory.file("in"), "gs:///media")
    #expect(imported.exit == .code(0) && imported.output == "copied 5 files, 684 KiB\n", "\(imported.output)")
    let exported = try files("cp", "--recursive", "gs:///media/", directory.file("out"))
    #expect(exported.exit == .code(0), "\(exported.output)")
    #expect(try tree("out") == tree("in"))
    // Export the whole bucket over the existing files.
    #expect(try files("cp", "-r", "gs:///", directory.file("all")).exit == .code(0))
    #expect(try files("cp", "-r", "gs:///", directory.file("all")).exit == .code(0))
    #expect(try tree("all").count == 5)
    let list = try files("ls", "--recursive", "--json", "media/")
    let lines = try list.output.split(separator: "\n").map {
      try #require(try JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])
    }
    #expect(
      lines.compactMap { $0["name"] as? String } == [
        "media/.hidden", "media/a/b/c/note.txt", "media/a/clip.mp4", "media/empty", "media/Überraschung & more?#%.json",
      ])
    #expect(
      lines.compactMap { $0["contentType"] as? String } == [
        "application/octet-stream", "text/plain", "video/mp4", "application/octet-stream", "application/json",
      ])
    let table = try files("ls", "media/").output.split(separator: "\n").map(String.init)
    #expect(table.contains { $0.hasPrefix("media/a/") } && table.contains { $0.contains("0 B") }, "\(table)")
  }

  @Test func allBucketsAreExportedAndImported() throws {
    try make("in/a.txt", Array("a".utf8))
    for bucket in ["demo.appspot.com", "demo.firebasestorage.app"] {
      let result = try files("cp", directory.file("in/a.txt"), "gs://\(bucket)/a.txt", "--make-bucket")
      #expect(result.exit == .code(0), "\(result.output)")
    }
    #expect(try files("ls", "gs://").output == "gs://demo.appspot.com/\ngs://demo.firebasestorage.app/\n")
    #expect(try files("cp", "-r", "gs://", directory.file("out")).output == "copied 2 files, 2 B\n")
    let exported = try tree("out")
    #expect(Set(exported.keys) == ["demo.appspot.com/a.txt", "demo.firebasestorage.app/a.txt"])
    // A file beside the folders of the buckets, and a link, are skipped and reported.
    try make("out/note", [1])
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("out/linked"), withDestinationPath: directory.file("in"))
    let other = ["--data", directory.file("other"), "--project", "demo"]
    let imported = try HearthBinary.run(["files", "cp", "-r", directory.file("out"), "gs://"] + other)
    #expect(imported.exit == .code(1))
    #expect(imported.output.contains("copied 2 files, 2 B"), "\(imported.output)")
    #expect(imported.output.split(separator: "\n").count { $0.contains("not a folder with the name of a bucket") } == 2)
    let again = try HearthBinary.run(["files", "cp", "-r", "gs://", directory.file("again")] + other)
    #expect(again.exit == .code(0), "\(again.output)")
    #expect(try tree("again") == exported)
  }

  @Test func filesAreCopiedOneByOneListedAndRemoved() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory", "--project", "demo"])
    defer { server.process.stop() }
    func run(_ arguments: String...) throws -> (exit: ProcessExit?, output: String) {
      try HearthBinary.run(
        ["files"] + arguments + ["--server", "http://127.0.0.1:\(server.port)", "--project", "demo"])
    }
    try make("x.pdf", Array("%PDF".utf8))
    #expect(try run("cp", directory.file("x.pdf"), "gs://b/docs/").exit == .code(0))
    #expect(try run("cp", directory.file("x.pdf"), "gs:///y", "--content-type", "text/x-own").exit == .code(0))
    #expect(try run("ls", "gs://b/docs/").output.contains("docs/x.pdf  4 B   application/pdf"))
    #expect(try run("ls", "--bucket", "b", "--json").output == #"{"folder":"docs/"}"# + "\n")
    #expect(try run("ls", "y").output.contains("text/x-own"))
    #expect(try run("cp", "gs://b/docs/x.pdf", "-").output == "%PDF")
    #expect(try run("cp", "gs://b/docs/x.pdf", directory.file("z.pdf")).exit == .code(0))
    #expect(try run("cp", "gs://b/docs/x.pdf", directory.path + "/").exit == .code(0))
    #expect(try directory.text("z.pdf") == "%PDF")
    #expect(try run("cp", "gs://b/docs/x.pdf", "gs://b/more/").exit == .code(0))
    #expect(try run("cp", "-r", "gs://b/", "gs:///copy").output == "copied 2 files, 8 B\n")
    #expect(try run("rm", "copy/more/x.pdf", "y").output == "removed 2 files\n")
    #expect(try run("rm", "-r", "gs:///").output == "removed 1 file\n")
    // Mistakes are reported, and change nothing.
    for (arguments, exit, text) in [
      (["cp", "gs://b/none", "-"], 1, "the file gs://b/none does not exist"),
      (["cp", "-r", "gs://b/none", directory.file("none")], 1, "no files exist below gs://b/none/"),
      (["cp", directory.file("nowhere"), "gs://b/x"], 65, "No such file"),
      (["cp", directory.path, "gs://b/x"], 65, "is a folder; add --recursive"),
      (["cp", "-r", directory.file("x.pdf"), "gs://b/x"], 65, "is not a folder"),
      (["cp", "a", "b"], 64, "gs://BUCKET/NAME"),
      (["cp", "gs://", "b"], 64, "add --recursive"),
      (["cp", "-r", "gs://", "gs:///x"], 64, "only to or from a folder"),
      (["rm", "-r", "gs://"], 64, "denotes all buckets"),
      (["cp", "-r", "gs://b/docs", "gs://b/docs/more"], 64, "choose a DEST outside SOURCE"),
      (["cp", directory.file("x.pdf"), "gs://b/a\nb"], 64, "line break"),
      (["ls", "gs://-/"], 64, "does not name a valid bucket"),
      (["ls", "gs://nobody"], 1, "the bucket nobody does not exist"),
      (["rm", "none"], 1, "the file gs://demo.appspot.com/none does not exist"),
      (["rm", "gs://b"], 64, "add --recursive"),
      (["rm", "-x", "none"], 64, "unknown option '-x'"),
    ] as [([String], Int32, String)] {
      let result = try HearthBinary.run(
        ["files"] + arguments + ["--server", "http://127.0.0.1:\(server.port)", "--project", "demo"])
      #expect(result.exit == .code(exit), "\(arguments): \(result.output)")
      #expect(result.output.contains(text), "\(arguments): \(result.output)")
    }
  }

  @Test func downloadsStayInTheTargetFolder() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--in-memory", "--project", "demo"])
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    // A slash and a combining mark after it, or a character before it, are one `Character`. The system compares bytes.
    let bad = [
      "x/../../up", "x/../\u{301}up", "x/link/\u{301}f", "x//etc", "x/./y", "x/f/below", "x/link/in",
      "x/" + String(repeating: "n", count: 256),
    ]
    for name in bad + ["x/f", "x/good", "x/dir/", "x/d/\u{600}/"] {
      let target = "/v0/b/b/o?name=" + ServerClient.encode(name.utf8)
      let body: [UInt8] = name.utf8.last == UInt8(ascii: "/") ? [] : [7]
      let reply = try client.send("POST", target, headers: [("Authorization", "Bearer owner")], body: body)
      try #require(reply.status == 200, "\(name)")
    }
    try make("away/kept", [1])
    try FileManager.default.createDirectory(atPath: directory.file("to"), withIntermediateDirectories: true)
    try FileManager.default.createSymbolicLink(
      atPath: directory.file("to/link"), withDestinationPath: directory.file("away"))
    let result = try HearthBinary.run([
      "files", "cp", "-r", "gs://b/x", directory.file("to"), "--server", "http://127.0.0.1:\(server.port)",
    ])
    #expect(result.exit == .code(1))
    for name in bad { #expect(result.output.contains("skipped gs://b/\(name): "), "\(name): \(result.output)") }
    #expect(result.output.contains("copied 2 files"))
    #expect(
      try Set(FileManager.default.contentsOfDirectory(atPath: directory.file("to"))) == [
        "f", "good", "d", "dir", "link",
      ])
    #expect(try FileManager.default.contentsOfDirectory(atPath: directory.file("to/d")) == ["\u{600}"])
    let marked = ["a", "\u{301}b", "\u{200D}c", "\u{FE0F}"]
    #expect(try TargetFolder.parts(of: marked.joined(separator: "/")) == marked)
    #expect(FileLocation.lastPart("a/\u{301}b") == "\u{301}b")
    #expect(try FileLocation("gs://b/\u{301}n", bucket: "c") == .stored(bucket: "b", name: "\u{301}n"))
    #expect(try tree("away") == ["kept": Data([1])])
    #expect(!FileManager.default.fileExists(atPath: directory.file("up")))
  }

  @Test func importsSkipFilesThatCannotBeStored() throws {
    try make("in/ok", [1])
    try make("in/a\nb", [1])
    try FileManager.default.createSymbolicLink(atPath: directory.file("in/link"), withDestinationPath: "/etc/passwd")
    mkfifo(directory.file("in/pipe"), 0o600)
    let result = try files("cp", "-r", directory.file("in"), "gs:///")
    #expect(result.exit == .code(1))
    for reason in ["symbolic links are not followed", "it is not a regular file", "line break"] {
      #expect(result.output.contains(reason), "\(result.output)")
    }
    #expect(try files("ls", "--json").output.split(separator: "\n").count == 1)
  }

  @Test func namesDoNotControlTheTerminal() throws {
    let name = "\u{1B}[31m\u{7}\u{202E}x"
    try make("in/\(name)", [1])
    try make("in/a\n\u{1B}b", [1])
    try make("in/y", [1])
    let shown = #"\u{1b}[31m\u{7}\u{202e}x"#
    let runs = [
      (try files("cp", "-r", directory.file("in"), "gs:///"), #"in/a\n\u{1b}b: "#),
      (try files("ls"), shown),
      (try files("rm", name + "z"), "the file gs://demo.appspot.com/\(shown)z does not exist"),
      (try files("cp", "gs:///\(name)z", "-"), "gs://demo.appspot.com/\(shown)z"),
      (try files("cp", "\(name)z", "gs:///"), "\(shown)z: No such file"),
      (try files("cp", "-r", "gs:///", directory.file("in/y")), #"in/y"#),
    ]
    for (run, text) in runs {
      #expect(run.output.contains(text), "\(run.output)")
      #expect(!run.output.utf8.contains { $0 < 0x20 && $0 != UInt8(ascii: "\n") }, "\(text)")
    }
    func names(_ output: String) throws -> [String] {
      try output.split(separator: "\n").compactMap {
        try (JSONSerialization.jsonObject(with: Data($0.utf8)) as? [String: Any])?["name"] as? String
      }
    }
    #expect(try names(files("ls", "--json").output).contains(name))
    // Reports of damage contain the names of objects.
    let content = directory.file("d/files/content")
    for case let path as String in try #require(FileManager.default.enumerator(atPath: content)) where path.count > 60 {
      try FileManager.default.removeItem(atPath: "\(content)/\(path)")
    }
    let check = try HearthBinary.run(["check", directory.file("d")])
    #expect(check.exit == .code(1) && check.output.contains(shown), "\(check.output)")
    #expect(!check.output.utf8.contains(0x1B))
    let json = try HearthBinary.run(["check", directory.file("d"), "--json"])
    let report = try JSONSerialization.jsonObject(with: Data(json.output.utf8)) as? [String: Any]
    let problems = (report?["files"] as? [String: Any])?["problems"] as? [String] ?? []
    #expect(problems.contains { $0.contains(name) }, "\(json.output)")
  }

  @Test func bucketsOfADataDirectoryAreCreatedOnRequest() throws {
    try make("x", [1])
    #expect(try files("ls").output.contains("the data directory"))
    let refused = try files("cp", directory.file("x"), "gs://own/x")
    #expect(refused.exit == .code(1) && refused.output.contains("bucket does not exist: own"), "\(refused.output)")
    for _ in 0..<2 {
      #expect(try files("cp", directory.file("x"), "gs://own/x", "--make-bucket").exit == .code(0))
    }
    // While a server uses the directory.
    let server = try HearthProcess(arguments: ["--data", directory.file("d"), "--project", "demo"])
    defer { server.process.stop() }
    #expect(try files("ls", "gs://own/", "--json").output.contains(#""name":"x""#))
    #expect(try files("rm", "x", "--bucket", "own").exit == .code(0))
  }
}

/// The formatting of sizes.
@Suite struct ByteCountTests {
  @Test(arguments: [
    (0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (102_399, "100 KiB"), (700_000, "684 KiB"),
    (1_048_000, "1023 KiB"), (1_048_575, "1 MiB"), (5 << 30, "5 GiB"), (Int.max, "8 EiB"),
  ])
  func sizesUseTheLargestFittingUnit(bytes: Int, text: String) { #expect(ByteCount.text(bytes) == text) }
}
