import Accounts
import DocumentModel
import Foundation
import HearthServer
import Testing
import TestSupport
import WireFormat

/// Names, tokens and codes that a project gave out, in requests to another project of the same server.
@Suite struct ForeignProjectTests {
  private static let json = ("Content-Type", "application/json")

  private static func isRefused(_ reply: TestServer.Response) -> Bool { (400..<500).contains(reply.status) }

  // MARK: Accounts

  @Test func tokensInBodiesAreRefused() throws {
    let server = try ProjectsServer(["red", "blue"])
    let made = try server.request(
      "POST", "/v1/accounts:signUp?key=key-of-red", #"{"email": "ann@example.com", "password": "secret-1"}"#)
    let token = try #require(made.json("idToken") as String?, "\(made.text)")
    let bodies = [
      ("lookup", #"{"idToken": "\#(token)"}"#), ("update", #"{"idToken": "\#(token)", "displayName": "x"}"#),
      ("signUp", #"{"idToken": "\#(token)", "email": "b@example.com", "password": "secret-2"}"#),
      ("sendOobCode", #"{"idToken": "\#(token)", "requestType": "VERIFY_EMAIL"}"#),
      ("delete", #"{"idToken": "\#(token)"}"#),
    ]
    for (call, body) in bodies {
      let reply = try server.request("POST", "/v1/accounts:\(call)?key=key-of-blue", body, Self.json)
      #expect(Self.isRefused(reply) && reply.message.hasPrefix("INVALID_ID_TOKEN"), "\(call): \(reply.text)")
    }
    let cookie = try server.request(
      "POST", "/v1/projects/blue:createSessionCookie", #"{"idToken": "\#(token)", "validDuration": "3600"}"#,
      try server.administrator("blue"))
    #expect(Self.isRefused(cookie), "\(cookie.text)")
    let password = try server.request(
      "POST", "/v1/accounts:signInWithPassword?key=key-of-blue",
      #"{"email": "ann@example.com", "password": "secret-1"}"#)
    #expect(password.status == 400, "\(password.text)")
    #expect(try server.request("POST", "/v1/accounts:lookup?key=key-of-red", bodies[0].1).status == 200)
  }

  @Test func sessionCookiesAndCustomTokensAreRefused() throws {
    let server = try ProjectsServer(["red", "blue"])
    let key = try #require(
      MapValue(json: try server.accounts("red").serviceKeys.create(name: "backend", url: "http://x")))
    let audience = "https://identitytoolkit.googleapis.com/google.identity.identitytoolkit.v1.IdentityToolkit"
    let custom = try ServiceProgram(key).sign(
      [("aud", .string(audience)), ("uid", .string("ann"))], at: server.accounts("red").nowSeconds)
    for (project, status) in [("blue", 400), ("red", 200)] {
      let reply = try server.request(
        "POST", "/v1/accounts:signInWithCustomToken?key=key-of-\(project)", #"{"token": "\#(custom)"}"#, Self.json)
      #expect(reply.status == status, "\(project): \(reply.text)")
    }
    let user = try server.user("red")
    let token = String(user.1.dropFirst("Bearer ".count))
    let cookie: String = try #require(
      server.request(
        "POST", "/v1/projects/red:createSessionCookie", #"{"idToken": "\#(token)", "validDuration": "3600"}"#,
        try server.administrator("red")
      ).json("sessionCookie"))
    let found = try server.request(
      "GET", "\(ProjectsServer.documents("blue"))/users/ann", nil, ("Authorization", "Bearer \(cookie)"))
    #expect(found.status == 401, "\(found.text)")
  }

  @Test func codesOfMailsAreRefused() throws {
    let server = try ProjectsServer(["red", "blue"])
    let email = "ann@example.com"
    for project in ["red", "blue"] {
      let made = try server.request(
        "POST", "/v1/accounts:signUp?key=key-of-\(project)", #"{"email": "\#(email)", "password": "secret-1"}"#)
      #expect(made.status == 200, "\(made.text)")
    }
    for (type, call, more) in [
      ("EMAIL_SIGNIN", "signInWithEmailLink", #", "email": "\#(email)""#),
      ("PASSWORD_RESET", "resetPassword", #", "newPassword": "secret-2""#),
    ] {
      let sent = try server.request(
        "POST", "/v1/projects/red/accounts:sendOobCode",
        #"{"requestType": "\#(type)", "email": "\#(email)", "returnOobLink": true, "continueUrl": "http://localhost"}"#,
        try server.administrator("red"), Self.json)
      let code = try #require(sent.json("oobCode") as String?, "\(sent.text)")
      let body = #"{"oobCode": "\#(code)"\#(more)}"#
      let foreign = try server.request("POST", "/v1/accounts:\(call)?key=key-of-blue", body, Self.json)
      #expect(foreign.status == 400 && foreign.message.hasPrefix("INVALID_OOB_CODE"), "\(type): \(foreign.text)")
      let own = try server.request("POST", "/v1/accounts:\(call)?key=key-of-red", body, Self.json)
      #expect(own.status == 200, "\(type): \(own.text)")
    }
  }

  @Test func administratorsOfAnotherProjectAreRefused() throws {
    let server = try ProjectsServer(["red", "blue"])
    let red = try server.administrator("red")
    for (method, target, body) in [
      ("GET", "/hearth/v1/keys?project=blue", nil), ("POST", "/hearth/v1/keys?project=blue", #"{"name": "x"}"#),
      ("POST", "/v1/projects/blue/accounts:query", "{}"), ("POST", "/v1/projects/blue/accounts", "{}"),
      ("GET", "/v1/projects/blue/databases/(default)/collectionGroups/-/indexes", nil),
      ("GET", "/storage/v1/b?project=blue", nil), ("GET", "/storage/v1/b/blue.appspot.com", nil),
      ("GET", "/storage/v1/b/blue.appspot.com/o", nil), ("GET", "/v0/b/blue.appspot.com/o", nil),
      ("POST", "/upload/storage/v1/b/blue.appspot.com/o?uploadType=media&name=x", "x"),
      ("POST", "/storage/v1/b?project=blue", #"{"name": "other-bucket"}"#),
    ] as [(String, String, String?)] {
      let reply = try server.request(method, target, body, red, Self.json)
      #expect([401, 403, 404].contains(reply.status), "\(method) \(target): \(reply.status) \(reply.text)")
    }
  }

  // MARK: Documents

  @Test func writesNameOnlyDocumentsOfTheirProject() throws {
    let server = try ProjectsServer(["red", "blue"])
    try server.write("blue")
    let name = "projects/blue/databases/(default)/documents/notes/n"
    let red = ProjectsServer.documents("red")
    for (call, body) in [
      ("commit", #"{"writes": [{"update": {"name": "\#(name)", "fields": {}}}]}"#),
      ("commit", #"{"writes": [{"delete": "\#(name)"}]}"#),
      ("batchWrite", #"{"writes": [{"delete": "\#(name)"}]}"#),
      ("batchGet", #"{"documents": ["\#(name)"]}"#),
    ] {
      let reply = try server.request("POST", "\(red):\(call)", body, try server.administrator("red"))
      #expect(reply.status >= 400 && !reply.text.contains("found"), "\(call): \(reply.text)")
    }
    #expect(try server.note("blue") == (200, "blue"))
  }

  @Test func resumeTokensAreOfOneProject() throws {
    let server = try ProjectsServer(["p", "q"])
    for project in ["p", "q"] { try server.write(project) }
    let grpc = try GRPCConnection(port: server.server.port)
    func listen(_ project: String, _ token: [UInt8] = []) throws -> (texts: [String], token: [UInt8], status: Int?) {
      let database = "projects/\(project)/databases/(default)"
      let stream = grpc.open("Listen", headers: [("google-cloud-resource-prefix", database)])
      let request = Message { out in
        ProtobufWriter.string(1, database, to: &out)
        ProtobufWriter.message(2, to: &out) { target in
          ProtobufWriter.message(3, to: &target) {
            ProtobufWriter.string(2, "\(database)/documents/notes/n", to: &$0)
          }
          if !token.isEmpty { ProtobufWriter.bytes(4, token, to: &target) }
          ProtobufWriter.int64(5, 2, to: &target)
        }
      }
      grpc.send(GRPCConnection.framed(request.bytes), on: stream, end: true)
      let end = try grpc.end(of: stream)
      let names = end.messages.flatMap { Message.fields(3, of: $0) }.map { String(decoding: $0, as: UTF8.self) }
      let last = end.messages.last.map { Message.fields(2, of: $0) }?.first ?? []
      return (names, Message.fields(4, of: last).first ?? [], end.status)
    }
    let first = try listen("p")
    #expect(first.status == 0 && first.texts.count == 1 && !first.token.isEmpty)
    // With its own token, a listener receives only changes.
    #expect(try listen("p", first.token).texts.isEmpty)
    let foreign = try listen("q", first.token)
    #expect(foreign.status != 0 || foreign.texts.contains { $0.contains("projects/q/") }, "\(foreign)")
    #expect(!foreign.texts.contains { $0.contains("projects/p/") })
  }

  @Test func messagesOfAStreamNameOnlyItsProject() throws {
    let server = try ProjectsServer(["p", "q"])
    try server.write("p")
    let grpc = try GRPCConnection(port: server.server.port)
    let stream = grpc.open("Listen", headers: [("google-cloud-resource-prefix", "projects/q/databases/(default)")])
    grpc.send(GRPCListenTests.documents(2, "notes/n"), on: stream, end: true)
    let end = try grpc.end(of: stream)
    #expect(end.status != 0 && end.messages.isEmpty, "\(end)")
    // The database of a channel is in its query, and again in its messages.
    let target =
      #"{"database":"projects/p/databases/(default)","addTarget":{"targetId":2,"#
      + #""documents":{"documents":["\#(TestServer.name)/notes/n"]}}}"#
    let opened = try server.request(
      "POST",
      "/google.firestore.v1.Firestore/Listen/channel?VER=8&RID=1&CVER=22&"
        + "database=projects%2Fq%2Fdatabases%2F(default)", ChannelClient.form([target], from: 0),
      ("Content-Type", "application/x-www-form-urlencoded"))
    let id = opened.text.split(separator: "\"").dropFirst(3).first.map(String.init) ?? ""
    let back = try ChunkReader(
      port: server.server.port,
      target: "/google.firestore.v1.Firestore/Listen/channel?VER=8&RID=rpc&TYPE=xmlhttp&AID=0&CI=0&SID=\(id)&"
        + "database=projects%2Fq%2Fdatabases%2F(default)")
    let text = try #require(try back.next())
    #expect(text.contains("error") && !text.contains("documentChange"), "\(text)")
  }

  // MARK: Files

  @Test func signedURLsAreOfOneProject() throws {
    let server = try ProjectsServer(["red", "blue"])
    for project in ["red", "blue"] {
      let put = try server.request(
        "POST", "/v0/b/\(project).appspot.com/o?uploadType=media&name=own%2Fann%2Fa", project, try server.user(project))
      #expect(put.status == 200, "\(put.text)")
    }
    let file = try #require(
      MapValue(json: try server.accounts("red").serviceKeys.create(name: "signer", url: "http://x")))
    let pem = try #require(file.text("private_key"))
    let signer = URLSigner(
      email: try #require(file.text("client_email")), key: try #require(RSAKey(privatePEM: pem)))
    let own = try server.request("GET", try signer.v4("GET", "/red.appspot.com/own/ann/a"))
    #expect(own.status == 200 && own.text == "red", "\(own.text)")
    let foreign = try server.request("GET", try signer.v4("GET", "/blue.appspot.com/own/ann/a"))
    #expect(Self.isRefused(foreign) && foreign.text != "blue", "\(foreign.text)")
    let older = try server.request(
      "GET", try signer.v2("GET", "/blue.appspot.com/own/ann/a", until: Date() + 60))
    #expect(Self.isRefused(older) && older.text != "blue", "\(older.text)")
  }

  @Test func copiesAndBatchesStayInTheirProject() throws {
    let server = try ProjectsServer(["red", "blue"])
    let red = try server.administrator("red")
    for project in ["red", "blue"] {
      let put = try server.request(
        "POST", "/v0/b/\(project).appspot.com/o?uploadType=media&name=a", project, try server.administrator(project))
      #expect(put.status == 200, "\(put.text)")
    }
    for (source, target) in [("red", "blue"), ("blue", "red")] {
      let copied = try server.request(
        "POST", "/storage/v1/b/\(source).appspot.com/o/a/rewriteTo/b/\(target).appspot.com/o/b", "{}", red)
      #expect(Self.isRefused(copied), "\(source) \(target): \(copied.text)")
    }
    let part = "GET /storage/v1/b/blue.appspot.com/o/a?alt=media HTTP/1.1\r\n\r\n"
    let batch = "--x\r\nContent-Type: application/http\r\nContent-ID: <1>\r\n\r\n\(part)\r\n--x--\r\n"
    let reply = try server.request(
      "POST", "/batch/storage/v1", batch, red, ("Host", "red.example.com"),
      ("Content-Type", "multipart/mixed; boundary=x"))
    #expect(!reply.text.contains("HTTP/1.1 200") && !reply.text.contains("\nblue"), "\(reply.text)")
  }

  // MARK: Host names

  @Test func hostNamesAreComparedAsNames() throws {
    let server = try ProjectsServer(["red", "blue"])
    let administrator = try server.administrator("red")
    func status(_ headers: (String, String)..., target: String = "/hearth/v1/keys") throws -> Int {
      try server.server.request("GET", target, nil, headers: headers + [administrator]).status
    }
    // 200: red. 401: blue, which does not accept the token. 404: no project.
    for (host, expected) in [
      ("red.example.com", 200), ("RED.Example.COM", 200), ("red.example.com:443", 200), ("red.example.com.", 200),
      ("red.example.com.:80", 200), ("red.example.com:", 200), ("blue.example.com", 401), ("xred.example.com", 404),
      ("red.example.com.evil.example", 404), ("red.example.co", 404), ("red.example.com..", 404), ("", 404),
      ("example.com", 404), ("blue.example.com@red.example.com", 404), ("red.example.com,blue.example.com", 404),
      ("[::1]:8080", 404), ("[red.example.com]", 404), ("red", 404), ("red%2Eexample.com", 404),
    ] {
      let found = try status(("Host", host))
      // The parser may also refuse a text that is no host name.
      #expect(found == expected || expected == 404 && found == 400, "\(host): \(found)")
    }
    // The fields of proxies choose no project.
    for name in ["X-Forwarded-Host", "Forwarded", "X-Host", "X-Original-Host"] {
      #expect(try status(("Host", "localhost"), (name, "red.example.com")) == 404, "\(name)")
      #expect(try status(("Host", "blue.example.com"), (name, "red.example.com")) == 401, "\(name)")
    }
    // The host of an absolute target replaces the field (RFC 9112, section 3.2.2).
    #expect(try status(("Host", "blue.example.com"), target: "http://red.example.com/hearth/v1/keys") == 200)
    #expect(try status(("Host", "red.example.com"), target: "http://BLUE.example.com:80/hearth/v1/keys") == 401)
    #expect(try status(("Host", "red.example.com"), target: "http://red.example.com@blue.example.com/") == 400)
    #expect(try status(("Host", "red.example.com"), ("Host", "blue.example.com")) == 400)
  }

  @Test func authorityOfHTTP2NamesTheProject() throws {
    let server = try ProjectsServer(["red", "blue"])
    let grpc = try GRPCConnection(port: server.server.port)
    let name = "projects/red/databases/(default)/documents/notes/none"
    for (host, expected) in [("blue.example.com", 5), ("red.example.com", 5)] {
      // The connection's authority is localhost, which precedes a field named host.
      let reply = try grpc.call(
        "GetDocument", [10, UInt8(name.utf8.count)] + Array(name.utf8),
        headers: [("host", host), ("google-cloud-resource-prefix", "projects/red/databases/(default)")])
      #expect(reply.status == expected && reply.statusMessage.contains("Document"), "\(host): \(reply)")
    }
  }

  @Test func requestsThatNameTwoProjectsAreRefused() throws {
    let server = try ProjectsServer(["red", "blue"])
    let host = ("Host", "blue.example.com")
    let channel = "/google.firestore.v1.Firestore/Listen/channel?VER=8&RID=1&database=projects%2Fred%2Fdatabases%2F"
    let cases: [(method: String, target: String, headers: [(String, String)])] = [
      ("POST", channel + "(default)", [host]), ("POST", channel + "(default)&key=key-of-blue", []),
      ("POST", channel + "(default)&database=projects%2Fblue%2Fdatabases%2F(default)", []),
      ("GET", "/hearth/v1/keys?project=red", [host]), ("GET", "/hearth/v1/keys?project=red&project=blue", []),
      ("GET", "/red/.well-known/openid-configuration", [host]),
      ("POST", "/upload/storage/v1/b/red.appspot.com/o?uploadType=media&name=x", [host]),
      ("POST", "/v0/b/red.firebasestorage.app/o?name=x", [host]),
      ("POST", "/storage/v1/b/red.appspot.com/o?key=key-of-blue", []),
      ("POST", "/v1/accounts:signUp?key=key-of-red&key=key-of-blue", []),
      ("POST", "/v1/accounts:signUp?key=key-of-red", [("X-Goog-Api-Key", "key-of-blue")]),
      ("POST", "/identitytoolkit.googleapis.com/v1/projects/red/accounts:lookup", [host]),
      ("POST", "/v1/projects/red:createSessionCookie", [host]),
      ("GET", "http://blue.example.com\(ProjectsServer.documents("red"))/notes/n", []),
      (
        "GET", "\(ProjectsServer.documents("red"))/notes/n",
        [("x-goog-request-params", "name=projects%2Fblue%2Fdatabases%2F(default)")]
      ),
    ]
    for (method, target, headers) in cases {
      let reply = try server.server.request(method, target, method == "GET" ? nil : "{}", headers: headers)
      #expect(reply.status == 403 && reply.text.contains("names several projects"), "\(target): \(reply.text)")
    }
  }

  /// An encoded name is another text to the dispatcher, and the project that gets the request does not have it.
  @Test func encodedNamesReachNoOtherProject() throws {
    let server = try ProjectsServer(["red", "blue"], standard: "blue")
    try server.write("red")
    for target in [
      "/v1/projects/r%65d/databases/(default)/documents/notes/n",
      "/v1/projects%2Fred/databases/(default)/documents/notes/n",
      "//v1/projects/red/databases/(default)/documents/notes/n",
      "/v1//projects/red/databases/(default)/documents/notes/n",
      "/v1/projects/blue/../red/databases/(default)/documents/notes/n",
      "/v0/b/red%2Eappspot.com/o/a", "/r%65d.appspot.com/a",
    ] {
      let reply = try server.request("GET", target)
      #expect(reply.status >= 400 && !reply.text.contains(#""stringValue""#), "\(target): \(reply.text)")
    }
  }
}
