import Accounts
import Foundation
import HearthServer
import Testing
import TestSupport

/// The console of a server with several projects: operators of one see nothing of another, nor of the server.
@Suite struct ConsoleProjectsTests {
  private static let password = OperatorConsole.password

  @Test func operatorsBelongToOneProject() throws {
    let projects = try ProjectsServer(["red", "blue"]) {
      $0.consoleAddress = .init(host: "127.0.0.1", port: 0)
      $0.shownConfiguration = Array("{}".utf8)
      $0.listBackups = { take in
        take(Array("{}".utf8))
        return true
      }
      $0.createBackup = { true }
    }
    let url = try #require(projects.server.server.consoleURL)
    let port = try #require(url.firstMatch(of: /:(\d+)\//).flatMap { UInt16($0.output.1) })
    for (project, role) in [("red", OperatorRole.owner), ("blue", .viewer)] {
      try projects.accounts(project).operators.add("ann", role: role, password: Self.password, work: .least)
      try projects.write(project)
    }
    func request(_ method: String, _ target: String, _ body: String? = nil, token: String? = nil) throws
      -> TestServer.Response
    {
      let headers = token.map { [("Authorization", "Bearer \($0)")] } ?? []
      return try projects.server.request(method, target, body, headers: headers, port: port)
    }
    let page = try request("GET", "/_/console/")
    #expect(page.status == 200 && page.text.contains("data-project=\"\"") && page.text.firstMatch(of: /\bred\b/) == nil)
    let body = #"{"name": "ann", "password": "\#(Self.password)"}"#
    // Without a project, and with one that does not exist.
    for query in ["", "?project=green"] {
      #expect(try request("POST", "/hearth/v1/session\(query)", body).status == 404, "\(query)")
    }
    let made = try request("POST", "/hearth/v1/session?project=red", body)
    let red: String = try #require(made.json("token"), "\(made.text)")
    #expect(made.json("project") == "red" && made.json("role") == "owner")
    #expect(try request("GET", "\(ProjectsServer.documents("red"))/notes/n", token: red).status == 200)
    #expect(try request("GET", "/hearth/v1/keys?project=red", token: red).status == 200)
    for path in [
      "\(ProjectsServer.documents("blue"))/notes/n", "/hearth/v1/keys?project=blue", "/hearth/v1/session?project=blue",
      "/v1/projects/blue/accounts:batchGet", "/hearth/v1/projects/blue/databases/(default)/rules",
    ] {
      #expect(try request("GET", path, token: red).status == 401, "\(path)")
    }
    // The state and the buckets of a project.
    for path in ["/readyz", "/metrics", "/storage/v1/b"] {
      #expect(try request("GET", "\(path)?project=red", token: red).status == 200, "\(path)")
      #expect(try request("GET", "\(path)?project=blue", token: red).status == 401, "\(path)")
      #expect(try request("GET", "\(path)?project=green", token: red).status == 404, "\(path)")
    }
    #expect(try request("GET", "/metrics?project=red", token: red).text.contains("hearth_"))
    // The facts of the server concern all projects.
    for path in ["/hearth/v1/configuration?project=red", "/hearth/v1/backups?project=red"] {
      let reply = try request("GET", path, token: red)
      #expect(reply.status == 404 && reply.message.contains("several projects"), "\(path)")
    }
    #expect(try request("POST", "/hearth/v1/backups?project=red", "{}", token: red).status == 404)
    let blue = try request("POST", "/hearth/v1/session?project=blue", body)
    #expect(blue.json("role") == "viewer")
    // Wrong passwords from an address count for all projects together.
    let places = try (projects.accounts("red").places, projects.accounts("blue").places)
    #expect(places.0.users === places.1.users && places.0.operators === places.1.operators)
    // Removing one operator leaves the other of the same name.
    try projects.accounts("red").operators.remove("ann")
    #expect(try request("GET", "/hearth/v1/session?project=red", token: red).status == 401)
    let token: String = try #require(blue.json("token"))
    #expect(try request("GET", "/hearth/v1/session?project=blue", token: token).status == 200)
  }
}
