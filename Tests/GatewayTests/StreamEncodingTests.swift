import DatabaseService
import DocumentModel
import Testing
import Watch
import WireFormat

@testable import FirestoreAPI
@testable import GatewayCore

/// The messages of streams in JSON and protobuf, compared with those of Google's Python client.
@Suite struct StreamEncodingTests {
  /// The bytes in hexadecimal, and the JSON.
  private static let golden: [(hex: String, json: String)] = [
    (
      "12050801120102",
      #"{"targetChange":{"targetChangeType":"ADD","targetIds":[2]}}"#
    ),
    (
      "121008021201041a09080712056e6f20c3a9",
      #"{"targetChange":{"targetChangeType":"REMOVE","targetIds":[4],"cause":{"code":7,"message":"no \u00e9""#
        + #"}}}"#
    ),
    (
      "12050802120104",
      #"{"targetChange":{"targetChangeType":"REMOVE","targetIds":[4]}}"#
    ),
    (
      "120608041202ac02",
      #"{"targetChange":{"targetChangeType":"RESET","targetIds":[300]}}"#
    ),
    (
      "1217080312010222030102ff320b08e8c195bf06108094ef3a",
      #"{"targetChange":{"targetChangeType":"CURRENT","targetIds":[2],"resumeToken":"AQL/","readTime":"2025-"#
        + #"03-27T14:30:00.123456Z"}}"#
    ),
    (
      "121222030102ff320b08e8c195bf06108094ef3a",
      #"{"targetChange":{"resumeToken":"AQL/","readTime":"2025-03-27T14:30:00.123456Z"}}"#
    ),
    (
      "1a640a5e0a3170726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f6974656d73"
        + "2fc3a9120f0a0161120a8a0107c3a9f09f98800a1a0b08e8c195bf06108094ef3a220b08e8c195bf06108094ef3a2a02ac02",
      #"{"documentChange":{"document":{"name":"projects/p/databases/(default)/documents/items/\u00e9","field"#
        + #"s":{"a":{"stringValue":"\u00e9\ud83d\ude00\n"}},"createTime":"2025-03-27T14:30:00.123456Z","updateTi"#
        + #"me":"2025-03-27T14:30:00.123456Z"},"targetIds":[300]}}"#
    ),
    (
      "1a630a5e0a3170726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f6974656d73"
        + "2fc3a9120f0a0161120a8a0107c3a9f09f98800a1a0b08e8c195bf06108094ef3a220b08e8c195bf06108094ef3a320104",
      #"{"documentChange":{"document":{"name":"projects/p/databases/(default)/documents/items/\u00e9","field"#
        + #"s":{"a":{"stringValue":"\u00e9\ud83d\ude00\n"}},"createTime":"2025-03-27T14:30:00.123456Z","updateTi"#
        + #"me":"2025-03-27T14:30:00.123456Z"},"removedTargetIds":[4]}}"#
    ),
    (
      "22420a3070726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f6974656d732f78"
        + "220b08e8c195bf06108094ef3a320101",
      #"{"documentDelete":{"document":"projects/p/databases/(default)/documents/items/x","readTime":"2025-03"#
        + #"-27T14:30:00.123456Z","removedTargetIds":[1]}}"#
    ),
    (
      "32420a3070726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f6974656d732f78"
        + "120103220b08e8c195bf06108094ef3a",
      #"{"documentRemove":{"document":"projects/p/databases/(default)/documents/items/x","removedTargetIds":"#
        + #"[3],"readTime":"2025-03-27T14:30:00.123456Z"}}"#
    ),
    (
      "0a03393538120130",
      #"{"streamId":"958","streamToken":"MA=="}"#
    ),
    (
      "1201311a110a0b08e8c195bf06108094ef3a120210031a00220b08e8c195bf06108094ef3a",
      #"{"streamToken":"MQ==","writeResults":[{"updateTime":"2025-03-27T14:30:00.123456Z","transformResults""#
        + #":[{"integerValue":"3"}]},{}],"commitTime":"2025-03-27T14:30:00.123456Z"}"#
    ),
  ]

  private static func database() throws -> DatabaseID { try #require(DatabaseID(project: "p")) }
  private static let time = Timestamp(uncheckedMicroseconds: 1_743_085_800_123_456)

  private static func document() throws -> WatchedDocument {
    let key = try #require(DocumentKey(try ResourcePath("items/é")))
    return WatchedDocument(
      key, EncodedFields(MapValue([("a", .string("é😀\n"))])), createVersion: time.microseconds,
      updateVersion: time.microseconds)
  }

  private static func events() throws -> [WatchEvent] {
    let key = try #require(DocumentKey(try ResourcePath("items/x")))
    let token: [UInt8] = [1, 2, 255]
    let document = try document()
    func change(_ key: DocumentKey, _ change: DocumentChange<DocumentState>, _ target: Int32) -> WatchEvent {
      .document(key, change, target: target, readTime: time)
    }
    return [
      .add(2), .remove(4, cause: Status(.permissionDenied, "no é")), .remove(4, cause: nil), .reset(300),
      .current(2, token: token, readTime: time), .noChange(token: token, readTime: time),
      change(document.key, .modified(.shared(document)), 300), change(document.key, .removed(.shared(document)), 4),
      change(key, .deleted, 1), change(key, .removed(nil), 3),
    ]
  }

  private static func responses() -> [WriteStreamResponse] {
    var handshake = WriteStreamResponse(streamToken: Array("0".utf8))
    handshake.streamID = "958"
    var written = WriteStreamResponse(streamToken: Array("1".utf8))
    written.results = [
      WriteResult(updateTime: time, transformResults: [.integer(3)]), WriteResult(updateTime: nil),
    ]
    written.commitTime = time
    return [handshake, written]
  }

  @Test func jsonMatchesThePythonClient() throws {
    let encoder = StreamJSONEncoder(try Self.database())
    var texts: [[UInt8]] = []
    for event in try Self.events() {
      var text: [UInt8] = []
      try encoder.append(event, to: &text)
      texts.append(text)
    }
    for response in Self.responses() {
      var text: [UInt8] = []
      try encoder.append(response, to: &text)
      texts.append(text)
    }
    #expect(texts.count == Self.golden.count)
    for (text, row) in zip(texts, Self.golden) {
      #expect(text.allSatisfy { $0 < 0x80 })
      #expect(Self.members(text) == Self.members(Array(row.json.utf8)), "\(row.json)")
    }
  }

  /// The text with the members of its objects sorted.
  private static func members(_ text: [UInt8]) -> [String] {
    String(decoding: text, as: UTF8.self).split { "{},".contains($0) }.map(String.init).sorted()
  }

  @Test func protobufMatchesThePythonClient() throws {
    let encoder = StreamProtobufEncoder(try Self.database())
    var messages: [[UInt8]] = []
    for event in try Self.events() {
      var message: [UInt8] = []
      try encoder.append(event, to: &message)
      messages.append(message)
    }
    for response in Self.responses() {
      var message: [UInt8] = []
      encoder.append(response, to: &message)
      messages.append(message)
    }
    for (message, row) in zip(messages, Self.golden) {
      #expect(message.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined() == row.hex, "\(row.json)")
    }
  }

  /// Encoding appends to the output, and encodes a document once for all listeners.
  @Test func documentsAreSharedAndAppended() throws {
    let encoder = StreamJSONEncoder(try Self.database())
    let document = try Self.document()
    var out = Array("before".utf8)
    for target: Int32 in [2, 4] {
      try encoder.append(
        .document(document.key, .modified(.shared(document)), target: target, readTime: Self.time), to: &out)
    }
    let text = String(decoding: out, as: UTF8.self)
    #expect(text.hasPrefix(#"before{"documentChange":{"document":{"name":"#))
    #expect(text.contains(#""targetIds":[2]}}{"documentChange":{"#) && text.hasSuffix(#""targetIds":[4]}}"#))
    _ = document.encoded(.json) { _ in
      Issue.record("the document was encoded twice")
      return []
    }
  }

  /// A document that cannot be encoded leaves the output unchanged.
  @Test func damagedDocumentAppendsNothing() throws {
    let key = try #require(DocumentKey(try ResourcePath("a/b")))
    let damaged = WatchedDocument(
      key, EncodedFields(canonical: [0x12, 0x7F, 1]), createVersion: 1, updateVersion: 1)
    var out = Array("before".utf8)
    #expect(throws: WireError.self) {
      try StreamJSONEncoder(try Self.database()).append(
        .document(key, .modified(.shared(damaged)), target: 1, readTime: Self.time), to: &out)
    }
    #expect(out == Array("before".utf8))
  }
}
