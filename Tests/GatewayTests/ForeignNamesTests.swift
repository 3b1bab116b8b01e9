import Accounts
import DocumentModel
import DocumentStore
import Files
import Foundation
import HearthServer
import Testing
import TestSupport

@testable import FirestoreAPI

/// Names and tokens that the server gave one user, in the requests of another: IDs of channels and uploads, page
/// tokens, resume tokens and download tokens. They cannot be guessed, or they give no access.
@Suite struct ForeignNamesTests {
  private static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /users/{uid}/{rest=**} { allow read, write: if request.auth.uid == uid; }
        match /notes/{id} { allow read: if resource.data.owner == request.auth.uid || resource.data.open == true; }
      }
    }
    """

  private static func token(_ uid: String) -> String { "Bearer " + UnsignedToken.make(#"{"sub":"\#(uid)"}"#) }

  private static func server() throws -> TestServer {
    let server = try TestServer()
    let body: JSONNode = ["rules": ["files": [["name": "a", "content": .string(rules)]]]]
    let reply = try server.call(
      "PUT", "/emulator/v1/projects/p:securityRules", body.text, headers: [("Authorization", "Bearer owner")])
    #expect(reply.status == 200, "\(reply.text)")
    return server
  }

  private static func set(_ server: TestServer, _ path: String, _ fields: String) throws {
    let reply = try server.call(
      "PATCH", "/" + path, #"{"fields": {\#(fields)}}"#, headers: [("Authorization", "Bearer owner")])
    try #require(reply.status == 200, "\(reply.text)")
  }

  // MARK: - Random names

  /// The bits of names that are the only credential of a request.
  @Test func everyBitOfANameIsRandom() throws {
    let count = 2000
    let makers: [(name: String, bits: Int, make: () -> String)] = [
      ("channel", 128, { SessionID().text }),
      // The number of the node has sixteen bits.
      ("channel of a node", 112, { SessionID(node: 7).text }),
      ("upload", 128, { UploadRecord(name: ObjectName(bucket: "b", name: "n"), attributes: ObjectAttributes()).id }),
      // A UUID of version 4 has six fixed bits.
      ("download token", 122, { DownloadToken.make().replacing("-", with: "") }),
    ]
    for (name, bits, make) in makers {
      var ones = [Int](repeating: 0, count: 128)
      var made: Set<String> = []
      for _ in 0..<count {
        let text = make()
        #expect(text.utf8.count == 32 && made.insert(text).inserted, "\(name)")
        for (digit, character) in text.enumerated() {
          let value = character.hexDigitValue ?? 0
          for bit in 0..<4 { ones[digit * 4 + bit] += value >> bit & 1 }
        }
      }
      // Six standard deviations from half of them, so that chance fails this test never.
      let random = ones.count { abs($0 - count / 2) < 135 }
      #expect(random == bits, "\(name): \(ones)")
    }
  }

  @Test func sessionIDsHaveOneForm() {
    let id = SessionID()
    #expect(SessionID(id.text) == id)
    for text in [
      "", id.text.uppercased() + "A", " " + id.text, id.text + "0", String(id.text.dropLast()), "0x\(id.text)",
    ] {
      #expect(SessionID(text) == nil, "\(text)")
    }
    #expect(SessionID("ABCDEF00000000000000000000000000") == nil)
  }

  // MARK: - Channels

  /// Requests with the ID of no open channel, all refused in the same way.
  @Test func unknownChannelsAreRefusedAlike() throws {
    let server = try Self.server()
    let other = try Self.server()
    let listen =
      #"{"database":"projects/p/databases/(default)","addTarget":{"targetId":2,"#
      + #""documents":{"documents":["\#(TestServer.name)/users/ann"]}}}"#
    func open(_ server: TestServer) throws -> ChannelClient {
      let channel = ChannelClient(server.port)
      let reply = try channel.open(
        ChannelClient.form([listen], from: 0, headers: "Authorization:\(Self.token("ann"))\r\n"))
      try #require(reply.status == 200 && channel.id.utf8.count == 32, "\(reply.text)")
      return channel
    }
    let channel = try open(server)
    let ended = try open(server)
    let foreign = try open(other)
    _ = try ended.post("SID=\(ended.id)&RID=3&TYPE=terminate", "count=0")
    let id = channel.id
    let (first, last) = (id.first == "0" ? "1" : "0", id.last == "0" ? "1" : "0")
    let unknown = [
      "0123456789abcdef0123456789abcdef", String(repeating: "0", count: 32), ended.id, foreign.id,
      id.dropLast() + last, first + id.dropFirst(), id.uppercased() == id ? id + "0" : id.uppercased(),
      id + "%00", id + "%20", "", "*", String(id.dropLast()),
    ]
    for text in unknown {
      for method in ["Listen", "Write"] {
        let path = "\(ChannelClient.root)\(method)/channel?VER=8&SID=\(text)"
        let replies = [
          try server.request("GET", path + "&RID=rpc&AID=0&CI=1&TYPE=xmlhttp"),
          try server.request("POST", path + "&RID=2&AID=0", "count=0", headers: [ChannelClient.form[0]]),
        ]
        for reply in replies {
          #expect(reply.status == 400 && reply.text == "Error: Unknown SID.\n", "\(text): \(reply.text)")
        }
      }
    }
    // The ID of a Listen stream is unknown to Write.
    let crossed = try server.request(
      "POST", "\(ChannelClient.root)Write/channel?VER=8&SID=\(id)&RID=2&AID=0", "count=0",
      headers: [ChannelClient.form[0]])
    #expect(crossed.status == 400 && crossed.text == "Error: Unknown SID.\n")
    // A request to end an unknown channel ends none, and does not tell whether it exists.
    for text in [foreign.id, id + "0"] {
      let reply = try server.request("GET", "\(ChannelClient.root)Listen/channel?VER=8&SID=\(text)&TYPE=terminate")
      #expect(reply.status == 200 && reply.body.isEmpty)
    }
    try channel.listen("AID=0&CI=0")
    #expect(try channel.next().contains("ADD"))
  }

  // MARK: - Tokens

  /// A resume token is a position, and grants nothing: another user's listener with it gets what this user may read.
  @Test func resumeTokensGrantNothing() throws {
    let server = try Self.server()
    try Self.set(server, "users/ann", #""n": {"stringValue": "secret"}"#)
    try Self.set(server, "notes/a", #""owner": {"stringValue": "ann"}, "n": {"stringValue": "secret"}"#)
    try Self.set(server, "notes/b", #""owner": {"stringValue": "ann"}, "open": {"booleanValue": true}"#)
    func listen(_ uid: String, _ target: [UInt8]) throws -> (events: [[UInt8]], token: [UInt8]) {
      let grpc = try GRPCConnection(port: server.port)
      let stream = grpc.open("Listen", headers: [("authorization", Self.token(uid))])
      grpc.send(target, on: stream)
      var events: [[UInt8]] = []
      while let message = try grpc.next(on: stream) {
        events.append(message)
        guard let change = Message.fields(2, of: message).first else { continue }
        let type = Message.number(1, of: change) ?? 0
        if type == 2 || type == 0 { return (events, Message.fields(4, of: change).last ?? []) }
      }
      return (events, [])
    }
    let own = try listen("ann", GRPCListenTests.documents(2, "users/ann"))
    #expect(own.token.count == 21)
    try Self.set(server, "users/ann", #""n": {"stringValue": "secret too"}"#)
    // The note becomes private after the token.
    let open = try listen("ben", GRPCListenTests.documents(2, "notes/b"))
    try Self.set(server, "notes/b", #""owner": {"stringValue": "ann"}, "n": {"stringValue": "secret"}"#)
    for token in [own.token, open.token] {
      for target in [
        GRPCListenTests.documents(2, token: token, "users/ann"), GRPCListenTests.documents(2, token: token, "notes/b"),
        GRPCListenTests.documents(2, token: token, "notes/a"), GRPCListenTests.query(2, "notes", token: token),
        GRPCListenTests.query(2, "users", token: token),
      ] {
        let seen = try listen("ben", target)
        let text = seen.events.map { String(decoding: $0, as: UTF8.self) }.joined()
        #expect(!text.contains("secret"), "\(text)")
        #expect(seen.events.contains { Message.fields(2, of: $0).contains { Message.number(1, of: $0) == 2 } })
      }
    }
    // The owner resumes with it.
    let resumed = try listen("ann", GRPCListenTests.documents(2, token: own.token, "users/ann"))
    #expect(resumed.events.contains { String(decoding: $0, as: UTF8.self).contains("secret too") })
  }

  /// The page token of one user's listing does not authorize another user's.
  @Test func pageTokensGrantNothing() throws {
    let server = try Self.server()
    for name in ["a", "b", "c"] { try Self.set(server, "users/ann/items/\(name)", #""n": {"stringValue": "secret"}"#) }
    func list(_ uid: String?, _ path: String, _ token: String?) throws -> TestServer.Response {
      try server.call(
        "GET", path + "?pageSize=1" + (token.map { "&pageToken=\($0.replacing("+", with: "%2B"))" } ?? ""),
        headers: uid.map { [("Authorization", Self.token($0))] } ?? [])
    }
    let first = try list("ann", "/users/ann/items", nil)
    let token = try #require(first.json("nextPageToken") as String?, "\(first.text)")
    #expect(try list("ann", "/users/ann/items", token).text.contains("items/b"))
    for uid in ["ben", nil] {
      let reply = try list(uid, "/users/ann/items", token)
      #expect(reply.status == 403 && !reply.text.contains("secret"), "\(reply.text)")
    }
    let own = try list("ben", "/users/ben/items", token)
    #expect(own.status == 400 && !own.text.contains("secret"), "\(own.text)")
  }

  /// A download token must be right to its last character, and belongs to one object.
  @Test func downloadTokensMatchExactly() {
    let tokens = ["5f3c1a2e-7b44-4d0e-9a61-0c2f6f6f9d11", "k"]
    for token in tokens { #expect(DownloadToken.isAmong(tokens, token)) }
    for text in [
      "", "5", "K", "kk", tokens[0].uppercased(), tokens[0] + "0", String(tokens[0].dropLast()),
      "4" + tokens[0].dropFirst(),
      tokens[0].dropLast() + "0", tokens.joined(separator: ","), "k\u{301}", "\u{212A}",
    ] {
      #expect(!DownloadToken.isAmong(tokens, text), "\(text)")
    }
    #expect(!DownloadToken.isAmong([], ""))
  }
}
