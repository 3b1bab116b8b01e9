import DatabaseService
import DocumentModel
import DocumentStore
import Foundation
import HearthServer
import RulesEngine
import RulesTesting
import Testing
import TestSupport

/// The decisions of a server, recorded as cases.
@Suite struct CaseRecordingTests {
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        function isAdmin() {
          return get(/databases/$(database)/documents/users/$(request.auth.uid)).data.role == 'admin';
        }
        match /rooms/{room} {
          allow read: if request.auth.uid in resource.data.members;
          allow write: if isAdmin() || getAfter(/databases/$(database)/documents/keys/$(room)).data.by == request.auth.uid;
        }
        match /keys/{key} { allow read, write: if true; }
      }
    }
    """
  /// The room of ann.
  private static let room = #"{"fields":{"members":{"arrayValue":{"values":[{"stringValue":"ann"}]}}}}"#

  private static func headers(_ uid: String) -> [(String, String)] {
    [("Authorization", "Bearer " + UnsignedToken.make(#"{"sub":"\#(uid)"}"#))]
  }
  private static let owner = [("Authorization", "Bearer owner")]

  /// A server with the rules above, with a room of ann and an administrator zoe.
  private static func server(_ recorder: CaseRecorder) throws -> TestServer {
    let server = try TestServer { $0.accessObserver = recorder }
    try upload(rules, to: server)
    for (path, document) in [
      ("/rooms/r1", room), ("/users/zoe", #"{"fields":{"role":{"stringValue":"admin"}}}"#),
    ] {
      #expect(try server.call("PATCH", path, document, headers: owner).status == 200)
    }
    return server
  }

  private static func upload(_ rules: String, to server: TestServer) throws {
    let body: JSONNode = ["rules": ["files": [["name": "f.rules", "content": .string(rules)]]]]
    #expect(try server.call("PUT", "/emulator/v1/projects/p:securityRules", body.text).status == 200)
  }

  /// The names of the recorded cases with their decisions, after checks that all of them reproduce.
  private static func decisions(_ recorder: CaseRecorder) throws -> [String] {
    let (suites, outcome) = recorder.recording.finish()
    #expect(outcome.leftOut.isEmpty && outcome.beyondLimits == 0, "\(outcome)")
    return try suites.flatMap { recorded in
      let rules = String(decoding: recorded.ruleset.source.bytes, as: UTF8.self)
      let suite = try SuiteReader(now: Timestamp(uncheckedMicroseconds: 0)).read(
        recorded.text(rules: rules), file: "recorded.tests.json")
      var coverage: Coverage?
      let run = SuiteRun(suite, by: recorded.ruleset, coverage: &coverage)
      #expect(run.failures.isEmpty && run.results.count == recorded.count)
      return suite.tests.map { "\($0.name): \($0.expectsAllow ? "allow" : "deny")" }
    }
  }

  @Test(arguments: RulesCaseTests.files)
  func aRecordedSuiteDecidesAndDetectsLikeTheOriginal(file: String) throws {
    let path = RulesCaseTests.folder + file
    let suite = try JSONNode(parsing: Array(try String(contentsOfFile: path, encoding: .utf8).utf8))
    let time = SteppedTime()
    let recorder = CaseRecorder()
    let server = try TestServer { configuration in
      configuration.rules = [.init(RulesCaseTests.folder + (suite["rules"]?.stringValue ?? ""))]
      configuration.clock = Clock { time.now }
      configuration.mapBytes = 16 << 20
      configuration.accessObserver = recorder
    }
    let directory = try TemporaryDirectory()
    let tree = try directory.write("documents.json", suite["documents"]?.text ?? "{}")
    let cases = suite["cases"]?.elements ?? []
    for (index, item) in cases.enumerated() {
      let text = try #require(item["time"]?.stringValue ?? suite["time"]?.stringValue)
      time.now = try #require(Timestamp(rfc3339: text.utf8)).microseconds
      let id = try #require(DatabaseID(project: "case-\(index)"))
      _ = try server.server.registry.database(id)?.load(ImportFiles([tree], database: id))
      _ = try RulesCase(item, in: id).send(to: server)
    }
    let (suites, outcome) = recorder.recording.finish()
    #expect(outcome.leftOut.isEmpty, "\(outcome)")
    #expect(outcome.testCount == cases.count)
    let recorded = try #require(suites.first)
    #expect(suites.count == 1 && recorded.count > cases.count * 3 / 4 && recorded.count <= outcome.decisionCount)
    let reader = SuiteReader(now: Timestamp(uncheckedMicroseconds: 0))
    func survivors(_ suite: RuleTestSuite) -> [String] {
      var suite = suite
      for index in suite.tests.indices { suite.tests[index].expectedLine = nil }
      var coverage: Coverage?
      let run = SuiteRun(suite, by: recorded.ruleset, coverage: &coverage)
      #expect(run.failures.isEmpty, "\(run.failures.map(\.test.name))")
      return MutationTest(recorded.ruleset, file: file, [run]).survivors.map { "\($0.line): \($0.change)" }
    }
    let again = try reader.read(
      recorded.text(rules: String(decoding: recorded.ruleset.source.bytes, as: UTF8.self)), file: "recorded.tests.json")
    #expect(survivors(again) == survivors(try reader.read(file: path)))
  }

  @Test func requestsOverRESTAreRecordedWithTheDocumentsThatRulesRead() throws {
    let recorder = CaseRecorder()
    let server = try Self.server(recorder)
    #expect(try server.call("GET", "/rooms/r1", headers: Self.headers("ann")).status == 200)
    #expect(try server.call("GET", "/rooms/r1", headers: Self.owner).status == 200)
    #expect(try server.call("GET", "/rooms/r1").status == 403)
    #expect(try server.call("DELETE", "/rooms/r1", headers: Self.headers("eve")).status == 403)
    #expect(try server.call("DELETE", "/rooms/r1", headers: Self.headers("zoe")).status == 200)
    // A commit is one case, and getAfter() reads its other write.
    let name = TestServer.name
    let commit = """
      {"writes":[{"update":{"name":"\(name)/rooms/r2","fields":{"n":{"integerValue":"1"}}},"currentDocument":{"exists":false},
      "updateTransforms":[{"fieldPath":"at","setToServerValue":"REQUEST_TIME"}]},
      {"update":{"name":"\(name)/keys/r2","fields":{"by":{"stringValue":"bob"}}}}]}
      """
    #expect(try server.call("POST", ":commit", commit, headers: Self.headers("bob")).status == 200)
    let count = """
      {"structuredAggregationQuery":{"aggregations":[{"alias":"n","count":{}}],
      "structuredQuery":{"from":[{"collectionId":"rooms"}],"where":{"fieldFilter":{"field":{"fieldPath":"members"},
      "op":"ARRAY_CONTAINS","value":{"stringValue":"ann"}}}}}}
      """
    #expect(try server.call("POST", ":runAggregationQuery", count, headers: Self.headers("ann")).status == 200)
    #expect(
      try Self.decisions(recorder) == [
        "list rooms as ann: members contains: allow", "delete rooms/r1 as eve: deny", "delete rooms/r1 as zoe: allow",
        "get rooms/r1 as ann: allow", "get rooms/r1 unauthenticated: deny",
        "create rooms/r2 and set keys/r2 as bob: allow",
      ])
    let text = String(decoding: recorder.recording.finish().suites[0].text(rules: "f.rules"), as: UTF8.self)
    #expect(text.contains(#""documents": {"users/zoe": {"role": "admin"}}"#), "\(text)")
    #expect(text.contains(#""transforms": {"at": "serverTimestamp"}"#), "\(text)")
  }

  @Test func verifiedDocumentsOfATransactionAreGets() throws {
    let recorder = CaseRecorder()
    let server = try Self.server(recorder)
    let commit = """
      {"writes":[{"verify":"\(TestServer.name)/rooms/r1","currentDocument":{"exists":true}},
      {"update":{"name":"\(TestServer.name)/keys/k","fields":{}}}]}
      """
    #expect(try server.call("POST", ":commit", commit, headers: Self.headers("ann")).status == 200)
    #expect(try server.call("POST", ":commit", commit, headers: Self.headers("eve")).status == 403)
    #expect(
      try Self.decisions(recorder) == [
        "set keys/k as ann: allow", "get rooms/r1 as ann: allow", "get rooms/r1 as eve: deny",
      ])
  }

  @Test func streamsOfTheWebSDKAreRecorded() throws {
    let recorder = CaseRecorder()
    let server = try Self.server(recorder)
    let database = "projects/p/databases/(default)"
    for (uid, expected) in [("ann", "CURRENT"), ("eve", "PERMISSION_DENIED")] {
      let listen = ChannelClient(server.port)
      let target = """
        {"database":"\(database)","addTarget":{"documents":{"documents":["\(TestServer.name)/rooms/r1"]},"targetId":2}}
        """
      let token = UnsignedToken.make(#"{"sub":"\#(uid)"}"#)
      let form = ChannelClient.form([target], from: 0, headers: "Authorization:Bearer \(token)\r\n")
      #expect(try listen.open(form).status == 200)
      try listen.listen("AID=0&CI=0")
      var received = ""
      while !received.contains(expected), !received.contains(#""cause""#) { received += try listen.next() }
      let write = ChannelClient(server.port, "Write")
      let batch = """
        {"streamToken":"MA==","writes":[{"update":{"name":"\(TestServer.name)/rooms/r1","fields":{}},
        "updateMask":{"fieldPaths":[]},"currentDocument":{"exists":true}}]}
        """
      #expect(
        try write.open(
          ChannelClient.form(
            [#"{"database":"\#(database)"}"#, batch], from: 0, headers: "Authorization:Bearer \(token)\r\n")
        ).status == 200)
      try write.listen("AID=0&CI=0")
      received = ""
      while !received.contains("PERMISSION_DENIED") { received += try write.next() }
    }
    #expect(
      try Self.decisions(recorder) == [
        "get rooms/r1 as ann: allow", "get rooms/r1 as eve: deny", "update rooms/r1 as ann: deny",
        "update rooms/r1 as eve: deny",
      ])
  }

  @Test func listensOverGRPCAreRecorded() throws {
    let recorder = CaseRecorder()
    let server = try Self.server(recorder)
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Listen", headers: Self.headers("ann").map { ($0.lowercased(), $1) })
    grpc.send(GRPCListenTests.documents(2, "rooms/r1"), on: stream)
    for _ in 0..<4 { _ = try #require(try grpc.next(on: stream)) }
    #expect(try Self.decisions(recorder) == ["get rooms/r1 as ann: allow"])
  }

  @Test func rulesetsAndStatesOfParallelProjectsDoNotMix() async throws {
    let recorder = CaseRecorder()
    let server = try Self.server(recorder)
    // Two tests of several projects at once, in each of which the room belongs to another user.
    await withTaskGroup(of: Void.self) { group in
      for number in 0..<8 {
        group.addTask {
          try? await onDedicatedThread {
            let root = "/v1/projects/p\(number)/databases/(default)/documents"
            let body: JSONNode = ["rules": ["files": [["name": "f.rules", "content": .string(Self.rules)]]]]
            _ = try? server.call("PUT", "/emulator/v1/projects/p\(number):securityRules", body.text)
            for user in ["ann", "eve"] {
              let room = Self.room.replacing("ann", with: user)
              _ = try? server.call("PATCH", root + "/rooms/r1", room, headers: Self.owner)
              _ = try? server.call("GET", root + "/rooms/r1", headers: Self.headers("ann"))
            }
          }
        }
      }
    }
    #expect(try Self.decisions(recorder) == ["get rooms/r1 as ann: allow", "get rooms/r1 as ann (2): deny"])
    try Self.upload(Self.rules.replacing("'admin'", with: "'owner'"), to: server)
    _ = try server.call("GET", "/rooms/r1", headers: Self.headers("ann"))
    #expect(recorder.recording.finish().suites.map(\.count).sorted() == [1, 2])
  }

  @Test func filesAreRecorded() throws {
    let recorder = CaseRecorder()
    let server = try TestServer { $0.accessObserver = recorder }
    let rules: JSONNode = .string(
      """
      rules_version = '2';
      service firebase.storage {
        match /b/{bucket}/o/pictures/{uid}/{name} {
          allow read: if resource.metadata.shared == 'yes' || request.auth.uid == uid;
          allow create: if request.auth.uid == uid && request.resource.contentType.matches('image/.*')
            && firestore.get(/databases/(default)/documents/users/$(uid)).data.pays;
          allow delete: if request.auth.uid == uid && resource.md5Hash != 'x';
        }
      }
      """)
    let loaded: JSONNode = ["rules": ["files": [["name": "storage.rules", "content": rules]]]]
    #expect(try server.call("PUT", "/internal/setRules", loaded.text).status == 200)
    _ = try server.call("PATCH", "/users/ann", #"{"fields":{"pays":{"booleanValue":true}}}"#, headers: Self.owner)
    let object = "/v0/b/p.appspot.com/o/pictures%2Fann%2Fone"
    for (uid, type, status) in [("ann", "image/png", 200), ("ann", "text/plain", 403), ("eve", "image/png", 403)] {
      let put = try server.call(
        "POST", "/v0/b/p.appspot.com/o?name=pictures%2Fann%2Fone", "abc",
        headers: Self.headers(uid) + [("Content-Type", type)])
      #expect(put.status == status, "\(put.text)")
    }
    #expect(try server.call("GET", object, headers: Self.headers("ann")).status == 200)
    #expect(try server.call("GET", object, headers: Self.headers("eve")).status == 403)
    #expect(try server.call("DELETE", object, headers: Self.headers("ann")).status == 204)
    let decisions = try Self.decisions(recorder)
    let path = "b/p.appspot.com/o/pictures/ann/one"
    #expect(
      decisions == [
        "create \(path) as ann: allow", "create \(path) as ann (2): deny", "create \(path) as eve: deny",
        "delete \(path) as ann: allow", "get \(path) as ann: allow", "get \(path) as eve: deny",
      ], "\(decisions)")
    let text = String(decoding: recorder.recording.finish().suites[0].text(rules: "storage.rules"), as: UTF8.self)
    #expect(text.contains(#""documents": {"users/ann": {"pays": true}}"#) || text.contains(#""ann": {"pays": true}"#))
    #expect(text.contains(#""data": {"contentType": "image/png", "md5Hash": "kAFQmDzST7DWlj99KOF/cg==", "size": 3}"#))
  }

  @Test func productionRecordsNothing() {
    #expect(throws: HearthError.self) { try TestServer(.production) { $0.accessObserver = CaseRecorder() } }
  }
}
