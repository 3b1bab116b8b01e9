import Dispatch
import Foundation
import HearthServer
import Synchronization
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

  /// Begins an upload of six bytes to the project red, which waits for them.
  private static func beginUpload(_ server: ProjectsServer, _ user: (String, String)) throws -> LoopbackSocket {
    let head =
      "POST /v0/b/red.appspot.com/o?uploadType=media&name=own%2Fann%2Fa HTTP/1.1\r\nHost: localhost\r\n"
      + "\(user.0): \(user.1)\r\nContent-Type: text/plain\r\nContent-Length: 6\r\nExpect: 100-continue\r\n"
      + "Connection: close\r\n\r\n"
    let socket = try LoopbackSocket(port: server.server.port)
    socket.send(head)
    // The server asks for the body, so the request has reached the project.
    guard case .bytes(let first) = socket.receive() else { throw LoopbackError("no response") }
    #expect(String(decoding: first, as: UTF8.self).hasPrefix("HTTP/1.1 100"))
    return socket
  }

  /// A client that never ends its request does not keep a changed project from being served.
  @Test func slowRequestsOfAChangedProjectEnd() throws {
    let server = try ProjectsServer(["red", "blue"], graceSeconds: 0)
    for project in ["red", "blue"] { try server.write(project) }
    let upload = try Self.beginUpload(server, try server.user("red"))
    // A request whose body the dispatcher has not seen completely, and a call whose message is incomplete.
    let commit = try LoopbackSocket(port: server.server.port)
    commit.send(
      "POST \(ProjectsServer.documents("red")):commit HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n\r\n{")
    let grpc = try GRPCConnection(port: server.server.port)
    let call = grpc.open(
      "Commit", headers: [("google-cloud-resource-prefix", "projects/red/databases/(default)")])
    // The call has reached its project. A later one would be refused while the project closes.
    try grpc.ping()
    #expect(try server.note("red").status == 200)
    server.reload { $0[0] = ProjectsServer.source("red", in: server.directory, "2") }
    #expect(try Self.eventually { try server.note("red") == (200, "red") })
    #expect(upload.isCut())
    #expect(commit.isCut())
    #expect(try grpc.end(of: call).resetCode != nil)
    #expect(try server.note("blue") == (200, "blue"))
  }

  /// A project that is removed completes the requests that reached it.
  @Test func requestsUnderWayCompleteAfterRemoval() throws {
    let server = try ProjectsServer(["red", "blue"], graceSeconds: 60)
    let user = try server.user("red")
    let socket = try Self.beginUpload(server, user)
    socket.send("con")
    server.reload { $0.removeAll { $0.id == "red" } }
    #expect(try server.request("GET", "/v0/b/red.appspot.com/o/own%2Fann%2Fa", nil, user).status == 404)
    try server.write("blue")
    // The project comes back while its old request still runs, and waits for it.
    server.reload { $0.append(ProjectsServer.source("red", in: server.directory)) }
    #expect(try server.note("red").status == 503)
    socket.send("ten")
    var response = ""
    while case .bytes(let bytes) = socket.receive() { response += String(decoding: bytes, as: UTF8.self) }
    #expect(response.hasPrefix("HTTP/1.1 200"), "\(response)")
    #expect(try Self.eventually { try server.note("red").status == 404 })
    let stored = try server.request("GET", "/v0/b/red.appspot.com/o/own%2Fann%2Fa?alt=media", nil, user)
    #expect(stored.text == "conten", "\(stored.text)")
  }

  private final class Problems: Sendable {
    private let texts = Mutex<[String]>([])
    var all: [String] { texts.withLock { $0 } }
    func add(_ text: String) { texts.withLock { $0.append(text) } }
  }

  @Test func projectsComeAndGoWhileRequestsRun() throws {
    let server = try ProjectsServer(["red", "blue"])
    for project in ["red", "blue"] { try server.write(project) }
    let isRunning = Switch()
    let problems = Problems()
    let group = DispatchGroup()
    for _ in 0..<3 {
      DispatchQueue.global().async(group: group) {
        while isRunning.isOn {
          for project in ["red", "blue"] {
            do {
              let found = try server.note(project)
              let isExpected =
                found.text == project || project == "red" && (found.status == 404 || found.status == 503)
              if !isExpected { problems.add("\(project): \(found)") }
            } catch { problems.add("\(error)") }
          }
        }
      }
    }
    for number in 0..<30 {
      server.reload { sources in
        sources = [ProjectsServer.source("blue", in: server.directory)]
        if number % 3 != 2 { sources.append(ProjectsServer.source("red", in: server.directory, "\(number % 3)")) }
      }
    }
    isRunning.turnOff()
    #expect(group.wait(timeout: .now() + 30) == .success)
    server.reload { $0 = ["red", "blue"].map { ProjectsServer.source($0, in: server.directory) } }
    #expect(try Self.eventually { try server.note("red") == (200, "red") })
    #expect(problems.all.isEmpty, "\(problems.all.prefix(5))")
  }

  /// A name stays with the project that had it first, so that a mistake in a new project takes no requests.
  @Test func namesStayWithTheirProject() throws {
    let server = try ProjectsServer(["red"])
    try server.write("red")
    server.reload { sources in
      var thief = ProjectsServer.source("a", in: server.directory)
      thief.hosts = ["RED.example.com", "a.example.com"]
      thief.apiKeys = ["key-of-red", "key-of-a"]
      sources.insert(thief, at: 0)
    }
    #expect(try server.note("red", ("Host", "red.example.com")) == (200, "red"))
    let made = try server.request("POST", "/v1/accounts:signUp?key=key-of-red", "{}")
    let token = try #require(made.json("idToken") as String?, "\(made.text)")
    let uid: String = try #require(made.json("localId"))
    let own = try server.request(
      "GET", "\(ProjectsServer.documents("red"))/users/\(uid)", nil, ("Authorization", "Bearer \(token)"))
    #expect(own.status == 404, "\(own.text)")
    #expect(try server.note("a", ("Host", "a.example.com")).status == 404)
    #expect(try server.note("a", ("Host", "red.example.com")).status == 403)
    let conflicts = ProjectSource.conflicts(
      ["red", "a"].map { ProjectSource(id: $0, hosts: ["x.y"], configuration: .failure(.data("")), fingerprint: "") })
    #expect(conflicts.count == 1 && conflicts[0].contains("'x.y' of project a belongs to the project red already"))
    // The name is free again when its project is removed.
    server.reload { $0.removeAll { $0.id == "red" } }
    #expect(try server.note("a", ("Host", "red.example.com")).status == 404)
  }

  @Test func namesOfHostsAreChecked() throws {
    let directory = try TemporaryDirectory()
    try directory.write("firestore.rules", ProjectsServer.rules)
    try directory.write("storage.rules", ProjectsServer.storageRules)
    for (host, isValid) in [
      ("a.example.com", true), ("A", true), ("[::1]", true), ("", false), ("https://a", false), ("a:80", false),
      ("a.", false), ("a b", false), ("a/b", false), ("*.a", false), ("ä", false),
    ] {
      var source = ProjectsServer.source("red", in: directory)
      source.hosts = [host]
      #expect(((try? source.check()) != nil) == isValid, "\(host)")
    }
  }

  /// A state that closures share.
  private final class Switch: Sendable {
    private let state = Mutex(true)
    var isOn: Bool { state.withLock { $0 } }
    func turnOff() { state.withLock { $0 = false } }
  }

  /// A directory that cannot be read ends no project.
  @Test func unreadableDirectoryLeavesAllProjects() throws {
    let directory = try TemporaryDirectory()
    try directory.write("firestore.rules", ProjectsServer.rules)
    try directory.write("storage.rules", ProjectsServer.storageRules)
    let isReadable = Switch()
    let server = try TestServer(.production) {
      $0.project = nil
      $0.loadProjects = { () throws(HearthError) in
        guard isReadable.isOn else { throw .configuration("cannot read the directory") }
        return [ProjectsServer.source("red", in: directory)]
      }
    }
    isReadable.turnOff()
    server.server.reload()
    let path = "\(ProjectsServer.documents("red"))/notes/n"
    #expect(try server.request("PATCH", path, #"{"fields": {}}"#).status == 200)
    #expect(throws: HearthError.self) {
      try TestServer(.production) { $0.loadProjects = { () throws(HearthError) in throw .configuration("no") } }
    }
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

  /// Repeats a check until it holds, for at most a minute. A reload waits until the requests of the previous
  /// configuration have ended.
  static func eventually(_ check: () throws -> Bool) throws -> Bool {
    let end = ContinuousClock.now + .seconds(60)
    while !(try check()) {
      if ContinuousClock.now > end { return false }
      sched_yield()
    }
    return true
  }
}
