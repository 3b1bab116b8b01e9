import DocumentModel
import Testing

@testable import WireFormat

/// The messages of responses, in JSON and in protobuf.
@Suite struct ResponseMessageTests {
  private static let time = Timestamp(uncheckedMicroseconds: 1_000_001)
  private static let root = Array("projects/p/databases/(default)/documents".utf8)

  private static func key() throws -> DocumentKey {
    try #require(DocumentKey(try ResourcePath(checking: Array("c/d".utf8))))
  }

  private static func expect(_ message: some EncodableMessage, _ json: String, _ hex: String) throws {
    var text: [UInt8] = [1]
    try message.appendJSON(.compact, to: &text)
    #expect(String(decoding: text.dropFirst(), as: UTF8.self) == json)
    var bytes: [UInt8] = [1]
    try message.appendProtobuf(to: &bytes)
    #expect(Array(bytes.dropFirst()) == ProtobufMessageTests.bytes(hex), "\(json)")
  }

  @Test func responsesAreEncodedInBothForms() throws {
    let id = try #require(DatabaseID(project: "p"))
    let name = "70726f6a656374732f702f6461746162617365732f2864656661756c74292f646f63756d656e74732f632f64"
    let json = #""1970-01-01T00:00:01.000001Z""#
    try Self.expect(EmptyMessage(), "{}", "")
    try Self.expect(CommitResponse([], commitTime: Self.time), "{}", "")
    try Self.expect(
      CommitResponse(
        [WriteResult(updateTime: Self.time, transformResults: [.integer(6)]), WriteResult(updateTime: nil)],
        commitTime: Self.time),
      #"{"writeResults":[{"updateTime":\#(json),"transformResults":[{"integerValue":"6"}]},{}],"#
        + #""commitTime":\#(json)}"#,
      "0a0b0a05080110e807120210060a001205080110e807")
    try Self.expect(
      BatchWriteResponse([(WriteResult(updateTime: nil), nil), (WriteResult(updateTime: nil), (5, "no"))]),
      #"{"writeResults":[{},{}],"status":[{},{"code":5,"message":"no"}]}"#, "0a000a0012001206080512026e6f")
    try Self.expect(
      BeginTransactionResponse(TransactionID(bytes: [255, 1])), #"{"transaction":"/wE="}"#, "0a02ff01")
    try Self.expect(
      ListCollectionIdsResponse(["a"], nextPageToken: [1]), #"{"collectionIds":["a"],"nextPageToken":"AQ=="}"#,
      "0a0161120441513d3d")
    try Self.expect(ListCollectionIdsResponse([], nextPageToken: []), "{}", "")
    try Self.expect(
      RunQueryResponse(readTime: Self.time, skippedResults: 3), #"{"skippedResults":3,"readTime":\#(json)}"#,
      "20031a05080110e807")
    try Self.expect(
      BatchGetDocumentsResponse(
        .missing(root: Self.root, try Self.key()), transaction: TransactionID(bytes: [1])),
      #"{"missing":"projects/p/databases/(default)/documents/c/d","transaction":"AQ=="}"#,
      "122c\(name)1a0101")
    try Self.expect(
      RunAggregationQueryResponse(
        [("n", .integer(3))], transaction: nil, readTime: Self.time, explainMetrics: nil),
      #"{"result":{"aggregateFields":{"n":{"integerValue":"3"}}},"readTime":\#(json)}"#,
      "0a0912070a016e120210031a05080110e807")
    try Self.expect(
      PartitionQueryResponse([try Self.key()], in: id, nextPageToken: []),
      #"{"partitions":[{"values":[{"referenceValue":"projects/p/databases/(default)/documents/c/d"}],"before":true}]}"#,
      "0a320a2e2a2c\(name)1001")
  }

  @Test func documentsAreEncodedWithTheirMask() throws {
    let fields = EncodedFields(MapValue([("a", .integer(1)), ("b", .integer(2))]))
    let key = try Self.key()
    func expect(_ mask: FieldMask?, _ members: String) throws {
      try Self.root.withUnsafeBytes { root in
        try key.path.bytes.withUnsafeBytes { path in
          try fields.bytes.withUnsafeBytes { fields in
            let document = EncodedDocument(
              root: root, path: path, fields: fields, createTime: Self.time, updateTime: Self.time)
            var text: [UInt8] = []
            try RunQueryResponse(MaskedDocument(document, mask: mask)).appendJSON(.compact, to: &text)
            let json = #""1970-01-01T00:00:01.000001Z""#
            #expect(
              String(decoding: text, as: UTF8.self)
                == #"{"document":{"name":"projects/p/databases/(default)/documents/c/d"\#(members),"#
                + #""createTime":\#(json),"updateTime":\#(json)}}"#)
          }
        }
      }
    }
    try expect(nil, #","fields":{"a":{"integerValue":"1"},"b":{"integerValue":"2"}}"#)
    try expect(FieldMask([try FieldPath("b")]), #","fields":{"b":{"integerValue":"2"}}"#)
    try expect(FieldMask([]), "")
  }

  /// A damaged document leaves the output as it was.
  @Test func failedMessagesAppendNothing() throws {
    let key = try Self.key()
    let damaged: [UInt8] = [0x12, 9, 0x0A]
    Self.root.withUnsafeBytes { root in
      key.path.bytes.withUnsafeBytes { path in
        damaged.withUnsafeBytes { fields in
          let message = MaskedDocument(
            EncodedDocument(root: root, path: path, fields: fields, createTime: Self.time, updateTime: Self.time),
            mask: FieldMask([FieldPath(field: "a")]))
          var out: [UInt8] = [7]
          #expect(throws: WireError.self) { try message.appendJSON(.pretty, to: &out) }
          #expect(throws: WireError.self) { try message.appendProtobuf(to: &out) }
          #expect(out == [7])
        }
      }
    }
  }

  @Test func listsHaveMissingDocuments() throws {
    let id = try #require(DatabaseID(project: "p"))
    let key = try Self.key()
    func append(_ count: Int, to out: inout some MessageWriter) throws {
      var response = ListDocumentsResponse(in: id, mask: nil)
      for _ in 0..<count { try response.append(key, nil, to: &out) }
      response.end(nextPageToken: [1], to: &out)
    }
    func json(_ count: Int) throws -> String {
      var out = JSONWriter(.compact)
      out.beginObject()
      try append(count, to: &out)
      out.endObject()
      return String(decoding: out.bytes, as: UTF8.self)
    }
    let name = #"{"name":"projects/p/databases/(default)/documents/c/d"}"#
    #expect(try json(2) == #"{"documents":[\#(name),\#(name)],"nextPageToken":"AQ=="}"#)
    #expect(try json(0) == #"{"nextPageToken":"AQ=="}"#)
    var out = ProtobufMessageWriter()
    try append(1, to: &out)
    let bytes = out.bytes
    #expect(bytes.prefix(4) == [0x0A, 46, 0x0A, 44] && bytes.count == 48 + 6)
  }
}
