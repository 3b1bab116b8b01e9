import Foundation
import Glibc
import Testing
import TestSupport

/// `hearth serve` as a process: exclusive use of a data directory, shutdown, and behavior without free space.
@Suite(.needs(.hearth))
struct ServeProcessTests {
  @Test(.timeLimit(.minutes(10))) func secondProcessIsRefusedTheDirectory() async throws {
    let directory = try TemporaryDirectory()
    let arguments = ["--emulator", "--data", directory.path]
    let (second, reply) = try await onDedicatedThread {
      let server = try HearthProcess(arguments: arguments)
      defer { server.process.stop() }
      let second = try HearthBinary.run(["serve", "--port", "0"] + arguments)
      let reply = try RESTSession(port: server.port, database: TestDatabase(project: "p")).set("c/a", [:])
      return (second, reply)
    }
    #expect(second.exit == .code(1))
    #expect(second.output.contains(directory.path), "the message does not name the directory: \(second.output)")
    #expect(!second.output.contains("Fatal error"))
    #expect(second.output.utf8.count < 1000)
    #expect(reply.status == 200, "the first process no longer responds normally")
  }

  @Test(.timeLimit(.minutes(10)), arguments: [SIGTERM, SIGINT])
  func stopUnderLoadLosesNothing(signal: Int32) async throws {
    let directory = try TemporaryDirectory()
    let load = WriteLoad(database: TestDatabase(project: "stop"), round: 0)
    let (exit, problems, count) = try await onDedicatedThread { () -> (ProcessExit?, [String], Int) in
      let server = try HearthProcess(arguments: ["--emulator", "--data", directory.path])
      let wait = load.start(port: server.port)
      _ = load.acknowledged.wait { $0 >= 100 }
      server.process.send(signal: signal)
      let exit = server.process.waitForExit(timeoutSeconds: 40)
      server.process.stop()
      let logs = wait()
      let again = try HearthProcess(arguments: ["--emulator", "--data", directory.path])
      defer { again.process.stop() }
      return (exit, try load.verify(logs, port: again.port), logs.reduce(0) { $0 + $1.acknowledged.count })
    }
    #expect(exit == .code(0))
    #expect(problems.isEmpty, "\(problems.prefix(10).joined(separator: "\n"))")
    #expect(count >= 100)
    let check = try HearthBinary.run(["check", directory.path])
    #expect(check.exit == .code(0), "\(check.output)")
  }

  @Test(.timeLimit(.minutes(10))) func fullMapRefusesWritesAndServesReads() async throws {
    let directory = try TemporaryDirectory()
    let arguments = ["--emulator", "--data", directory.path]
    let text = String(repeating: "x", count: 100_000)
    let (written, refusal, problems) = try await onDedicatedThread { () -> (Int, RESTSession.Reply?, [String]) in
      let server = try HearthProcess(arguments: arguments + ["--map-size", "\(8 << 20)"])
      var session = RESTSession(port: server.port, database: TestDatabase(project: "full"))
      let fields: JSONNode = ["text": ["stringValue": .string(text)]]
      var problems: [String] = []
      var refusal: RESTSession.Reply?
      var written = 0
      // The commit log accepts a table more than the file can hold.
      while refusal == nil, written < 1000 {
        let reply = try session.set("c/\(written)", fields)
        if reply.status == 200 { written += 1 } else { refusal = reply }
      }
      func readAll(_ when: String) throws {
        for index in 0..<written {
          let reply = try session.get("c/\(index)")
          if reply.json["fields"]?.isSame(as: fields) != true {
            problems.append("\(when): c/\(index) answers \(reply.status)")
          }
        }
        if try session.get("c/\(written)").status != 404 { problems.append("\(when): the refused document is there") }
      }
      try readAll("full")
      // The server continues to reject writes while it is full, and does not crash.
      if try session.set("c/\(written)", fields).errorStatus != "RESOURCE_EXHAUSTED" {
        problems.append("the second refusal has another code")
      }
      if server.process.stop() != .code(0) { problems.append("the full server does not stop cleanly") }
      let again = try HearthProcess(arguments: arguments)
      defer { again.process.stop() }
      session = RESTSession(port: again.port, database: TestDatabase(project: "full"))
      try readAll("reopened")
      if try session.set("c/\(written)", fields).status != 200 { problems.append("a larger map does not accept more") }
      return (written, refusal, problems)
    }
    #expect(written > 5)
    #expect(refusal?.status == 429)
    #expect(refusal?.errorStatus == "RESOURCE_EXHAUSTED")
    #expect(problems.isEmpty, "\(problems.joined(separator: "\n"))")
  }
}
