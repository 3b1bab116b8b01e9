import DocumentModel
import Testing
import TestSupport

@testable import WireFormat

/// The messages of requests, from JSON and from protobuf.
@Suite struct RequestMessageTests {
  /// The content of a field, independent of its encoding.
  indirect enum Content {
    case text(String)
    case bytes([UInt8])
    case int32(Int)
    case int64(Int64)
    case bool(Bool)
    case time(Timestamp)
    case message([Field])
    case list([Content])
  }

  /// A field with its number in protobuf and its name in snake_case.
  typealias Field = (number: Int, name: String, content: Content)

  static let root = "projects/p/databases/(default)/documents"
  static let seeds = TestSeeds.of("MESSAGE_SEED", otherwise: Array(1...200))

  // MARK: Encoding

  private static func append(_ fields: [Field], to json: inout JSONWriter, camelCase: Bool) {
    json.beginObject()
    for (_, name, content) in fields {
      (camelCase ? lowerCamelCase(name) : name).withRawUTF8 { json.key($0) }
      append(content, to: &json, camelCase: camelCase)
    }
    json.endObject()
  }

  private static func append(_ content: Content, to json: inout JSONWriter, camelCase: Bool) {
    switch content {
    case .text(let text): json.string(text)
    case .bytes(let bytes): bytes.withUnsafeBytes { json.base64($0) }
    case .int32(let number): json.number(number)
    case .int64(let number): json.int64(number)
    case .bool(let flag): json.bool(flag)
    case .time(let time): json.timestamp(time)
    case .message(let fields): append(fields, to: &json, camelCase: camelCase)
    case .list(let items):
      json.beginArray()
      for item in items { append(item, to: &json, camelCase: camelCase) }
      json.endArray()
    }
  }

  private static func lowerCamelCase(_ name: String) -> String {
    let words = name.split(separator: "_")
    return words.dropFirst().reduce(String(words[0])) { $0 + $1.prefix(1).uppercased() + $1.dropFirst() }
  }

  private static func append(_ fields: [Field], to out: inout [UInt8]) {
    for (number, _, content) in fields { append(number, content, to: &out) }
  }

  private static func append(_ number: Int, _ content: Content, to out: inout [UInt8]) {
    switch content {
    case .text(let text): ProtobufWriter.string(number, text, to: &out)
    case .bytes(let bytes): ProtobufWriter.bytes(number, bytes, to: &out)
    case .int32(let value): ProtobufWriter.int64(number, Int64(value), to: &out)
    case .int64(let value): ProtobufWriter.int64(number, value, to: &out)
    case .bool(let flag): ProtobufWriter.bool(number, flag, to: &out)
    case .time(let time): ProtobufWriter.timestamp(number, time, to: &out)
    case .message(let fields): ProtobufWriter.message(number, to: &out) { append(fields, to: &$0) }
    case .list(let items): for item in items { append(number, item, to: &out) }
    }
  }

  // MARK: Random messages

  private static let database = (1, "database", Content.text("projects/p/databases/(default)"))
  private static let parent = (1, "parent", Content.text(root))

  private static func mask(_ random: inout SplitMix) -> Content {
    .message([(1, "field_paths", .list((0...random.pick(0...2)).map { .text("f\($0).`a b`") }))])
  }

  private static func time(_ random: inout SplitMix) -> Content {
    .time(Timestamp(uncheckedMicroseconds: Int64.random(in: 1...(1 << 50), using: &random)))
  }

  private static func options(_ random: inout SplitMix) -> Content {
    switch random.pick(0...3) {
    case 0: .message([])
    case 1: .message([(2, "read_only", .message([]))])
    case 2: .message([(2, "read_only", .message([(2, "read_time", time(&random))]))])
    default: .message([(3, "read_write", .message([(1, "retry_transaction", .bytes([1, 2, 3]))]))])
    }
  }

  /// One member of a oneof `consistency_selector`, or none.
  private static func selector(
    _ random: inout SplitMix, transaction: Int, newTransaction: Int? = nil, readTime: Int
  ) -> [Field] {
    switch random.pick(0...3) {
    case 0: return [(transaction, "transaction", .bytes([UInt8](repeating: 7, count: random.pick(1...24))))]
    case 1: return [(readTime, "read_time", time(&random))]
    case 2: return newTransaction.map { [($0, "new_transaction", options(&random))] } ?? []
    default: return []
    }
  }

  private static func query(_ random: inout SplitMix) -> Content {
    let field = Content.message([(2, "field_path", .text("a.b"))])
    return .message([
      (
        2, "from",
        .list([.message([(2, "collection_id", .text("c")), (3, "all_descendants", .bool(random.chance(oneIn: 2)))])])
      ),
      (4, "order_by", .list([.message([(1, "field", field), (2, "direction", .int32(random.pick(0...2)))])])),
      (6, "offset", .int32(random.pick(0...9))),
    ])
  }

  private static func precondition(_ random: inout SplitMix) -> Content {
    random.chance(oneIn: 2)
      ? .message([(1, "exists", .bool(random.chance(oneIn: 2)))]) : .message([(2, "update_time", time(&random))])
  }

  private static func writes(_ random: inout SplitMix) -> Content {
    .list(
      (0..<random.pick(1...4)).map { index in
        let name = Content.text(root + "/c/d\(index)")
        switch random.pick(0...2) {
        case 0: return .message([(2, "delete", name), (4, "current_document", precondition(&random))])
        case 1: return .message([(1, "update", .message([(1, "name", name)])), (3, "update_mask", mask(&random))])
        default: return .message([(5, "verify", name), (4, "current_document", precondition(&random))])
        }
      })
  }

  /// Keeps some of the fields, in any order.
  private static func some(_ fields: [Field], _ random: inout SplitMix) -> [Field] {
    fields.filter { _ in !random.chance(oneIn: 4) }.shuffled(using: &random)
  }

  // MARK: Comparison

  private static func fromJSON<M: DecodableMessage>(_ text: [UInt8], _ empty: M) -> Result<M.Decoded, WireError> {
    Result { () throws(WireError) in
      try decoding(text) { (decoder, root) throws(WireError) in
        decoder.reset(in: DatabaseID(project: "p"))
        return try decoder.decode(root, empty)
      }
    }
  }

  private static func fromProtobuf<M: DecodableMessage>(_ bytes: [UInt8], _ empty: M) -> Result<M.Decoded, WireError> {
    Result { () throws(WireError) in
      try bytes.withRawBytes { (bytes) throws(WireError) in
        let decoder = ProtobufMessageDecoder()
        decoder.reset(.standard, in: DatabaseID(project: "p"))
        return try decoder.decode(bytes, empty)
      }
    }
  }

  private static func compare<M: DecodableMessage>(
    _ fields: [Field], _ empty: M, _ random: inout SplitMix, seed: UInt64
  ) where M.Decoded: Equatable {
    let name = M.typeName.description
    var json = JSONWriter(.compact)
    append(fields, to: &json, camelCase: random.chance(oneIn: 2))
    var bytes: [UInt8] = []
    append(fields, to: &bytes)
    let text = String(decoding: json.bytes, as: UTF8.self)
    let one = fromJSON(json.bytes, empty)
    let other = fromProtobuf(bytes, empty)
    #expect(one == other, "\(name) with seed \(seed): \(text)")
    #expect((try? one.get()) != nil, "\(name) with seed \(seed): \(text)")
    // Unknown fields are skipped in protobuf, as are known fields of another type, and rejected in JSON.
    let unknown: [UInt8] = [0xA0, 0x3F, 1, 0xAA, 0x3F, 2, 7, 7, 0x15, 0, 0, 0, 0, 0x1D, 0, 0, 0, 0]
    #expect(fromProtobuf(bytes + unknown, empty) == other, "\(name) with seed \(seed) and unknown fields")
    let stranger = fromJSON(Array(#"{"stranger":1}"#.utf8), empty)
    #expect(stranger == .failure(.unknownField(name: "stranger", path: "")), "\(name)")
  }

  @Test(arguments: seeds) func jsonAndProtobufDecodeToEqualMessages(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    let key = try #require(DocumentKey(try ResourcePath(checking: Array("c/d".utf8))))
    let path = try ResourcePath(checking: Array("c".utf8))
    let name = (1, "name", Content.text(Self.root + "/c/d"))
    let document = Content.message([])
    func check<M: DecodableMessage>(_ empty: M, _ fields: [Field], required: [Field] = [])
    where M.Decoded: Equatable {
      Self.compare(Self.some(fields, &random) + required, empty, &random, seed: seed)
    }
    check(
      GetDocumentRequest(key),
      [name, (2, "mask", Self.mask(&random))] + Self.selector(&random, transaction: 3, readTime: 5))
    check(
      ListDocumentsRequest(path),
      [
        Self.parent, (2, "collection_id", .text("c")), (3, "page_size", .int32(random.pick(-1...500))),
        (4, "page_token", .text("AQID")), (6, "order_by", .text("a desc")), (7, "mask", Self.mask(&random)),
        (12, "show_missing", .bool(random.chance(oneIn: 2))),
      ] + Self.selector(&random, transaction: 8, readTime: 10))
    check(
      CreateDocumentRequest(in: path),
      [
        Self.parent, (2, "collection_id", .text("c")), (3, "document_id", .text("d")), (4, "document", document),
        (5, "mask", Self.mask(&random)),
      ])
    check(
      UpdateDocumentRequest(key),
      [
        (1, "document", document), (2, "update_mask", Self.mask(&random)), (3, "mask", Self.mask(&random)),
        (4, "current_document", Self.precondition(&random)),
      ])
    check(DeleteDocumentRequest(key), [name, (2, "current_document", Self.precondition(&random))])
    check(
      BatchGetDocumentsRequest(),
      [
        Self.database, (2, "documents", .list(["a", "b"].map { .text(Self.root + "/c/\($0)") })),
        (3, "mask", Self.mask(&random)),
      ] + Self.selector(&random, transaction: 4, newTransaction: 5, readTime: 7))
    check(BeginTransactionRequest(), [Self.database, (2, "options", Self.options(&random))])
    check(CommitMessage(), [Self.database, (2, "writes", Self.writes(&random)), (3, "transaction", .bytes([9]))])
    check(RollbackRequest(), [Self.database, (2, "transaction", .bytes([9, 9]))])
    check(BatchWriteRequest(), [Self.database, (2, "writes", Self.writes(&random)), (3, "labels", .message([]))])
    let explain: Field = (0, "explain_options", .message([(1, "analyze", .bool(random.chance(oneIn: 2)))]))
    check(
      RunQueryRequest(below: .root),
      [Self.parent, (10, explain.name, explain.content)]
        + Self.selector(&random, transaction: 5, newTransaction: 6, readTime: 7),
      required: [(2, "structured_query", Self.query(&random))])
    let aggregation: Field = (
      3, "aggregations", .list([.message([(1, "count", .message([])), (7, "alias", .text("n"))])])
    )
    check(
      RunAggregationQueryRequest(below: .root),
      [Self.parent, (8, explain.name, explain.content)]
        + Self.selector(&random, transaction: 4, newTransaction: 5, readTime: 6),
      required: [
        (
          2, "structured_aggregation_query",
          .message([(1, "structured_query", Self.query(&random)), aggregation])
        )
      ])
    check(
      PartitionQueryRequest(below: .root),
      [
        Self.parent, (3, "partition_count", .int64(random.pick(-1...9))), (4, "page_token", .text("AQID")),
        (5, "page_size", .int32(random.pick(0...9))), (6, "read_time", Self.time(&random)),
      ], required: [(2, "structured_query", Self.query(&random))])
    check(
      ListCollectionIdsRequest(below: .root),
      [
        Self.parent, (2, "page_size", .int32(random.pick(0...9))), (3, "page_token", .text("")),
        (4, "read_time", Self.time(&random)),
      ])
    check(
      WriteStreamRequest(),
      [
        Self.database, (2, "stream_id", .text("s")), (3, "writes", Self.writes(&random)),
        (4, "stream_token", .bytes([1])), (5, "labels", .message([])),
      ])
  }

  // MARK: Errors

  /// A message in JSON, and the text of the error.
  private typealias Row = (json: String, text: String)

  private static func expect<M: DecodableMessage>(_ empty: M, _ rows: [Row]) {
    for (json, text) in rows {
      switch fromJSON(Array(json.utf8), empty) {
      case .success(let decoded): Issue.record("\(json) was decoded to \(decoded)")
      case .failure(let error): #expect(error.description == text, "\(json)")
      }
    }
  }

  @Test func malformedRequestsAreRejectedWithTheDocumentedTexts() {
    let other = "projects/q/databases/(default)/documents/c/d"
    let isOther =
      "The request was for database 'projects/p/databases/(default)' but was attempting to access database "
      + "'projects/q/databases/(default)'"
    Self.expect(
      CommitMessage(),
      [
        ("[]", "Invalid JSON payload received. Invalid value at '': Proto field is not repeating, cannot start list."),
        (#"{"writes":[{"delete":"\#(other)"}]}"#, isOther),
        // Malformed writes are reported before writes to other databases.
        (#"{"writes":[{"delete":"\#(other)"},{}]}"#, "empty write operation"),
        (
          #"{"writes":[{"update":{"nmae":""}}]}"#,
          #"Invalid JSON payload received. Unknown name "nmae" at 'writes[0].update': Cannot find field."#
        ),
        (#"{"transaction":"?"}"#, #"Invalid value at 'transaction' (TYPE_BYTES), Base64 decoding failed for "?""#),
        (#"{"labels":{}}"#, #"Invalid JSON payload received. Unknown name "labels": Cannot find field."#),
      ])
    Self.expect(BatchGetDocumentsRequest(), [(#"{"documents":["\#(other)"]}"#, isOther)])
    Self.expect(
      RunQueryRequest(below: .root),
      [
        ("{}", "only structured queries are supported"),
        (
          #"{"transaction":"AQ==","newTransaction":{}}"#,
          "Invalid value at '' (oneof), oneof field 'consistency_selector' is already set. Cannot set 'newTransaction'"
        ),
        (
          #"{"structuredQuery":{"offset":"x"}}"#, #"Invalid value at 'structured_query.offset' (TYPE_INT32), "x""#
        ),
        (
          #"{"structured_queryX":{}}"#,
          #"Invalid JSON payload received. Unknown name "structured_queryX": Cannot find field."#
        ),
      ])
    Self.expect(
      RunAggregationQueryRequest(below: .root),
      [(#"{"structuredAggregationQuery":{}}"#, "only structured aggregation queries are supported")])
    Self.expect(
      PartitionQueryRequest(below: .root),
      [("{}", "only structured queries are supported"), (#"{"pageToken":"?"}"#, "invalid page token")])
    Self.expect(
      ListCollectionIdsRequest(below: .root),
      [
        (#"{"pageSize":1.5}"#, "Invalid value at 'page_size' (TYPE_INT32), 1.5"),
        (#"{"readTime":"1970-01-01T00:00:00.0000001Z"}"#, "Timestamp must be microsecond-aligned."),
      ])
    Self.expect(
      CreateDocumentRequest(in: .root),
      [(#"{"document":{"name":"x"}}"#, "document.name must not be set")])
  }

  @Test func theLastMemberOfAOneofWinsInProtobuf() throws {
    var bytes: [UInt8] = []
    ProtobufWriter.bytes(4, [1], to: &bytes)
    ProtobufWriter.bytes(5, [], to: &bytes)
    #expect(try Self.fromProtobuf(bytes, BatchGetDocumentsRequest()).get().consistency == .latest)
    #expect(try Self.fromProtobuf(bytes, BatchGetDocumentsRequest()).get().newTransaction == .readOnly(nil))
    ProtobufWriter.bytes(4, [2], to: &bytes)
    let batch = try Self.fromProtobuf(bytes, BatchGetDocumentsRequest()).get()
    #expect(batch.consistency == .transaction(TransactionID(bytes: [2])) && batch.newTransaction == nil)
  }
}
