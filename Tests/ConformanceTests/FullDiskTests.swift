import Foundation
import Glibc
import Testing
import TestSupport

/// A server whose disk of a few megabytes fills up: uploads fail with an error, stored files stay intact, and
/// deleting files frees space.
@Suite(.needs(.hearth), .needs(.mounting))
struct FullDiskTests {
  private static let owner = [("Authorization", "Bearer owner")]

  @Test(.timeLimit(.minutes(10))) func fullDiskRefusesUploadsAndKeepsFiles() async throws {
    try await onDedicatedThread {
      let directory = try TemporaryDirectory()
      let disk = try SmallDisk(at: directory.path, size: "12m")
      defer { disk.unmount() }
      try Self.fill(directory.path, disk)
    }
  }

  private static func fill(_ directory: String, _ disk: SmallDisk) throws {
    let server = try HearthProcess(arguments: ["--emulator", "--data", directory])
    defer { server.process.stop() }
    let client = TestHTTPClient(port: server.port)
    func body(_ number: Int) -> [UInt8] { [UInt8](repeating: UInt8(number), count: 1 << 20) }
    func put(_ number: Int, cloud: Bool = false) throws -> Int {
      let target = cloud ? "/upload/storage/v1/b/b/o?uploadType=media&name=n\(number)" : "/v0/b/b/o?name=n\(number)"
      return try client.send("POST", target, headers: owner, body: body(number)).status
    }
    func get(_ number: Int) throws -> [UInt8]? {
      let reply = try client.send("GET", "/v0/b/b/o/n\(number)?alt=media", headers: owner)
      return reply.status == 200 ? reply.body : nil
    }
    func incoming() -> Int {
      (try? FileManager.default.contentsOfDirectory(atPath: "\(directory)/files/incoming"))?.count ?? -1
    }
    var stored = 0
    while stored < 20, try put(stored) == 200 { stored += 1 }
    #expect((4..<12).contains(stored))
    for round in 0..<3 {
      #expect(try put(100 + round) == 402)
      #expect(try put(100 + round, cloud: true) == 507)
      #expect(try get(100 + round) == nil)
      #expect(incoming() == 0)
    }
    // A resumable upload: the server keeps the parts it has received, and frees them when the upload is cancelled.
    let start = try client.send(
      "POST", "/v0/b/b/o?name=parts", headers: owner + [("X-Goog-Upload-Command", "start")], body: [])
    let url = start.header("x-goog-upload-url")?.components(separatedBy: "/v0/").last.map { "/v0/" + $0 }
    if start.status == 200, let url {
      let part = try client.send(
        "POST", url, headers: owner + [("X-Goog-Upload-Command", "upload"), ("X-Goog-Upload-Offset", "0")],
        body: [UInt8](repeating: 1, count: 4 << 20))
      #expect(part.status == 402)
      #expect(
        try client.send("POST", url, headers: owner + [("X-Goog-Upload-Command", "cancel")], body: []).status == 200)
    } else {
      #expect(start.status == 402)
    }
    for number in 0..<stored { #expect(try get(number) == body(number)) }
    // Fill the last page, so that not even metadata has room.
    var small = 0
    while small < 4000 {
      let status = try client.send("POST", "/v0/b/b/o?name=s\(small)", headers: owner, body: Array("s\(small)".utf8))
        .status
      if status != 200 {
        #expect(status == 402)
        break
      }
      small += 1
    }
    #expect(small < 4000)
    // A database that is not open yet has no room for its lock file, which is mapped into memory. That must not crash
    // the server.
    try disk.fill()
    for database in ["(default)", "other"] {
      let target = "/v1/projects/demo/databases/\(database)/documents/c"
      let reply = try client.send("POST", target, headers: owner, body: Array(#"{"fields": {}}"#.utf8))
      #expect(reply.status == 429, "\(reply.text)")
      let found = try client.send("GET", "\(target)/d", headers: owner)
      #expect(found.status == 429 || found.status == 404, "\(found.text)")
    }
    try disk.empty()
    // Deleting works on a full disk and frees space.
    #expect(try client.send("DELETE", "/v0/b/b/o/n0", headers: owner).status == 204)
    #expect(try client.send("DELETE", "/v0/b/b/o/n1", headers: owner).status == 204)
    #expect(try put(200) == 200)
    #expect(try get(200) == body(200))
    for number in 2..<stored { #expect(try get(number) == body(number)) }
    if small > 0 {
      #expect(try client.send("GET", "/v0/b/b/o/s0?alt=media", headers: owner).text == "s0")
    }
  }

  /// The first file and the first account need room for a new store. Without room, the error says what to do, and
  /// nothing is left that would disturb a later attempt.
  @Test(.timeLimit(.minutes(5)), arguments: [["--emulator"], ["--project", "demo"]])
  func firstRequestsFailWithoutAFaultAndSucceedLater(mode: [String]) async throws {
    try await onDedicatedThread {
      let directory = try TemporaryDirectory()
      let disk = try SmallDisk(at: directory.path, size: "3m")
      defer { disk.unmount() }
      let server = try HearthProcess(arguments: mode + ["--data", directory.path])
      defer { server.process.stop() }
      try Self.fillAndFree(
        directory.path, disk, TestHTTPClient(port: server.port), isEmulator: mode == ["--emulator"])
    }
  }

  private static func fillAndFree(
    _ directory: String, _ disk: SmallDisk, _ client: TestHTTPClient, isEmulator: Bool
  ) throws {
    let credentials = #"{"email": "ann@example.com", "password": "secret-1", "returnSecureToken": true}"#
    func account(_ call: String, _ body: String = credentials) throws -> HTTPResponse {
      try client.send("POST", "/v1/accounts:\(call)?key=k", headers: [], body: Array(body.utf8))
    }
    func upload(cloud: Bool = false) throws -> Int {
      let target = cloud ? "/upload/storage/v1/b/b/o?uploadType=media&name=n" : "/v0/b/b/o?name=n"
      return try client.send("POST", target, headers: owner, body: [1, 2, 3]).status
    }
    func expectFull(_ reply: HTTPResponse) {
      #expect(reply.status == 429, "\(reply.text)")
      #expect(
        reply.text.contains("QUOTA_EXCEEDED : no space left on the disk of the server; free some"), "\(reply.text)")
      #expect(reply.text.contains("RESOURCE_EXHAUSTED"))
      #expect(!reply.text.contains(directory))
    }
    try disk.fill()
    for _ in 0..<2 {
      expectFull(try account("signUp"))
      expectFull(try account("signUp", "{}"))
      guard isEmulator else { continue }
      #expect(try upload() == 402)
      #expect(try upload(cloud: true) == 507)
    }
    try disk.empty()
    // The server tries to open its files once a second.
    Thread.sleep(forTimeInterval: 1.1)
    // The address is not taken by an account that was only half made.
    #expect(try account("signUp").status == 200)
    guard isEmulator else { return }
    #expect(try upload() == 200)
    // A sign-in stores a session. The free pages of the file suffice for some.
    try disk.fill()
    var replies = 0
    while replies < 2000, case let reply = try account("signInWithPassword"), reply.status != 429 {
      #expect(reply.status == 200, "\(reply.text)")
      replies += 1
    }
    expectFull(try account("signInWithPassword"))
    try disk.empty()
    #expect(try account("signInWithPassword").status == 200)
  }
}
