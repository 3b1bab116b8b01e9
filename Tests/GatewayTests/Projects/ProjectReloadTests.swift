import Foundation
import HearthServer
import Testing
import TestSupport

/// A server with several projects: which projects it serves after a reload, and what a mistake in one does to the others.
@Suite struct ProjectReloadTests {
  private static let broken = "rules_version = '2'; service cloud.firestore { match"

  @Test func newProjectsAreServedAndRemovedOnesAreNot() throws {
    let server = try ProjectsServer(["red"])
    try server.write("red")
    #expect(try server.note("blue").status == 404)
    server.reload { $0.append(ProjectsServer.source("blue", in: server.directory)) }
    try server.write("blue")
    #expect(try server.note("blue") == (200, "blue"))
    server.reload { $0.removeAll { $0.id == "red" } }
    #expect(try server.note("red").status == 404)
    #expect(try server.note("blue") == (200, "blue"))
    // The data stay on disk.
    server.reload { $0.append(ProjectsServer.source("red", in: server.directory)) }
    #expect(try Self.eventually { try server.note("red") == (200, "red") })
  }

  @Test func mistakeInOneProjectLeavesTheOthers() throws {
    let server = try ProjectsServer(["red"])
    try server.directory.write("broken.rules", Self.broken)
    let broken = ProjectsServer.source("blue", in: server.directory, rules: "broken.rules", "2")
    server.reload { $0.append(broken) }
    let refused = try server.note("blue")
    #expect(refused.status == 503, "\(refused)")
    let grpc = try GRPCConnection(port: server.server.port)
    let call = try grpc.call(
      "GetDocument", [], headers: [("google-cloud-resource-prefix", "projects/blue/databases/(default)")])
    #expect(call.status == 14)
    try server.write("red")
    server.reload { $0[1] = ProjectsServer.source("blue", in: server.directory, "3") }
    try server.write("blue")
    // The last valid configuration stays in force.
    server.reload { $0[1] = broken }
    #expect(try server.note("blue") == (200, "blue"))
    server.reload {
      $0[1] = ProjectSource(id: "blue", configuration: .failure(.data("hearth.json: no")), fingerprint: "4")
    }
    #expect(try server.note("blue", ("Host", "blue.example.com")) == (200, "blue"))
  }

  @Test func changedProjectIsOpenedAgain() throws {
    let server = try ProjectsServer(["red", "blue"])
    for project in ["red", "blue"] { try server.write(project) }
    try server.directory.write(
      "closed.rules", "rules_version = '2'; service cloud.firestore { match /{d=**} { allow read: if false; } }")
    server.reload { $0[0] = ProjectsServer.source("red", in: server.directory, rules: "closed.rules", "2") }
    #expect(try Self.eventually { try server.note("red").status == 403 })
    #expect(try server.note("blue") == (200, "blue"))
    // Host names and keys change without it.
    server.reload { $0[1].hosts = ["new.example.com"] }
    #expect(try server.note("blue", ("Host", "new.example.com")) == (200, "blue"))
    #expect(try server.note("red", ("Host", "new.example.com")).status == 403)
  }

  @Test func streamsOfARemovedProjectEnd() throws {
    let server = try ProjectsServer(["p"])
    try server.write("p")
    let grpc = try GRPCConnection(port: server.server.port)
    let stream = grpc.open("Listen", headers: [("google-cloud-resource-prefix", "projects/p/databases/(default)")])
    grpc.send(GRPCListenTests.documents(2, "notes/n"), on: stream)
    #expect(try grpc.next(on: stream) != nil)
    server.reload { $0 = [] }
    #expect(try grpc.end(of: stream).status == 14)
    server.reload { $0 = [ProjectsServer.source("p", in: server.directory)] }
    #expect(try Self.eventually { try server.note("p") == (200, "p") })
  }

  @Test func emulatorsServeNoFolders() throws {
    #expect(throws: HearthError.self) { try TestServer { $0.loadProjects = { [] } } }
  }

  @Test func namedDatabasesAreServedIfTheyAreDeclared() throws {
    let directory = try TemporaryDirectory()
    try directory.write("firestore.rules", ProjectsServer.rules)
    let server = try TestServer(.production) {
      $0.databases = ["(default)", "archive"]
      $0.rules = [HearthConfiguration.RulesFile(directory.file("firestore.rules"))]
    }
    for (database, status) in [("(default)", 200), ("archive", 200), ("other", 404)] {
      let reply = try server.request(
        "PATCH", "\(ProjectsServer.documents("p", database))/notes/n", #"{"fields": {}}"#)
      #expect(reply.status == status, "\(database): \(reply.text)")
    }
  }

  /// Repeats a check until it holds. A reload waits until the requests of the previous configuration have ended.
  private static func eventually(_ check: () throws -> Bool) throws -> Bool {
    for _ in 0..<20_000 where try check() { return true }
    return false
  }
}
