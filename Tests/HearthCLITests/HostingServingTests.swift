import Foundation
import Glibc
import Testing
import TestSupport

@testable import HearthCLI

/// `--hosting` and `hosting` of `firebase.json`, with the built program.
@Suite(.needs(.hearth)) struct HostingServingTests {
  /// A server that runs in a folder.
  private final class Session {
    let process: ServerProcess
    let port: UInt16
    /// Exists as long as the server.
    private let directory: TemporaryDirectory

    init(in directory: TemporaryDirectory, _ options: String = "", before: String = "true") throws {
      self.directory = directory
      let binary = try #require(HearthBinary.path)
      process = try ServerProcess(
        executable: "/bin/sh",
        arguments: [
          "-c", "cd '\(directory.path)' && \(before) && exec '\(binary)' serve --emulator --port 0 \(options)",
        ])
      let text = try process.waitForLine(prefix: "hearth: listening on http://127.0.0.1:", timeoutSeconds: 30)
      port = try #require(UInt16(text))
    }

    deinit { process.stop() }

    func get(_ path: String, _ headers: [(String, String)] = []) throws -> String {
      try TestHTTPClient(port: port).send("GET", path, headers: headers).text
    }
  }

  private func app(_ text: String = #"{"hosting": {"public": "dist"}}"#) throws -> TemporaryDirectory {
    let directory = try TemporaryDirectory()
    try FileManager.default.createDirectory(atPath: directory.file("dist"), withIntermediateDirectories: true)
    _ = try directory.write("dist/index.html", "app")
    _ = try directory.write("firebase.json", text)
    return directory
  }

  @Test func firebaseJSONIsEnough() throws {
    let session = try Session(in: try app())
    #expect(try session.get("/") == "app")
    #expect(session.process.output.contains("taken from firebase.json: --hosting firebase.json"))
    #expect(!session.process.output.contains("does not have"))
  }

  @Test func folderGetsTheRulesOfFirebaseJSON() throws {
    let rules = #"{"hosting": {"public": "./dist/", "rewrites": [{"source": "**", "destination": "/index.html"}]}}"#
    #expect(try Session(in: try app(rules), "--hosting dist").get("/x") == "app")
    let directory = try app(rules)
    _ = try directory.write("own.json", "{}")
    let session = try Session(in: directory, "--hosting dist --config own.json")
    #expect(try session.get("/") == "app")
    #expect(try session.get("/x") == "Not Found\n")
  }

  @Test func rulesThatAreNotValidAreNamed() throws {
    let text = #"""
      {"hosting": {"public": "dist", "redirects": [{"regex": "(", "destination": "/"}],
       "rewrites": [{"source": "/api/**", "function": "api"}]}}
      """#
    let session = try Session(in: try app(text))
    #expect(try session.get("/") == "app")
    let output = session.process.output
    #expect(output.contains("firebase.json: hosting.redirects[0].regex the regular expression is not valid"))
    #expect(output.contains("hosting.rewrites[0] sends requests to \"function\""))
  }

  @Test func hearthJSONNamesAppsByHost() throws {
    let directory = try app(#"{"hosting": [{"target": "a", "public": "x"}, {"target": "b", "public": "dist"}]}"#)
    _ = try directory.write(
      "hearth.json", #"{"hosting": {"b.example.com": "firebase.json#b", "c.example.com": "dist"}}"#)
    let session = try Session(in: directory)
    #expect(try session.get("/", [("Host", "b.example.com")]) == "app")
    #expect(try session.get("/") == "Ok\n")
  }

  /// Clients that do not read their responses cannot use up the open files of the process.
  @Test func aReloadReadsTheListOfAppsAgain() throws {
    let directory = try app()
    _ = try directory.write("hearth.json", #"{"hosting": {"b.example.com": "dist"}}"#)
    let session = try Session(in: directory)
    func status(of host: String) throws -> String { try session.get("/", [("Host", host)]) }
    #expect(try status(of: "b.example.com") == "app")
    #expect(try status(of: "c.example.com") == "Ok\n")
    _ = try directory.write("hearth.json", #"{"hosting": {"c.example.com": "dist"}}"#)
    session.process.send(signal: SIGHUP)
    try #require(try OtherProcess.eventually { try status(of: "c.example.com") == "app" })
    #expect(try status(of: "b.example.com") == "Ok\n")
    // A mistake in the file changes nothing, and is reported.
    _ = try directory.write("hearth.json", #"{"hosting": {"d.example.com": "dist"}, "no-such-option": 1}"#)
    session.process.send(signal: SIGHUP)
    try #require(OtherProcess.eventually { session.process.output.contains("no-such-option") })
    #expect(try status(of: "c.example.com") == "app")
    #expect(try status(of: "d.example.com") == "Ok\n")
  }

  @Test func responsesFromTheDiskAreLimited() throws {
    let directory = try app()
    _ = try directory.write("dist/film.mp4", "")
    #expect(truncate(directory.file("dist/film.mp4"), 64 << 20) == 0)
    let session = try Session(in: directory, before: "ulimit -n 512")
    // A sixteenth of the limit.
    let waiting = try (0..<32).map { _ in
      let response = try StreamedResponse(
        port: session.port, request: Array("GET /film.mp4 HTTP/1.1\r\nHost: localhost\r\n\r\n".utf8))
      try response.readHead()
      return response
    }
    #expect(waiting.allSatisfy { $0.status == 200 })
    let client = TestHTTPClient(port: session.port)
    #expect(try client.send("GET", "/film.mp4", headers: [("Range", "bytes=0-9")]).status == 503)
    #expect(try session.get("/") == "app")
    for response in waiting { response.close() }
    #expect(
      try OtherProcess.eventually {
        try client.send("GET", "/film.mp4", headers: [("Range", "bytes=0-9")]).status == 206
      })
  }

  @Test(arguments: [
    ("--hosting missing", "--hosting missing: cannot be opened: No such file or directory; build the app first"),
    ("--hosting firebase.json#x", "has no entry with the target or site \"x\""),
    ("--hosting a.example.com=", "must have the form PATH, HOST=PATH or FILE#TARGET"),
    ("--hosting dist --hosting dist", "the other hosts must have only one app"),
    ("--web-sdk missing", "cannot open the folder missing"),
  ])
  func unusableOptionsAreRefused(options: String, message: String) throws {
    let directory = try app(#"{"hosting": {"public": "dist"}}"#)
    let binary = try #require(HearthBinary.path)
    let process = try ServerProcess(
      executable: "/bin/sh",
      arguments: ["-c", "cd '\(directory.path)' && '\(binary)' serve --emulator --port 0 \(options); echo ended"])
    defer { process.stop() }
    _ = try process.waitForLine(prefix: "ended", timeoutSeconds: 30)
    #expect(process.output.contains(message), "\(process.output)")
  }
}
