import Accounts
import DocumentModel
import Foundation
import HearthServer
import Testing
import TestSupport

/// A server with several projects: each request reaches the one that it names, by whatever it names it.
@Suite struct ProjectChoiceTests {
  private static let form = ("Content-Type", "application/x-www-form-urlencoded")

  @Test func documentsBelongToTheProjectInThePath() throws {
    let server = try ProjectsServer(["red", "blue"])
    for project in ["red", "blue"] { try server.write(project) }
    for project in ["red", "blue"] {
      #expect(try server.note(project) == (200, project))
      #expect(try server.note(project, ("Host", "\(project).example.com")).status == 200)
      #expect(try server.note(project, ("Host", "\(project.uppercased()).EXAMPLE.com.:8443")).status == 200)
      #expect(try server.note(project, ("Host", "localhost:8080")).status == 200)
    }
    let other = try server.note("green")
    #expect(other.status == 404 && other.text.contains("names no project of this server"), "\(other)")
    let database = try server.request("GET", "\(ProjectsServer.documents("red", "other"))/notes/n")
    #expect(database.status == 404 && database.message.contains("The database other does not exist for project red"))
  }

  @Test func requestThatNamesTwoProjectsIsRefused() throws {
    let server = try ProjectsServer(["red", "blue"])
    try server.write("red")
    let path = "\(ProjectsServer.documents("red"))/notes/n"
    let cases: [(String, [(String, String)])] = [
      (path, [("Host", "blue.example.com")]), ("\(path)?key=key-of-blue", []),
      (path, [("X-Goog-Api-Key", "key-of-blue")]),
      (path, [("google-cloud-resource-prefix", "projects/blue/databases/(default)")]),
      (path, [("x-goog-request-params", "project_id=blue&database_id=x")]),
      (path, [("x-goog-request-params", "database=projects%2Fblue%2Fdatabases%2F(default)")]),
      ("/v1/accounts:lookup?key=key-of-red", [("Host", "blue.example.com")]),
      ("/v1/projects/red/accounts:lookup?key=key-of-blue", []),
      ("/v0/b/red.appspot.com/o/a", [("Host", "blue.example.com")]),
      ("/red.appspot.com/a?X-Goog-Signature=0", [("Host", "blue.example.com")]),
    ]
    for (target, headers) in cases {
      let reply = try server.server.request("GET", target, nil, headers: headers)
      #expect(reply.status == 403 && reply.message.contains("names several projects"), "\(target) \(headers)")
    }
    // A host name of no project, and a key that no project has, name none.
    #expect(try server.note("red", ("Host", "other.example.com")).status == 200)
    #expect(try server.request("GET", "\(path)?key=AIza").status == 200)
  }

  @Test func signInReachesTheProjectOfTheKey() throws {
    let server = try ProjectsServer(["red", "blue"])
    func signUp(_ query: String, _ headers: (String, String)...) throws -> TestServer.Response {
      try server.server.request(
        "POST", "/v1/accounts:signUp\(query)", "{}", headers: headers + [("Content-Type", "application/json")])
    }
    let byKey = try signUp("?key=key-of-red")
    #expect(byKey.status == 200, "\(byKey.text)")
    let byHost = try signUp("?key=any", ("Host", "blue.example.com"))
    #expect(byHost.status == 200, "\(byHost.text)")
    for (reply, project) in [(byKey, "red"), (byHost, "blue")] {
      let token = try #require(reply.json("idToken") as String?)
      let uid = try #require(reply.json("localId") as String?)
      for other in ["red", "blue"] {
        let found = try server.request(
          "GET", "\(ProjectsServer.documents(other))/users/\(uid)", nil, ("Authorization", "Bearer \(token)"))
        #expect(found.status == (other == project ? 404 : 401), "\(project) \(other): \(found.text)")
      }
      let refresh = try #require(reply.json("refreshToken") as String?)
      for other in ["red", "blue"] {
        let renewed = try server.request(
          "POST", "/v1/token?key=key-of-\(other)", "grant_type=refresh_token&refresh_token=\(refresh)", Self.form)
        #expect(renewed.status == (other == project ? 200 : 400), "\(renewed.text)")
      }
    }
    let wrong = try signUp("?key=key-of-green")
    #expect(wrong.status == 400 && wrong.message == "API key not valid. Please pass a valid API key.")
    #expect(try signUp("").status == 404)
  }

  @Test func requestsWithoutAnyNameReachTheDefaultProject() throws {
    let server = try ProjectsServer(["red", "blue"], standard: "blue")
    let administrator = try server.administrator("blue")
    #expect(try server.request("GET", "/hearth/v1/keys", nil, administrator).status == 200)
    #expect(try server.request("GET", "/hearth/v1/keys", nil, try server.administrator("red")).status == 401)
    let own = try server.request("GET", "/hearth/v1/keys?project=red", nil, try server.administrator("red"))
    #expect(own.status == 200)
    let unknown = try server.note("green")
    #expect(unknown.status == 404 && unknown.text.contains("does not exist for project green"), "\(unknown)")
    let without = try ProjectsServer(["red"])
    #expect(try without.request("GET", "/hearth/v1/keys", nil, try without.administrator("red")).status == 404)
    for path in ["/healthz", "/readyz"] { #expect(try without.request("GET", path).status == 200, "\(path)") }
    #expect(try without.request("GET", "/metrics").status == 403)
  }

  @Test func ownProjectOfTheServerIsServedBesideFolders() throws {
    let server = try ProjectsServer(["red"], standard: "main")
    for project in ["red", "main"] {
      try server.write(project)
      #expect(try server.note(project) == (200, project))
    }
    #expect(try server.request("POST", "/v1/accounts:signUp?key=main", "{}").status == 200)
  }

  @Test func callsOfGRPCNameTheirProjectInTheHead() throws {
    let server = try ProjectsServer(["red", "blue"])
    let grpc = try GRPCConnection(port: server.server.port)
    func get(_ project: String, _ headers: (String, String)...) throws -> (status: Int?, text: String) {
      let name = "projects/\(project)/databases/(default)/documents/notes/none"
      let reply = try grpc.call("GetDocument", [10, UInt8(name.utf8.count)] + Array(name.utf8), headers: headers)
      return (reply.status, reply.statusMessage)
    }
    for project in ["red", "blue"] {
      let prefix = ("google-cloud-resource-prefix", "projects/\(project)/databases/(default)")
      let parameters = [
        "project_id=\(project)&database_id=(default)", "project_id=\(project)",
        "name=projects%2F\(project)%2Fdatabases%2F(default)%2Fdocuments%2Fnotes%2Fnone",
        "projects/\(project)/databases/(default)",
      ]
      #expect(try get(project, prefix).text.contains("Document"))
      for text in parameters {
        let found = try get(project, ("x-goog-request-params", text))
        #expect(found.status == 5 && found.text.contains("Document"), "\(text): \(found)")
      }
      let other = try get(project == "red" ? "blue" : "red", prefix)
      #expect(other.status == 5 && other.text.contains("does not exist for project"), "\(other)")
      let both = try get(project, prefix, ("x-goog-request-params", "project_id=\(project == "red" ? "blue" : "red")"))
      #expect(both.status == 7, "\(both)")
    }
    let none = try get("red")
    #expect(none.status == 5 && none.text.contains("names no project of this server"), "\(none)")
  }

  @Test func channelsBelongToTheProjectThatTheirDatabaseNames() throws {
    let server = try ProjectsServer(["red", "blue"])
    func post(_ project: String, _ query: String) throws -> TestServer.Response {
      try server.request(
        "POST",
        "/google.firestore.v1.Firestore/Listen/channel?VER=8&database=projects%2F\(project)%2Fdatabases%2F"
          + "(default)&\(query)", "count=0", Self.form)
    }
    let opened = try post("red", "RID=1&CVER=22")
    #expect(opened.status == 200, "\(opened.text)")
    let id = try #require(opened.text.split(separator: "\"").dropFirst(3).first.map(String.init))
    #expect(try post("red", "SID=\(id)&RID=2&AID=0").status == 200)
    #expect(try post("blue", "SID=\(id)&RID=2&AID=0").status == 400)
    #expect(try post("green", "RID=1&CVER=22").status == 404)
  }

  @Test func filesBelongToTheProjectOfTheirBucket() throws {
    let server = try ProjectsServer(["red", "blue"])
    let red = try server.user("red")
    let blue = try server.user("blue")
    func upload(_ bucket: String, _ user: (String, String)) throws -> TestServer.Response {
      try server.request(
        "POST", "/v0/b/\(bucket)/o?uploadType=media&name=own%2Fann%2Fa", "content", user, ("Content-Type", "text/plain")
      )
    }
    #expect(try upload("red.appspot.com", red).status == 200)
    #expect(try upload("blue.firebasestorage.app", blue).status == 200)
    #expect(try upload("red.appspot.com", blue).status == 401)
    let path = "/v0/b/red.appspot.com/o/own%2Fann%2Fa?alt=media"
    #expect(try server.request("GET", path, nil, red).text == "content")
    #expect(try server.request("GET", path, nil, blue).status == 401)
    #expect(try server.request("GET", "/v0/b/blue.appspot.com/o/own%2Fann%2Fa?alt=media", nil, blue).status == 404)
    // The URL of an upload that red began.
    let begun = try server.request(
      "POST", "/v0/b/red.appspot.com/o?uploadType=resumable&name=own%2Fann%2Fb", "{}", red)
    let location = try #require(begun.header("location"))
    let target = String(location.dropFirst("http://localhost".count))
    let foreign = target.replacingOccurrences(of: "red.appspot.com", with: "blue.appspot.com")
    let refused = try server.request("PUT", foreign, "x", ("Content-Range", "bytes 0-0/1"))
    #expect((400..<500).contains(refused.status), "\(refused.text)")
    #expect(try server.request("PUT", target, "x", ("Content-Range", "bytes 0-0/1")).status == 200)
    let files = FileManager.default
    for project in ["red", "blue"] {
      #expect(files.fileExists(atPath: server.directory.file("data/project-files/\(project)/data.mdb")))
    }
    #expect(!files.fileExists(atPath: server.directory.file("data/files")))
  }

  @Test func tokensOfOneProjectNameNothingInAnother() throws {
    let server = try ProjectsServer(["red", "blue"])
    for project in ["red", "blue"] { try server.write(project) }
    let (red, blue) = (ProjectsServer.documents("red"), ProjectsServer.documents("blue"))
    let begun = try server.request("POST", "\(red):beginTransaction", "{}")
    let transaction = try #require(begun.json("transaction") as String?)
    let commit = #"{"writes": [], "transaction": "\#(transaction)"}"#
    let foreign = try server.request("POST", "\(blue):commit", commit)
    #expect((400..<500).contains(foreign.status), "\(foreign.text)")
    #expect(try server.request("POST", "\(red):commit", commit).status == 200)
    for name in ["m", "o"] {
      _ = try server.request("PATCH", "\(red)/notes/\(name)", #"{"fields": {}}"#)
    }
    let page = try server.request("GET", "\(red)/notes?pageSize=1")
    let token = try #require(page.json("nextPageToken") as String?).replacingOccurrences(of: "+", with: "%2B")
    let next = try server.request("GET", "\(blue)/notes?pageSize=1&pageToken=\(token)")
    #expect(next.status == 400 || !next.text.contains("projects/red"), "\(next.text)")
    let administrator = try server.administrator("red")
    #expect(try server.request("GET", "\(blue)/users/bob", nil, administrator).status == 401)
    let accounts = try server.request("POST", "/v1/projects/blue/accounts:query", "{}", administrator)
    #expect(accounts.status == 401, "\(accounts.text)")
  }

  @Test func serviceKeysGetTokensOfTheirProject() throws {
    let server = try ProjectsServer(["red", "blue"])
    for project in ["red", "blue"] {
      let accounts = try server.accounts(project)
      let file = try #require(MapValue(json: try accounts.serviceKeys.create(name: "backend", url: "http://x")))
      let assertion = try ServiceProgram(file).sign(
        [("aud", .string("https://oauth2.googleapis.com/token"))], at: accounts.nowSeconds)
      let reply = try server.request(
        "POST", "/token", "grant_type=urn%3Aietf%3Aparams%3Aoauth%3Agrant-type%3Ajwt-bearer&assertion=\(assertion)",
        Self.form)
      let token = ("Authorization", "Bearer \(try #require(reply.json("access_token") as String?, "\(reply.text)"))")
      for other in ["red", "blue"] {
        let found = try server.request("GET", "\(ProjectsServer.documents(other))/users/bob", nil, token)
        #expect(found.status == (other == project ? 404 : 401), "\(found.text)")
      }
    }
    #expect(try server.request("POST", "/token", "assertion=a.b.c", Self.form).status == 404)
  }

  @Test func keysOfTokensAreThoseOfTheProject() throws {
    let server = try ProjectsServer(["red", "blue"])
    for project in ["red", "blue"] {
      _ = try server.user(project)
      let discovery = try server.request("GET", "/\(project)/.well-known/openid-configuration")
      #expect(discovery.json("issuer") == "https://securetoken.google.com/\(project)", "\(discovery.text)")
      let url = try #require(discovery.json("jwks_uri") as String?)
      let keys = try server.request("GET", String(url.dropFirst("http://localhost".count)))
      #expect(keys.status == 200)
      let id = try server.accounts(project).signingKeys.current(.idToken).id
      #expect(keys.text.contains(id), "\(url): \(keys.text)")
    }
  }
}
