import Foundation
import HearthServer
import Testing
import TestSupport

@testable import FirestoreAPI
@testable import GatewayCore

/// The recorded exchanges of browsers and the server (listen-and-webchannel.md, section 6), and the most common
/// causes of broken clients (section 7), against a whole server.
@Suite struct WebChannelTranscriptTests {
  private static let database = "projects/p/databases/(default)"
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /open/{rest=**} { allow read, write: if true; }
        match /owned/{uid}/{rest=**} { allow read, write: if request.auth != null && request.auth.uid == uid; }
      }
    }
    """

  private static func server() throws -> TestServer {
    let server = try TestServer()
    let body = try JSONSerialization.data(withJSONObject: ["rules": ["files": [["name": "a", "content": rules]]]])
    let reply = try server.call(
      "PUT", "/emulator/v1/projects/p:securityRules", String(decoding: body, as: UTF8.self),
      headers: [("Authorization", "Bearer owner")])
    #expect(reply.status == 200, "\(reply.text)")
    return server
  }

  /// A channel whose arrays are read one at a time.
  private final class Session {
    let client: ChannelClient
    private var waiting: [(number: Int, payload: [Any])] = []
    /// The number of the last array that was read.
    private(set) var last = 0
    /// The number of back channels opened.
    private(set) var polls = 1
    private var sent: Int
    private var back: String

    init(
      _ server: TestServer, _ method: String, _ messages: [String], headers: String? = nil, back: String = "CI=0"
    ) throws {
      client = ChannelClient(server.port, method)
      self.back = back
      sent = messages.count
      let reply = try client.open(ChannelClient.form(messages, from: 0, headers: headers))
      #expect(reply.status == 200 && reply.text.contains(#"[[0,["c",""#))
      try client.listen("AID=0&\(back)")
    }

    func send(_ messages: String...) throws {
      let receipt = try client.send(ChannelClient.form(messages, from: sent), acknowledging: last)
      #expect(receipt.split(separator: ",").count == 3, "\(receipt)")
      sent += messages.count
    }

    /// Sends the last messages again, as a client does if the response to its POST is lost.
    func sendAgain(_ messages: String...) throws {
      _ = try client.send(ChannelClient.form(messages, from: sent - messages.count), acknowledging: last)
    }

    /// Opens another back channel after the last array that was read.
    func listenAgain(_ back: String) throws {
      waiting = []
      self.back = back
      polls += 1
      try client.listen("AID=\(last)&\(back)")
    }

    /// The next message. Skips keep-alives, and opens another back channel if a response ends. Checks that each
    /// payload has one message, and that numbers are consecutive.
    func next() throws -> [String: Any] {
      while true {
        while waiting.isEmpty {
          guard let text = try client.back?.next() else {
            try listenAgain(back)
            #expect(client.back?.status == 200)
            if client.back?.status != 200 { return [:] }
            continue
          }
          #expect(text.utf8.allSatisfy { $0 < 0x80 }, "\(text)")
          let arrays = try #require(JSONSerialization.jsonObject(with: Data(text.utf8)) as? [[Any]])
          for array in arrays {
            waiting.append((try #require(array[0] as? Int), try #require(array[1] as? [Any])))
          }
        }
        let (number, payload) = waiting.removeFirst()
        #expect(number == last + 1 && payload.count == 1, "\(number) after \(last)")
        last = number
        if let message = payload[0] as? [String: Any] { return message }
        #expect(payload[0] as? String == "noop")
      }
    }

    /// The next message in one line: `ADD 2`, `SNAPSHOT`, `change b 2`, `REMOVE 4 7`…
    func line() throws -> String {
      let message = try next()
      if let change = message["targetChange"] as? [String: Any] {
        let ids = (change["targetIds"] as? [Int])?.map { " \($0)" }.joined() ?? ""
        let cause = (change["cause"] as? [String: Any])?["code"].map { " \($0)" } ?? ""
        if let type = change["targetChangeType"] { return "\(type)\(ids)\(cause)" }
        #expect((change["readTime"] as? String)?.hasSuffix("Z") == true && change["resumeToken"] is String)
        return "SNAPSHOT"
      }
      for (key, verb) in [("documentChange", "change"), ("documentDelete", "delete"), ("documentRemove", "remove")] {
        guard let change = message[key] as? [String: Any] else { continue }
        let name = (change["document"] as? [String: Any])?["name"] as? String ?? change["document"] as? String ?? ""
        let ids = (change["targetIds"] as? [Int] ?? []).map { " \($0)" }
        let removed = (change["removedTargetIds"] as? [Int] ?? []).map { " -\($0)" }
        return verb + " " + (name.split(separator: "/").last ?? "") + (ids + removed).joined()
      }
      if let error = message["error"] as? [String: Any] {
        #expect(error["message"] is String && error["code"] is Int)
        return "error \(error["status"] ?? "")"
      }
      return "\(message)"
    }

    /// The lines up to and including the next snapshot.
    func snapshot() throws -> [String] {
      var lines: [String] = []
      repeat { lines.append(try line()) } while lines.last != "SNAPSHOT" && lines.count < 100
      return lines
    }
  }

  private static func addTarget(
    _ id: Int, _ parent: String, _ collection: String = "items", resuming: (token: String, count: Int)? = nil
  ) -> String {
    let resume = resuming.map { #","resumeToken":"\#($0.token)","expectedCount":\#($0.count)"# } ?? ""
    return #"""
      {"database":"\#(database)","addTarget":{"query":{"structuredQuery":{"from":[{"collectionId":"\#(collection)"}],
      "orderBy":[{"field":{"fieldPath":"__name__"},"direction":"ASCENDING"}]},"parent":"\#(database)/documents\#(parent)"},
      "targetId":\#(id)\#(resume)}}
      """#
  }

  private static func update(_ path: String, _ value: Int = 1, exists: Bool? = nil) -> String {
    let precondition = exists.map { #","currentDocument":{"exists":\#($0)}"# } ?? ""
    return #"""
      {"update":{"name":"\#(database)/documents/\#(path)","fields":{"n":{"integerValue":"\#(value)"}}}\#(precondition)}
      """#
  }

  private static func seed(_ server: TestServer, _ paths: String...) throws {
    for path in paths {
      let reply = try server.call(
        "PATCH", "/" + path, #"{"fields":{"n":{"integerValue":"1"}}}"#, headers: [("Authorization", "Bearer owner")])
      #expect(reply.status == 200)
    }
  }

  @Test(arguments: ["CI=0", "CI=1", "CI=1&TO=5000"])
  func deniedTargetDoesNotAffectAnother(_ back: String) throws {
    let server = try Self.server()
    try Self.seed(server, "open/1/items/a")
    let session = try Session(server, "Listen", [Self.addTarget(2, "/open/1")], back: back)
    #expect(try session.snapshot() == ["ADD 2", "change a 2", "CURRENT 2", "SNAPSHOT"])
    try session.send(Self.addTarget(4, "/owned/x"))
    #expect(try session.line() == "ADD 4")
    #expect(try session.line() == "REMOVE 4 7")
    // The other target still receives changes.
    try Self.seed(server, "open/1/items/b")
    #expect(try session.snapshot() == ["change b 2", "SNAPSHOT"])
  }

  /// A long poll carries all waiting messages, so that a page with many listeners need not wait for one round trip
  /// each.
  @Test func pollCarriesMessagesOfManyListeners() throws {
    let server = try Self.server()
    try Self.seed(server, "open/1/items/a")
    let ids = (1...40).map { $0 * 2 }
    let session = try Session(server, "Listen", ids.map { Self.addTarget($0, "/open/1") }, back: "CI=1")
    var current: Set<String> = []
    while current.count < ids.count {
      let line = try session.line()
      if line.hasPrefix("CURRENT") { current.insert(line) }
    }
    #expect(session.polls < 20, "\(session.polls) polls for \(ids.count) listeners")
  }

  @Test func clientBehindABufferingProxyStartsOverWithPolls() throws {
    let server = try Self.server()
    let session = try Session(server, "Listen", [Self.addTarget(2, "/open/1")])
    // The proxy delivered nothing of the stream, so the client starts over with polls.
    try session.listenAgain("CI=1")
    #expect(try session.snapshot() == ["ADD 2", "CURRENT 2", "SNAPSHOT"])
    try Self.seed(server, "open/1/items/a")
    #expect(try session.snapshot() == ["change a 2", "SNAPSHOT"])
  }

  @Test func failedBatchEndsTheWriteStream() throws {
    let server = try Self.server()
    let listener = try Session(server, "Listen", [Self.addTarget(2, "/open/1")])
    #expect(try listener.snapshot() == ["ADD 2", "CURRENT 2", "SNAPSHOT"])
    let session = try Session(server, "Write", [#"{"database":"\#(Self.database)"}"#])
    let opened = try session.next()
    let token = try #require(opened["streamToken"] as? String)
    #expect(!token.isEmpty && opened["writeResults"] == nil && opened["streamId"] is String)
    func batch(_ writes: String) -> String { #"{"streamToken":"\#(token)","writes":[\#(writes)]}"# }
    try session.send(
      batch(Self.update("open/1/items/a")), batch(Self.update("open/1/items/b", exists: true)),
      batch(Self.update("open/1/items/c")))
    let answer = try session.next()
    #expect((answer["writeResults"] as? [[String: Any]])?.count == 1 && answer["commitTime"] is String)
    #expect(answer["streamToken"] as? String != token)
    #expect(try session.line() == "error NOT_FOUND")
    // A repeated POST is not applied again, and neither is the batch after the failed one.
    try session.sendAgain(batch(Self.update("open/1/items/c")))
    #expect(try server.call("GET", "/open/1/items/c", headers: [("Authorization", "Bearer owner")]).status == 404)
    let seen = try listener.next()
    let document = (seen["documentChange"] as? [String: Any])?["document"] as? [String: Any]
    let results = answer["writeResults"] as? [[String: Any]]
    #expect(document?["updateTime"] as? String == results?.first?["updateTime"] as? String)
    #expect(try listener.line() == "SNAPSHOT")
  }

  @Test func batchIsOneSnapshotAndARepeatedPostIsAppliedOnce() throws {
    let server = try Self.server()
    let listener = try Session(server, "Listen", [Self.addTarget(2, "/open/1"), Self.addTarget(4, "/open/2")])
    _ = try listener.snapshot()
    _ = try listener.snapshot()
    let session = try Session(server, "Write", [#"{"database":"\#(Self.database)"}"#])
    let token = try #require(try session.next()["streamToken"] as? String)
    let increment =
      #"{"transform":{"document":"\#(Self.database)/documents/open/1/items/n","fieldTransforms":"#
      + #"[{"fieldPath":"n","increment":{"integerValue":"1"}}]}}"#
    let batch = #"{"streamToken":"\#(token)","writes":[\#(Self.update("open/2/items/m")),\#(increment)]}"#
    try session.send(batch)
    try session.sendAgain(batch)
    try session.sendAgain(batch)
    #expect((try session.next()["writeResults"] as? [Any])?.count == 2)
    #expect(Set(try listener.snapshot()) == ["change m 4", "change n 2", "SNAPSHOT"])
    let reply = try server.call("GET", "/open/1/items/n", headers: [("Authorization", "Bearer owner")])
    #expect(reply.json("fields", "n", "integerValue") == "1")
  }

  @Test func resumedTargetReceivesChanges() throws {
    let server = try Self.server()
    try Self.seed(server, "open/1/items/a", "open/1/items/b", "open/1/items/c")
    let first = try Session(server, "Listen", [Self.addTarget(2, "/open/1")])
    var token = ""
    for _ in 0..<6 {
      let message = try first.next()
      token = (message["targetChange"] as? [String: Any])?["resumeToken"] as? String ?? token
    }
    #expect(!token.isEmpty)
    _ = try server.call("DELETE", "/open/1/items/b", headers: [("Authorization", "Bearer owner")])
    try Self.seed(server, "open/1/items/d")
    let second = try Session(server, "Listen", [Self.addTarget(2, "/open/1", resuming: (token, 3))])
    let lines = try second.snapshot()
    #expect(lines.first == "ADD 2" && lines.suffix(2) == ["CURRENT 2", "SNAPSHOT"])
    #expect(Set(lines.dropFirst().dropLast(2)) == ["delete b -2", "change d 2"])
    // A limbo document: the client does not know whether it still matches.
    try second.send(
      #"{"database":"\#(Self.database)","addTarget":{"documents":{"documents":["\#(Self.database)/documents/open/1/items/b"]},"#
        + #""targetId":1},"labels":{"goog-listen-tags":"limbo-document"}}"#)
    #expect(try second.snapshot() == ["ADD 1", "delete b -1", "CURRENT 1", "SNAPSHOT"])
    try second.send(#"{"database":"\#(Self.database)","removeTarget":1}"#)
    #expect(try second.line() == "REMOVE 1")
  }

  @Test func lostBackChannelIsReplayed() throws {
    let server = try Self.server()
    let session = try Session(server, "Listen", [Self.addTarget(2, "/open/1")])
    #expect(try session.snapshot() == ["ADD 2", "CURRENT 2", "SNAPSHOT"])
    session.client.breakOff()
    try Self.seed(server, "open/1/items/a")
    try session.listenAgain("CI=0")
    #expect(try session.snapshot() == ["change a 2", "SNAPSHOT"])
    // The server sent this change, but the client did not receive it.
    try Self.seed(server, "open/1/items/b")
    _ = try session.client.next()
    try session.listenAgain("CI=0")
    #expect(try session.snapshot() == ["change b 2", "SNAPSHOT"])
  }

  @Test func handshakeTokenAuthenticatesTheChannel() throws {
    let server = try Self.server()
    let claims = Data(#"{"sub":"x","user_id":"x"}"#.utf8).base64EncodedString()
    let token = "eyJhbGciOiJub25lIn0.\(claims.replacing("=", with: ""))."
    let headers = "X-Goog-Api-Client:gl-js/ fire/12.9.0\r\nContent-Type:text/plain\r\nAuthorization:Bearer \(token)\r\n"
    let session = try Session(server, "Listen", [Self.addTarget(2, "/owned/x")], headers: headers)
    #expect(try session.snapshot() == ["ADD 2", "CURRENT 2", "SNAPSHOT"])
    let other = try Session(server, "Listen", [Self.addTarget(2, "/owned/x")])
    #expect(try other.line() == "ADD 2")
    #expect(try other.line() == "REMOVE 2 7")
    let bad = try Session(
      server, "Listen", [Self.addTarget(2, "/owned/x")], headers: "Authorization:Basic eDp5\r\n")
    #expect(try bad.line() == "error UNAUTHENTICATED")
  }

  /// A batch whose form is larger than any other request may be, and one above the limit.
  @Test func batchesAreLimitedInSize() throws {
    let server = try Self.server()
    let session = try Session(server, "Write", [#"{"database":"\#(Self.database)"}"#])
    let token = try #require(try session.next()["streamToken"] as? String)
    func batch(_ characters: Int) -> String {
      let text = String(repeating: "{", count: characters / 10)
      let writes = (0..<10).map {
        #"{"update":{"name":"\#(Self.database)/documents/open/1/items/d\#($0)","fields":{"t":{"stringValue":"\#(text)"}}}}"#
      }
      return #"{"streamToken":"\#(token)","writes":[\#(writes.joined(separator: ","))]}"#
    }
    try session.send(batch(6 << 20))
    #expect((try session.next()["writeResults"] as? [Any])?.count == 10)
    let filler = String(repeating: " ", count: 10 << 20)
    let again = try Session(server, "Write", [#"{"database":"\#(Self.database)"}"#])
    _ = try again.next()
    _ = try again.client.post("SID=\(again.client.id)&RID=2&AID=1", "count=1&ofs=1&req0___data__={\(filler)}")
    #expect(try again.line() == "error INVALID_ARGUMENT")
  }

  @Test(arguments: [
    ("Listen", "no JSON", "error INVALID_ARGUMENT"), ("Listen", "{}", "error INVALID_ARGUMENT"),
    ("Listen", #"{"database":"nonsense","removeTarget":2}"#, "error INVALID_ARGUMENT"),
    ("Write", #"{"database":"projects/p/databases/(default)","unknown":1}"#, "error INVALID_ARGUMENT"),
    ("Write", "[]", "error INVALID_ARGUMENT"),
  ])
  func malformedRequestEndsTheChannel(_ method: String, _ message: String, _ expected: String) throws {
    let session = try Session(try Self.server(), method, [message])
    #expect(try session.line() == expected)
    #expect(try session.client.back?.next() == nil)
  }
}
