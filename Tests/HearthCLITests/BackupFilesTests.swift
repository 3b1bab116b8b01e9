import Foundation
import Glibc
import Testing
import TestSupport

/// `hearth backup`, `hearth check` and `hearth stats` with files, run as commands.
@Suite(.needs(.hearth)) struct BackupFilesTests {
  private static let owner = [("Authorization", "Bearer owner")]
  private let directory: TemporaryDirectory

  init() throws { directory = try TemporaryDirectory() }

  private func put(_ name: String, _ body: [UInt8], _ client: TestHTTPClient) throws {
    let reply = try client.send("POST", "/v0/b/b/o?name=\(name)", headers: Self.owner, body: body)
    try #require(reply.status == 200)
  }

  private func contents(_ name: String) -> [String] {
    let folder = directory.file("\(name)/files/content")
    return (FileManager.default.enumerator(atPath: folder)?.compactMap { $0 as? String } ?? [])
      .filter { $0.contains("/") }
  }

  @Test func backupsDoNotCopyDamageOfEarlierOnesAndReportLostMetadata() throws {
    let server = try HearthProcess(arguments: ["--emulator", "--data", directory.file("d"), "--project", "demo"])
    try put("kept", [UInt8](repeating: 7, count: 300_000), TestHTTPClient(port: server.port))
    server.process.stop()
    #expect(try HearthBinary.run(["backup", directory.file("b1"), "--data", directory.file("d")]).exit == .code(0))
    let file = directory.file("b1/files/content/\(try #require(contents("b1").first))")
    chmod(file, 0o600)
    let handle = try #require(FileHandle(forWritingAtPath: file))
    try handle.seek(toOffset: 1000)
    try handle.write(contentsOf: Data([8]))
    try handle.close()
    let second = ["backup", directory.file("b2"), "--data", directory.file("d"), "--earlier", directory.file("b1")]
    #expect(try HearthBinary.run(second).exit == .code(0))
    #expect(try HearthBinary.run(["check", directory.file("b2")]).exit == .code(0))

    try FileManager.default.removeItem(atPath: directory.file("b2/files/data.mdb"))
    for verb in [["check", directory.file("b2")], ["serve", "--data", directory.file("b2"), "--port", "0"]] {
      let refused = try HearthBinary.run(verb)
      #expect(
        refused.exit == .code(1) && refused.output.contains("restore the metadata from a backup"), "\(refused.output)")
    }
    #expect(!contents("b2").isEmpty)
  }

  @Test(.timeLimit(.minutes(10))) func backupsUnderLoadAreCompleteAndCanBeServed() async throws {
    let server = try HearthProcess(arguments: ["--emulator", "--data", directory.file("d"), "--project", "demo"])
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    try put("kept", [UInt8](repeating: 7, count: 300_000), client)
    let load = Thread { [directory] in
      let client = TestHTTPClient(port: server.port)
      var random = SplitMix(seed: 3)
      while !FileManager.default.fileExists(atPath: directory.file("over")) {
        let body = [UInt8](
          repeating: UInt8(Int.random(in: 0...255, using: &random)), count: Int.random(in: 1...50_000, using: &random))
        let name = "n\(Int.random(in: 0...4, using: &random))"
        guard (try? client.send("POST", "/v0/b/b/o?name=\(name)", headers: Self.owner, body: body)) != nil else {
          return
        }
      }
    }
    load.start()
    var earlier: [String] = []
    for round in 1...4 {
      let result = try HearthBinary.run(
        ["backup", directory.file("b\(round)"), "--data", directory.file("d")] + earlier)
      #expect(result.exit == .code(0), "\(result.output)")
      let checked = try HearthBinary.run(["check", directory.file("b\(round)")])
      #expect(checked.exit == .code(0) && checked.output.contains("files: ok, "), "\(checked.output)")
      #expect(!checked.output.contains(" unused"))
      earlier = ["--earlier", directory.file("b\(round)")]
    }
    // The original is intact too, while a server uses it.
    let own = try HearthBinary.run(["check", directory.file("d")])
    #expect(own.exit == .code(0), "\(own.output)")
    _ = try directory.write("over", "")
    let restored = try HearthProcess(arguments: ["--emulator", "--data", directory.file("b4"), "--project", "demo"])
    defer { restored.process.stop() }
    let reply = try TestHTTPClient(port: restored.port).send("GET", "/v0/b/b/o/kept?alt=media", headers: Self.owner)
    #expect(reply.body == [UInt8](repeating: 7, count: 300_000))
    let stats = try HearthBinary.run(["stats", "--server", "http://127.0.0.1:\(restored.port)", "--json"])
    let json = try #require(try JSONSerialization.jsonObject(with: Data(stats.output.utf8)) as? [String: Any])
    let files = try #require(json["files"] as? [String: Any])
    #expect(files["buckets"] as? Int == 1 && (files["objects"] as? Int ?? 0) > 1)
  }

  @Test func checkReportsDamageWithExitCode1() throws {
    try "in".write(toFile: directory.file("x.txt"), atomically: true, encoding: .utf8)
    let data = ["--data", directory.file("d"), "--project", "demo"]
    try #require(
      try HearthBinary.run(["files", "cp", directory.file("x.txt"), "gs:///notes/"] + data).exit == .code(0))
    try #require(try HearthBinary.run(["files", "cp", "gs:///notes/x.txt", "gs:///y"] + data).exit == .code(0))
    let stats = try HearthBinary.run(["stats", "--data", directory.file("d")])
    #expect(
      stats.output
        == "no databases\naccounts of demo: 0 accounts, 24 KiB\nfiles: 2 files, 4 B in 1 bucket; 2 B of content\n")
    let fine = try HearthBinary.run(["check", directory.file("d"), "--json"])
    let json = try #require(try JSONSerialization.jsonObject(with: Data(fine.output.utf8)) as? [String: Any])
    let files = try #require(json["files"] as? [String: Any])
    #expect(fine.exit == .code(0) && json["ok"] as? Bool == true)
    #expect(files["objects"] as? Int == 2 && files["contents"] as? Int == 1 && files["contentBytes"] as? Int == 2)
    let file = directory.file("d/files/content/\(try #require(contents("d").first))")
    try "on".write(toFile: file, atomically: false, encoding: .utf8)
    let damaged = try HearthBinary.run(["check", directory.file("d")])
    #expect(damaged.exit == .code(1))
    for name in ["notes/x.txt", "y"] {
      #expect(
        damaged.output.contains("demo.appspot.com/\(name): its content is not what was stored"), "\(damaged.output)")
    }
    let backup = try HearthBinary.run(["backup", directory.file("b"), "--data", directory.file("d")])
    #expect(backup.exit == .code(1) && backup.output.contains("damaged contents of files: 1;"), "\(backup.output)")
    #expect(contents("b") == contents("d"))
    // A truncated metadata file does not end the check.
    truncate(directory.file("d/files/data.mdb"), 4096)
    let cut = try HearthBinary.run(["check", directory.file("d")])
    #expect(cut.exit == .code(1) && cut.output.contains("files: damaged"), "\(cut.output)")
  }
}
