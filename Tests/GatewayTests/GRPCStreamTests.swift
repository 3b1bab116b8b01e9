import Foundation
import HearthServer
import Testing
import TestSupport
import WireFormat

@testable import FirestoreAPI
@testable import GatewayCore

/// Bidirectional calls over a connection: Write, and the behavior that Listen shares with it.
@Suite struct GRPCStreamTests {
  static let database = "projects/p/databases/(default)"
  static let root = database + "/documents"

  /// A framed WriteRequest.
  static func request(_ writes: [[UInt8]] = [], database: String? = database, token: String = "") -> [UInt8] {
    GRPCConnection.framed(
      Message { out in
        if let database { ProtobufWriter.string(1, database, to: &out) }
        for write in writes { ProtobufWriter.bytes(3, write, to: &out) }
        if !token.isEmpty { ProtobufWriter.string(4, token, to: &out) }
      }.bytes)
  }

  /// A write that sets `n`.
  static func set(_ path: String, _ number: Int64) -> [UInt8] {
    Message { out in
      ProtobufWriter.message(1, to: &out) { document in
        ProtobufWriter.string(1, root + "/" + path, to: &document)
        ProtobufWriter.message(2, to: &document) { entry in
          ProtobufWriter.string(1, "n", to: &entry)
          ProtobufWriter.message(2, to: &entry) { ProtobufWriter.int64(2, number, to: &$0) }
        }
      }
    }.bytes
  }

  /// A write that only increments `n`.
  static func increment(_ path: String, by number: Int64 = 1) -> [UInt8] {
    Message { out in
      ProtobufWriter.message(1, to: &out) { ProtobufWriter.string(1, root + "/" + path, to: &$0) }
      ProtobufWriter.message(3, to: &out) { _ in }
      ProtobufWriter.message(7, to: &out) { transform in
        ProtobufWriter.string(1, "n", to: &transform)
        ProtobufWriter.message(3, to: &transform) { ProtobufWriter.int64(2, number, to: &$0) }
      }
    }.bytes
  }

  /// A write that fails if the document does not exist.
  static func update(_ path: String) -> [UInt8] {
    set(path, 0)
      + Message { out in ProtobufWriter.message(4, to: &out) { ProtobufWriter.bool(1, true, to: &$0) } }.bytes
  }

  static func number(_ server: TestServer, _ path: String) throws -> String? {
    try server.call("GET", "/" + path).json("fields", "n", "integerValue")
  }

  static func token(_ message: [UInt8]?) throws -> String {
    let message = try #require(message)
    return try #require(Message.texts(2, of: message).last)
  }

  @Test func responsesFollowTheOrderOfBatches() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Write")
    grpc.send(Self.request(), on: stream)
    let handshake = try #require(try grpc.next(on: stream))
    #expect(!Message.texts(1, of: handshake)[0].isEmpty && !Message.texts(2, of: handshake)[0].isEmpty)
    #expect(Message.fields(3, of: handshake).isEmpty && Message.fields(4, of: handshake).isEmpty)
    // Many requests are in flight, all with the last known token. Later requests need not name the database.
    let token = try Self.token(handshake)
    for round in 1...10 {
      grpc.send(
        Self.request([Self.set("c/x\(round)", 5), Self.increment("c/sum")], database: nil, token: token), on: stream)
    }
    var times: [[UInt8]] = []
    var tokens: Set = [token]
    for round: Int64 in 1...10 {
      let answer = try #require(try grpc.next(on: stream))
      let results = Message.fields(3, of: answer)
      #expect(results.count == 2 && Message.fields(1, of: answer).isEmpty)
      let time = try #require(Message.fields(4, of: answer).last)
      // The update time is the commit time, and the transform's result is the new value of the field.
      #expect(results.map { Message.fields(1, of: $0) } == [[time], [time]])
      #expect(Message.number(2, of: Message.fields(2, of: results[1])[0]) == round)
      #expect(tokens.insert(try Self.token(answer)).inserted)
      times.append(time)
    }
    #expect(Set(times).count == 10)
    // A request without writes gets a response with a token. Closing the client's side ends the call.
    grpc.send(Self.request(token: token), on: stream, end: true)
    let goodbye = try #require(try grpc.next(on: stream))
    #expect(Message.fields(3, of: goodbye).isEmpty)
    let end = try grpc.end(of: stream)
    #expect(end.status == 0 && end.resetCode == nil && end.fields["content-type"] == "application/grpc")
    #expect(try Self.number(server, "c/sum") == "10")
  }

  /// A batch that changes nothing reports the time of the last change.
  @Test func batchWithoutAChangeReportsTheLastChange() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Write")
    let batch = Self.request([Self.set("c/x", 1)])
    grpc.send(Self.request() + batch + batch, on: stream, end: true)
    let answers = try grpc.end(of: stream).messages
    try #require(answers.count == 3)
    let times = answers.dropFirst().map { Message.fields(1, of: Message.fields(3, of: $0)[0]) }
    #expect(times[0] == times[1])
  }

  @Test func nothingAfterAFailureIsApplied() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    for _ in 0..<20 {
      let stream = grpc.open("Write")
      _ = try server.call("DELETE", "/c/after")
      grpc.send(
        Self.request() + Self.request([Self.set("c/before", 1)])
          + Self.request([Self.update("c/none"), Self.set("c/no", 1)])
          + Self.request([Self.set("c/after", 1)]) + Self.request([Self.set("c/after", 2)]), on: stream)
      let end = try grpc.end(of: stream)
      #expect(end.status == 5 && end.statusMessage == "No document to update: " + Self.root + "/c/none")
      #expect(end.messages.count == 2)
      #expect(try Self.number(server, "c/before") == "1")
      for path in ["c/after", "c/no"] { #expect(try server.call("GET", "/" + path).status == 404) }
    }
  }

  /// Frames may split messages anywhere and may contain several.
  @Test func messagesMaySpanFrames() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let seed = TestSeeds.of("FUZZ_SEED", otherwise: [1])[0]
    var random = SplitMix(seed: seed)
    for round in 0..<6 {
      let path = "pieces/d\(round)"
      var body = Self.request()
      for _ in 0..<30 { body += Self.request([Self.increment(path)]) }
      let stream = grpc.open("Write")
      var rest = body[...]
      while !rest.isEmpty {
        let piece = round == 0 ? 1 : Int.random(in: 1...200, using: &random)
        grpc.send(Array(rest.prefix(piece)), on: stream, end: rest.count <= piece)
        rest = rest.dropFirst(piece)
      }
      let end = try grpc.end(of: stream)
      #expect(end.status == 0 && end.messages.count == 31, "seed \(seed)")
      #expect(try Self.number(server, path) == "30", "seed \(seed)")
    }
  }

  /// Each mutated stream of requests ends with a status, and the server continues to serve.
  @Test func mutatedStreamsEndWithAStatus() throws {
    let seed = TestSeeds.of("FUZZ_SEED", otherwise: [1])[0]
    var random = SplitMix(seed: seed)
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let writes =
      Self.request() + Self.request([Self.set("c/x", 1), Self.increment("c/y")]) + Self.request([Self.update("c/x")])
    let listen =
      GRPCListenTests.query(2, "c") + GRPCListenTests.documents(4, "c/x", "c/none") + GRPCListenTests.remove(2)
    for round in 0..<300 {
      var body = round.isMultiple(of: 2) ? writes : listen
      for _ in 0..<Int.random(in: 1...3, using: &random) {
        let place = Int.random(in: 0..<body.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: body[place] = UInt8.random(in: 0...255, using: &random)
        case 1: body.removeSubrange(place..<min(body.count, place + 3))
        default: body.insert(UInt8.random(in: 0...255, using: &random), at: place)
        }
      }
      let stream = grpc.open(round.isMultiple(of: 2) ? "Write" : "Listen")
      grpc.send(body, on: stream, end: true, piece: Int.random(in: 1...300, using: &random))
      let end = try grpc.end(of: stream)
      #expect(end.status != nil && end.resetCode ?? 0 == 0, "seed \(seed), round \(round): \(end)")
    }
  }

  @Test func messagesMayBeCompressed() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Write", headers: [("grpc-encoding", "gzip")])
    let batch = Message { out in
      for number in 0..<200 { ProtobufWriter.bytes(3, Self.set("z/d\(number)", 1), to: &out) }
    }
    grpc.send(
      Self.request() + GRPCConnection.framed(GRPCTests.gzip(batch.bytes), isCompressed: true), on: stream, end: true)
    let end = try grpc.end(of: stream)
    #expect(end.status == 0 && end.fields["grpc-encoding"] == "gzip")
    // Small messages are sent as they are, the large one is compressed.
    #expect(end.frames.map(\.isCompressed) == [false, true])
    #expect(try Self.number(server, "z/d199") == "1")
  }

  struct Refusal: Sendable, CustomStringConvertible {
    let description: String
    var method = "Write"
    var headers: [(String, String)] = []
    let body: [UInt8]
    let status: Int
    var message = ""
  }

  static let refusals: [Refusal] = [
    Refusal(
      description: "no database", body: request(database: nil), status: 3,
      message: #"Invalid project or database id ""."#),
    Refusal(
      description: "a name that is not a database", body: request(database: "x"), status: 3,
      message: #"Document parent name "x" lacks "projects" at index 0."#),
    Refusal(
      description: "another database", body: request() + request(database: "projects/q/databases/(default)"), status: 3,
      message: "The request was for database 'projects/p/databases/(default)' but was attempting to access database "
        + "'projects/q/databases/(default)'"),
    Refusal(
      description: "writes in the first request", body: request([set("c/x", 1)]), status: 3,
      message: "The first request of a Write stream opens it, and must have no writes."),
    Refusal(
      description: "a write of another database",
      body: request()
        + request([Message { ProtobufWriter.string(2, "projects/q/databases/d/documents/a/b", to: &$0) }.bytes]),
      status: 3),
    Refusal(
      description: "an empty write", body: request() + request([[]]), status: 3, message: "empty write operation"),
    Refusal(description: "no protobuf", body: GRPCConnection.framed([0xFF]), status: 3),
    Refusal(
      description: "an unknown flag", body: [2, 0, 0, 0, 0], status: 13,
      message: "A message of the request has an unknown flag."),
    Refusal(
      description: "no gzip", headers: [("grpc-encoding", "gzip")],
      body: GRPCConnection.framed([1, 2], isCompressed: true),
      status: 13, message: "The request's message is not valid gzip."),
    Refusal(
      description: "gzip without a grpc-encoding", body: GRPCConnection.framed(GRPCTests.gzip([]), isCompressed: true),
      status: 13, message: "The request has a compressed message but no grpc-encoding."),
    Refusal(
      description: "a message said to be too large", body: [0, 0x7F, 0, 0, 0], status: 8,
      message: "A message of the request is larger than 17825792 bytes."),
    Refusal(
      description: "another compression", headers: [("grpc-encoding", "br")], body: request(), status: 12,
      message: "The compression br is not supported. Use gzip."),
    Refusal(description: "a malformed deadline", headers: [("grpc-timeout", "x")], body: request(), status: 3),
    Refusal(description: "a deadline that passed", headers: [("grpc-timeout", "0m")], body: request(), status: 4),
    Refusal(description: "a malformed token", headers: [("authorization", "Bearer x")], body: request(), status: 3),
    Refusal(
      description: "neither added nor removed", method: "Listen", body: request(), status: 3,
      message: "The request neither adds nor removes a target."),
    Refusal(
      description: "a target without a selector", method: "Listen",
      body: GRPCConnection.framed(
        Message { out in
          ProtobufWriter.string(1, database, to: &out)
          ProtobufWriter.message(2, to: &out) { _ in }
        }.bytes), status: 3, message: "A target must have a structured query, or name documents."),
  ]

  /// Each ends the call with a status while the client's side is open, and no other call is affected.
  @Test(arguments: refusals) func invalidRequestsEndTheCall(_ test: Refusal) throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open(test.method, headers: test.headers)
    grpc.send(test.body, on: stream)
    let end = try grpc.end(of: stream)
    #expect(end.status == test.status, "\(end)")
    if !test.message.isEmpty { #expect(end.statusMessage == test.message) }
    let next = grpc.open("Write")
    grpc.send(Self.request(), on: next, end: true)
    #expect(try grpc.end(of: next).status == 0)
  }

  @Test func truncatedMessageIsAnError() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Write")
    grpc.send(Self.request() + Self.request([Self.set("c/x", 1)]).dropLast(), on: stream, end: true)
    let end = try grpc.end(of: stream)
    #expect(end.status == 13 && end.statusMessage == "The last message of the request is cut short.")
    #expect(try server.call("GET", "/c/x").status == 404)
    // A stream without any message is valid.
    let empty = grpc.open("Write")
    grpc.send([], on: empty, end: true)
    #expect(try grpc.end(of: empty).status == 0)
  }

  @Test(arguments: [
    ("google-cloud-resource-prefix", "projects/p/databases/(default)"),
    ("x-goog-request-params", "a=b&database=projects%2Fp%2Fdatabases%2F%28default%29"),
  ])
  func headersMayNameTheDatabase(name: String, value: String) throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Write", headers: [(name, value)])
    grpc.send(
      Self.request(database: nil) + Self.request([Self.set("c/x", 1)], database: nil), on: stream, end: true)
    #expect(try grpc.end(of: stream).status == 0)
    #expect(try Self.number(server, "c/x") == "1")
  }

  @Test func deadlinesEndStreams() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    // On a busy machine, a short deadline can pass before the first response.
    var responses = 0
    for milliseconds in [50, 500, 5000, 20_000] where responses == 0 {
      let stream = grpc.open("Write", headers: [("grpc-timeout", "\(milliseconds)m")])
      grpc.send(Self.request(), on: stream)
      let end = try grpc.end(of: stream)
      #expect(end.status == 4 && end.statusMessage == "The deadline of \(milliseconds) ms passed.")
      responses = end.messages.count
    }
    #expect(responses == 1)
  }

  @Test func cancelledStreamsAffectNoOtherStream() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let other = grpc.open("Write")
    grpc.send(Self.request(), on: other)
    for round in 0..<50 {
      let stream = grpc.open(round.isMultiple(of: 2) ? "Write" : "Listen")
      if round.isMultiple(of: 2) {
        grpc.send(Self.request() + Self.request([Self.increment("c/x")]), on: stream)
        if round.isMultiple(of: 4) { _ = try grpc.next(on: stream) }
      }
      grpc.cancel(stream)
    }
    grpc.send(Self.request([Self.set("c/y", 1)]), on: other, end: true)
    let end = try grpc.end(of: other)
    #expect(end.status == 0 && end.messages.count == 2)
  }

  @Test func stoppingTheServerEndsStreams() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let streams = [grpc.open("Write"), grpc.open("Listen"), grpc.open("Write")]
    grpc.send(Self.request(), on: streams[0])
    _ = try grpc.next(on: streams[0])
    server.server.stop()
    for stream in streams {
      let end = try grpc.end(of: stream)
      #expect(end.status == 14 && end.statusMessage == "The server is shutting down.")
    }
  }

  /// If a client reads no responses, the server applies at most one batch more than the client has read, and stops
  /// reading its requests. It resumes when the client reads.
  @Test func clientThatReadsNothingIsHeldBack() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port, windowBytes: 0)
    // The server uses the window once its settings are acknowledged. A response of header fields alone causes that.
    #expect(try grpc.call("None", []).status == 12)
    let stream = grpc.open("Write")
    // More batches than a stream may queue, and more bytes than the server reads ahead.
    let large = Message { out in
      ProtobufWriter.message(1, to: &out) { document in
        ProtobufWriter.string(1, Self.root + "/c/large", to: &document)
        ProtobufWriter.message(2, to: &document) { entry in
          ProtobufWriter.string(1, "s", to: &entry)
          ProtobufWriter.message(2, to: &entry) {
            ProtobufWriter.string(17, String(repeating: "x", count: 4000), to: &$0)
          }
        }
      }
    }.bytes
    grpc.send(Self.request(), on: stream)
    for _ in 0..<60 { grpc.send(Self.request([Self.increment("c/n"), large]), on: stream) }
    // Another connection sees what was applied: nothing, because the client has not read the first response.
    #expect(try server.call("GET", "/c/n").status == 404)
    grpc.widen(stream, by: 60)
    _ = try grpc.next(on: stream)
    grpc.widen(stream, by: 1 << 20)
    for round: Int64 in 1...60 {
      let answer = try #require(try grpc.next(on: stream))
      let results = Message.fields(3, of: answer)
      #expect(Message.number(2, of: Message.fields(2, of: results[0])[0]) == round)
    }
    grpc.send([], on: stream, end: true)
    #expect(try grpc.end(of: stream).status == 0)
    #expect(try Self.number(server, "c/n") == "60")
  }

  @Test func rulesAuthorizeEachBatch() throws {
    let (server, directory) = try RulesTests.server()
    defer { withExtendedLifetime(directory) {} }
    func note(_ owner: String) -> [UInt8] {
      Message { out in
        ProtobufWriter.message(1, to: &out) { document in
          ProtobufWriter.string(1, Self.root + "/notes/\(owner)", to: &document)
          ProtobufWriter.message(2, to: &document) { entry in
            ProtobufWriter.string(1, "owner", to: &entry)
            ProtobufWriter.message(2, to: &entry) { ProtobufWriter.string(17, owner, to: &$0) }
          }
        }
      }.bytes
    }
    let ann = try GRPCConnection(port: server.port)
    let stream = ann.open("Write", headers: RulesTests.callers[0].headers)
    ann.send(Self.request() + Self.request([note("ann")]), on: stream)
    for _ in 0..<2 { #expect(try ann.next(on: stream) != nil) }
    ann.send(Self.request([note("ben")]) + Self.request([note("ann")]), on: stream)
    let end = try ann.end(of: stream)
    #expect(end.status == 7 && end.messages.count == 2)
  }

  @Test func invalidTargetsEndAlone() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let stream = grpc.open("Listen")
    func add(_ id: Int64, _ fields: (inout [UInt8]) -> Void) -> [UInt8] {
      GRPCConnection.framed(
        Message { out in
          ProtobufWriter.string(1, Self.database, to: &out)
          ProtobufWriter.message(2, to: &out) { target in
            fields(&target)
            ProtobufWriter.int64(5, id, to: &target)
          }
        }.bytes)
    }
    grpc.send(
      add(3) { ProtobufWriter.message(13, to: &$0) { _ in } }
        + add(5) { ProtobufWriter.message(3, to: &$0) { ProtobufWriter.string(2, "x", to: &$0) } }, on: stream,
      end: true)
    let end = try grpc.end(of: stream)
    #expect(end.status == 0)
    let changes = end.messages.flatMap { Message.fields(2, of: $0) }
    // REMOVE, the target, and the cause.
    #expect(changes.map { Message.number(1, of: $0) } == [2, 2])
    #expect(changes.map { Message.fields(2, of: $0) } == [[[3]], [[5]]])
    #expect(changes.map { Message.number(1, of: Message.fields(3, of: $0)[0]) } == [3, 3])
    #expect(
      Message.texts(2, of: Message.fields(3, of: changes[1])[0]) == [#"Document name "x" lacks "projects" at index 0."#]
    )
  }

  @Test func healthCanBeWatched() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    func watch(_ service: String) -> UInt32 {
      let stream = grpc.open(path: "/grpc.health.v1.Health/Watch")
      let request = Message { out in if !service.isEmpty { ProtobufWriter.string(1, service, to: &out) } }
      grpc.send(GRPCConnection.framed(request.bytes), on: stream, end: true)
      return stream
    }
    let streams = [watch(""), watch("google.firestore.v1.Firestore"), watch("other")]
    for (stream, status) in zip(streams, [1, 1, 3] as [Int64]) {
      let message = try #require(try grpc.next(on: stream))
      #expect(Message.number(1, of: message) == status)
    }
    server.server.stop()
    for stream in streams {
      let end = try grpc.end(of: stream)
      #expect(end.status == 14 && end.messages.count == 2 && Message.number(1, of: end.messages[1]) == 2)
    }
  }

  @Test func frameReaderChecksFrames() throws {
    var reader = GRPCFrameReader(messageBytesMax: 10)
    var messages: [String] = []
    let body = ["a", "", "0123456789", "b"].flatMap { GRPCConnection.framed(Array($0.utf8)) }
    for byte in body {
      [byte].withUnsafeBytes { reader.append($0) }
      while try reader.next({ message, isCompressed in
        #expect(!isCompressed)
        messages.append(String(decoding: message, as: UTF8.self))
      }) {}
    }
    #expect(messages == ["a", "", "0123456789", "b"] && reader.unreadBytes == 0)
    GRPCConnection.framed(Array("01234567890".utf8)).withUnsafeBytes { reader.append($0) }
    #expect(throws: (any Error).self) { try reader.next { _, _ in } }
  }
}
