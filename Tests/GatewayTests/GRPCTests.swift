import Foundation
import HearthServer
import Testing
import TestSupport
import WireFormat

@testable import FirestoreAPI
@testable import GatewayCore

/// The gRPC API over a connection: calls, statuses, compression and limits.
@Suite struct GRPCTests {
  private static let database = "projects/p/databases/(default)"
  private static let root = database + "/documents"

  /// A Document message.
  private static func document(_ name: String? = nil, _ fields: (String, Int64)...) -> [UInt8] {
    Message { out in
      if let name { ProtobufWriter.string(1, name, to: &out) }
      for (key, number) in fields {
        ProtobufWriter.message(2, to: &out) { entry in
          ProtobufWriter.string(1, key, to: &entry)
          ProtobufWriter.message(2, to: &entry) { ProtobufWriter.int64(2, number, to: &$0) }
        }
      }
    }.bytes
  }

  private static func request(_ texts: [Int: String], _ messages: [(Int, [UInt8])] = []) -> [UInt8] {
    Message { out in
      for (number, text) in texts.sorted(by: { $0.key < $1.key }) { ProtobufWriter.string(number, text, to: &out) }
      for (number, message) in messages { ProtobufWriter.bytes(number, message, to: &out) }
    }.bytes
  }

  private static func commit(_ writes: [[UInt8]]) -> [UInt8] { request([1: database], writes.map { (2, $0) }) }

  private static func update(_ document: [UInt8]) -> [UInt8] { request([:], [(1, document)]) }

  private static func runQuery(_ collection: String, direction: Int64? = nil) -> [UInt8] {
    let query = Message { out in
      ProtobufWriter.bytes(2, request([2: collection]), to: &out)
      if let direction {
        ProtobufWriter.message(4, to: &out) { order in
          ProtobufWriter.bytes(1, request([2: "n"]), to: &order)
          ProtobufWriter.int64(2, direction, to: &order)
        }
      }
    }
    return request([1: root], [(2, query.bytes)])
  }

  @Test func everyDocumentCallWorks() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let created = try grpc.call(
      "CreateDocument", Self.request([1: Self.root, 2: "c", 3: "x"], [(4, Self.document(nil, ("a", 1), ("b", 2)))]))
    #expect(created.status == 0 && created.fields[":status"] == "200")
    #expect(created.fields["content-type"] == "application/grpc")
    #expect(Message.texts(1, of: created.messages[0]) == [Self.root + "/c/x"])
    #expect(Message.fields(2, of: created.messages[0]).count == 2)
    // REST returns the same document.
    #expect(try server.call("GET", "/c/x").json("fields", "b", "integerValue") == "2")
    let mask = Message { ProtobufWriter.string(1, "b", to: &$0) }.bytes
    let masked = try grpc.call("GetDocument", Self.request([1: Self.root + "/c/x"], [(2, mask)]))
    #expect(Message.fields(2, of: masked.messages[0]).count == 1)
    let updated = try grpc.call(
      "UpdateDocument", Self.request([:], [(1, Self.document(Self.root + "/c/x", ("b", 3))), (2, mask)]))
    #expect(updated.status == 0 && Message.fields(2, of: updated.messages[0]).count == 2)
    let listed = try grpc.call("ListDocuments", Self.request([1: Self.root, 2: "c"]))
    #expect(Message.fields(1, of: listed.messages[0]) == updated.messages)
    let ids = try grpc.call("ListCollectionIds", Self.request([1: Self.root]))
    #expect(Message.texts(1, of: ids.messages[0]) == ["c"])
    let batch = try grpc.call("BatchGetDocuments", Self.request([1: Self.database, 2: Self.root + "/c/x"]))
    #expect(Message.fields(1, of: batch.messages[0]) == updated.messages)
    let missing = try grpc.call("BatchGetDocuments", Self.request([1: Self.database, 2: Self.root + "/c/none"]))
    #expect(Message.texts(2, of: missing.messages[0]) == [Self.root + "/c/none"])
    #expect(try grpc.call("DeleteDocument", Self.request([1: Self.root + "/c/x"])).messages == [[]])
    #expect(try grpc.call("GetDocument", Self.request([1: Self.root + "/c/x"])).status == 5)
  }

  @Test func listWithoutCollectionCoversAllCollections() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let names = ["a/1", "a/1/s/x", "a/1/s/y/t/z", "a/2", "a/9/s/q", "a!/1", "b/1", "b/none/u/1", "c/1/s/1"]
    _ = try grpc.call("Commit", Self.commit(names.map { Self.update(Self.document(Self.root + "/" + $0, ("n", 1))) }))
    /// Reads all pages. Returns the names below the documents root.
    func list(_ parent: String, pageSize: Int64, transaction: [UInt8] = []) throws -> [[String]] {
      var pages: [[String]] = []
      var token = ""
      repeat {
        var request = Self.request([1: Self.root + parent, 4: token], transaction.isEmpty ? [] : [(8, transaction)])
        ProtobufWriter.int64(3, pageSize, to: &request)
        let reply = try grpc.call("ListDocuments", request)
        #expect(reply.status == 0, "\(reply.statusMessage)")
        let page = try #require(reply.messages.first)
        let found = Message.fields(1, of: page).flatMap { Message.texts(1, of: $0) }
        pages.append(found.map { String($0.dropFirst(Self.root.count + 1)) })
        token = Message.texts(2, of: page).last ?? ""
      } while !token.isEmpty && pages.count < 10
      return pages
    }
    // In name order: collection IDs first, compared by their bytes.
    let top = ["a/1", "a/2", "a!/1", "b/1"]
    #expect(try list("", pageSize: 0) == [top])
    #expect(try list("", pageSize: 3) == [Array(top[..<3]), Array(top[3...])])
    #expect(try list("", pageSize: 2) == [Array(top[..<2]), Array(top[2...])])
    #expect(try list("/a/1", pageSize: 0) == [["a/1/s/x"]])
    #expect(try list("/a/9", pageSize: 0) == [["a/9/s/q"]])
    #expect(try list("/none/x", pageSize: 0) == [[]])
    // A page token is valid for one listing only.
    var request = Self.request([1: Self.root])
    ProtobufWriter.int64(3, 1, to: &request)
    let token = Message.texts(2, of: try grpc.call("ListDocuments", request).messages[0])[0]
    #expect(try grpc.call("ListDocuments", Self.request([1: Self.root, 2: "a", 4: token])).status == 3)
    // Documents that a transaction listed must not change before it commits.
    for (changed, status) in [("a/1/s/new", 0), ("b/new", 10)] {
      let begun = try grpc.call("BeginTransaction", Self.request([1: Self.database]))
      let id = Message.fields(1, of: begun.messages[0])[0]
      #expect(try list("", pageSize: 0, transaction: id).count == 1)
      _ = try server.call("PATCH", "/" + changed, "{}")
      let write = Self.update(Self.document(Self.root + "/other/x"))
      let committed = try grpc.call("Commit", Self.request([1: Self.database], [(2, write), (3, id)]))
      #expect(committed.status == status, "\(changed)")
    }
  }

  @Test func commitsAndTransactionsWork() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let writes = (0..<3).map { Self.update(Self.document(Self.root + "/c/d\($0)", ("n", Int64($0)))) }
    let committed = try grpc.call("Commit", Self.commit(writes))
    #expect(Message.fields(1, of: committed.messages[0]).count == 3)
    #expect(Message.fields(2, of: committed.messages[0]).count == 1)
    #expect(try grpc.call("Commit", Self.commit([])).messages == [[]])
    let begun = try grpc.call("BeginTransaction", Self.request([1: Self.database]))
    let id = Message.fields(1, of: begun.messages[0])[0]
    let read = try grpc.call("BatchGetDocuments", Self.request([1: Self.database, 2: Self.root + "/c/d0"], [(4, id)]))
    #expect(read.status == 0)
    _ = try server.call("PATCH", "/c/d0", #"{"fields":{"n":{"integerValue":"9"}}}"#)
    #expect(try grpc.call("Commit", Self.request([1: Self.database], [(2, writes[0]), (3, id)])).status == 10)
    let other = try grpc.call("BeginTransaction", Self.request([1: Self.database]))
    let otherID = Message.fields(1, of: other.messages[0])[0]
    #expect(try grpc.call("Rollback", Self.request([1: Self.database], [(2, otherID)])).status == 0)
    let exists = Message { out in
      ProtobufWriter.bytes(1, Self.document(Self.root + "/c/d1"), to: &out)
      ProtobufWriter.message(4, to: &out) { ProtobufWriter.bool(1, false, to: &$0) }
    }.bytes
    let batch = try grpc.call("BatchWrite", Self.commit([exists, writes[2]]))
    let statuses = Message.fields(2, of: batch.messages[0])
    #expect(statuses.count == 2 && Message.number(1, of: statuses[0]) == 6 && statuses[1].isEmpty)
    #expect(Message.texts(2, of: statuses[0]) == ["Document already exists: \(Self.root)/c/d1"])
  }

  @Test func longResponsesAreStreamed() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let writes = (0..<2000).map { Self.update(Self.document(Self.root + "/c/d\($0)", ("n", Int64($0)))) }
    #expect(try grpc.call("Commit", Self.commit(writes)).status == 0)
    let found = try grpc.call("RunQuery", Self.runQuery("c"))
    #expect(found.status == 0)
    let names = found.messages.flatMap { Message.fields(1, of: $0) }.flatMap { Message.texts(1, of: $0) }
    #expect(names.count == 2000 && Set(names).count == 2000)
    // The names in the order of REST.
    let json = try #require(
      try server.call("POST", ":runQuery", #"{"structuredQuery":{"from":[{"collectionId":"c"}]}}"#).json
        as? [[String: Any]])
    #expect(json.compactMap { ($0["document"] as? [String: Any])?["name"] as? String } == names)
    let empty = try grpc.call("RunQuery", Self.runQuery("none"))
    #expect(empty.messages.count == 1 && Message.fields(3, of: empty.messages[0]).count == 1)
  }

  @Test func compressionWorksInBothDirections() throws {
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let writes = (0..<100).map { Self.update(Self.document(Self.root + "/c/d\($0)", ("n", Int64($0)))) }
    #expect(try grpc.call("Commit", Self.commit(writes)).status == 0)
    let path = "/google.firestore.v1.Firestore/ListDocuments"
    let request = Self.request([1: Self.root, 2: "c"])
    let plain = try grpc.call(path: path, body: GRPCConnection.framed(request))
    #expect(plain.fields["grpc-encoding"] == nil && !plain.frames[0].isCompressed)
    // The server compresses its response for a client that compresses, even if the request's message is not
    // compressed.
    for message in [GRPCConnection.framed(request), GRPCConnection.framed(Self.gzip(request), isCompressed: true)] {
      let reply = try grpc.call(path: path, body: message, headers: [("grpc-encoding", "gzip")])
      #expect(reply.status == 0 && reply.fields["grpc-encoding"] == "gzip")
      #expect(reply.frames.count == 1 && reply.frames[0].isCompressed)
      #expect(reply.messages[0].prefix(2) == [0x1F, 0x8B] && reply.messages[0].count < plain.messages[0].count / 2)
    }
    let damaged = try grpc.call(
      path: path, body: GRPCConnection.framed([1, 2, 3], isCompressed: true), headers: [("grpc-encoding", "gzip")])
    #expect(damaged.status == 13)
  }

  /// Encodes gzip without a compressor, as one stored block.
  static func gzip(_ bytes: [UInt8]) -> [UInt8] {
    var crc: UInt32 = 0xFFFF_FFFF
    for byte in bytes {
      crc ^= UInt32(byte)
      for _ in 0..<8 { crc = crc & 1 == 0 ? crc >> 1 : crc >> 1 ^ 0xEDB8_8320 }
    }
    func little(_ value: UInt32, _ count: Int) -> [UInt8] {
      (0..<count).map { UInt8(truncatingIfNeeded: value >> (8 * UInt32($0))) }
    }
    let length = UInt32(bytes.count)
    return [0x1F, 0x8B, 8, 0, 0, 0, 0, 0, 0, 255, 1] + little(length, 2) + little(~length, 2) + bytes + little(~crc, 4)
      + little(length, 4)
  }

  struct Refusal: Sendable, CustomStringConvertible {
    let description: String
    var path = "/google.firestore.v1.Firestore/GetDocument"
    var body: [UInt8]
    var headers: [(String, String)] = []
    let status: Int
    var message = ""
  }

  private static let good = GRPCConnection.framed(request([1: root + "/c/none"]))
  static let refusals: [Refusal] = [
    Refusal(
      description: "missing document", body: good, status: 5,
      message: #"Document "projects/p/databases/(default)/documents/c/none" not found."#),
    Refusal(
      description: "percent-encoded message", body: GRPCConnection.framed(request([1: root + "/c/é%\n"])), status: 5,
      message: #"Document "projects/p/databases/(default)/documents/c/%C3%A9%25%0A" not found."#),
    Refusal(
      description: "bad name", body: GRPCConnection.framed(request([1: "x"])), status: 3,
      message: #"Document name "x" lacks "projects" at index 0."#),
    Refusal(
      description: "list without collection by field", path: "/google.firestore.v1.Firestore/ListDocuments",
      body: GRPCConnection.framed(request([1: root, 6: "n"])), status: 3,
      message: "kind is required for all orders except __key__ ascending"),
    Refusal(
      description: "list without collection backwards", path: "/google.firestore.v1.Firestore/ListDocuments",
      body: GRPCConnection.framed(request([1: root, 6: "__name__ desc"])), status: 3,
      message: "kind is required for all orders except __key__ ascending"),
    Refusal(
      description: "list of missing documents without collection", path: "/google.firestore.v1.Firestore/ListDocuments",
      body: GRPCConnection.framed(request([1: root]) + Message { ProtobufWriter.bool(12, true, to: &$0) }.bytes),
      status: 3, message: "collection id must be set when show_missing is true"),
    Refusal(
      description: "unknown direction", path: "/google.firestore.v1.Firestore/RunQuery",
      body: GRPCConnection.framed(runQuery("c", direction: 7)), status: 3, message: "Unrecognized ordering."),
    Refusal(
      description: "health of an unknown service", path: "/grpc.health.v1.Health/Check",
      body: GRPCConnection.framed(request([1: "a.B"])), status: 5, message: "unknown service"),
    Refusal(description: "malformed message", body: GRPCConnection.framed([0x0A, 9, 1]), status: 3),
    Refusal(
      description: "unknown method", path: "/google.firestore.v1.Firestore/Nothing", body: good, status: 12,
      message: "Unknown method /google.firestore.v1.Firestore/Nothing."),
    Refusal(description: "unknown service", path: "/a.b/C", body: good, status: 12),
    Refusal(
      description: "no pipeline", path: "/google.firestore.v1.Firestore/ExecutePipeline", body: good, status: 3),
    Refusal(description: "no message", body: [], status: 13),
    Refusal(description: "two messages", body: good + good, status: 13),
    Refusal(description: "cut short", body: Array(good.dropLast()), status: 13),
    Refusal(description: "unknown flag", body: [2] + good.dropFirst(), status: 13),
    Refusal(description: "compressed without encoding", body: [1] + good.dropFirst(), status: 13),
    Refusal(description: "unknown encoding", body: good, headers: [("grpc-encoding", "snappy")], status: 12),
    Refusal(description: "no time", body: good, headers: [("grpc-timeout", "0m")], status: 4),
    Refusal(description: "malformed time", body: good, headers: [("grpc-timeout", "soon")], status: 3),
    Refusal(description: "time enough", body: good, headers: [("grpc-timeout", "99999999H")], status: 5),
  ]

  @Test(arguments: refusals) func invalidRequestsAreRefused(_ test: Refusal) throws {
    let server = try TestServer()
    let reply = try GRPCConnection(port: server.port).call(path: test.path, body: test.body, headers: test.headers)
    #expect(reply.status == test.status, "\(reply.statusMessage)")
    #expect(reply.fields[":status"] == "200" && reply.frames.isEmpty)
    if !test.message.isEmpty { #expect(reply.statusMessage == test.message) }
  }

  @Test func otherContentTypesAreRefused() throws {
    let server = try TestServer()
    let reply = try GRPCConnection(port: server.port).call(
      path: "/google.firestore.v1.Firestore/GetDocument", body: Self.good, headers: [("content-type", "text/plain")])
    #expect(reply.fields[":status"] == "415" && reply.status == nil)
    for service in ["", "google.firestore.v1.Firestore"] {
      let health = try GRPCConnection(port: server.port).call(
        path: "/grpc.health.v1.Health/Check", body: GRPCConnection.framed(Self.request([1: service])))
      #expect(health.messages == [[8, 1]])
    }
  }

  @Test func productionDeniesUnauthenticatedCallers() throws {
    let server = try TestServer(.production)
    let grpc = try GRPCConnection(port: server.port)
    #expect(try grpc.call("GetDocument", Self.request([1: Self.root + "/c/x"])).status == 7)
    #expect(try grpc.call("RunQuery", Self.runQuery("c")).status == 7)
    #expect(try grpc.call("Commit", Self.commit([])).status == 7)
  }

  /// Every mutated request gets a status.
  @Test func mutatedRequestsGetAStatus() throws {
    let seed = TestSeeds.of("FUZZ_SEED", otherwise: [1])[0]
    var random = SplitMix(seed: seed)
    let server = try TestServer()
    let grpc = try GRPCConnection(port: server.port)
    let writes = Self.commit([Self.update(Self.document(Self.root + "/c/x", ("a", 1)))])
    let corpus: [(String, [UInt8])] = [
      ("GetDocument", Self.request([1: Self.root + "/c/x"])), ("ListDocuments", Self.request([1: Self.root, 2: "c"])),
      ("CreateDocument", Self.request([1: Self.root, 2: "c"], [(4, Self.document(nil, ("a", 1)))])),
      ("UpdateDocument", Self.request([:], [(1, Self.document(Self.root + "/c/x", ("b", 3)))])),
      ("DeleteDocument", Self.request([1: Self.root + "/c/x"])), ("Commit", writes), ("BatchWrite", writes),
      ("BatchGetDocuments", Self.request([1: Self.database, 2: Self.root + "/c/x"])),
      ("BeginTransaction", Self.request([1: Self.database])), ("Rollback", Self.request([1: Self.database, 2: "id"])),
      ("RunQuery", Self.runQuery("c")), ("RunAggregationQuery", Self.runQuery("c")),
      ("PartitionQuery", Self.runQuery("c")), ("ListCollectionIds", Self.request([1: Self.root])),
    ]
    for round in 0..<300 {
      var (method, bytes) = corpus[round % corpus.count]
      for _ in 0..<Int.random(in: 1...3, using: &random) where !bytes.isEmpty {
        let place = Int.random(in: 0..<bytes.count, using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.removeSubrange(place..<min(bytes.count, place + 3))
        default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
        }
      }
      let reply = try grpc.call(method, bytes)
      #expect(reply.status != nil, "seed \(seed), round \(round), \(method) \(bytes)")
      #expect(reply.status != 13, "seed \(seed), round \(round), \(method): \(reply.statusMessage)")
    }
  }

  // MARK: Pieces

  @Test(
    arguments: [
      ("1S", 1000), ("5m", 5), ("1500u", 2), ("1n", 1), ("0n", 0), ("2M", 120_000), ("1H", 3_600_000),
      ("12345678m", 12_345_678),
      ("", nil), ("1", nil), ("S", nil), ("-1S", nil), ("1.5S", nil), ("123456789S", nil), ("1s", nil),
    ] as [(String, Int?)]) func timeoutIsParsed(text: String, milliseconds: Int?)
  {
    #expect(Array(text.utf8).withUnsafeBytes(GRPCTimeout.milliseconds) == milliseconds)
  }

  @Test func longMessagesAreTruncatedBetweenCharacters() {
    let encoded = GRPCStatus.percentEncoded(String(repeating: "é", count: 5000))
    #expect(encoded.utf8.count <= 4096 && encoded.utf8.count > 4000 && encoded.utf8.count.isMultiple(of: 6))
    #expect(GRPCStatus.percentEncoded("a b~\u{7F}") == "a b~%7F")
  }
}
