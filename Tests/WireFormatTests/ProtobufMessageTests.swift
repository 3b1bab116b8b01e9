import DocumentModel
import Testing
import TestSupport

@testable import WireFormat

/// Messages decode from protobuf to the same values as from JSON, or to the same error.
@Suite struct ProtobufMessageTests {
  @Test(arguments: GoldenMessages.rows.indices) func decodesTheSameAsJSON(index: Int) throws {
    let row = GoldenMessages.rows[index]
    switch row.kind {
    case .write:
      try compare(row, { (d, m) throws(WireError) in try d.write(m) }, { (d, j) throws(WireError) in try d.write(j) })
    case .query:
      try compare(
        row, { (d, m) throws(WireError) in try d.query(m, below: .root) },
        { (d, j) throws(WireError) in try d.query(j, below: .root) })
    case .aggregation:
      try compare(
        row, { (d, m) throws(WireError) in Aggregates(try d.decode(m, AggregationQueryMembers(below: .root))) },
        { (d, j) throws(WireError) in Aggregates(try d.decode(j, AggregationQueryMembers(below: .root))) })
    case .options:
      try compare(
        row, { (d, m) throws(WireError) in try d.decode(m, TransactionOptions()) },
        { (d, j) throws(WireError) in try d.decode(j, TransactionOptions()) })
    }
  }

  struct Aggregates: Equatable {
    let query: Query?
    let aggregations: [Aggregation]

    init(_ parts: (query: Query?, aggregations: [Aggregation])) {
      query = parts.query
      aggregations = parts.aggregations
    }
  }

  private func compare<R: Equatable>(
    _ row: GoldenMessages.Row,
    _ fromBytes: (ProtobufMessageDecoder, UnsafeRawBufferPointer) throws(WireError) -> R,
    _ fromJSON: (JSONMessageDecoder, JSONValue) throws(WireError) -> R
  ) throws {
    let bytes = Self.bytes(row.hex)
    let decoder = ProtobufMessageDecoder()
    let one = bytes.withUnsafeBytes { bytes in
      Result { () throws(WireError) in try fromBytes(decoder, bytes) }
    }
    let document = JSONDocument()
    let other = Array(row.json.utf8).withUnsafeBytes { text in
      Result { () throws(WireError) in
        try document.withParsed(text) { (root) throws(WireError) in try fromJSON(JSONMessageDecoder(), root) }
      }
    }
    #expect(one == other, "\(row.json)")
    // Unknown fields of every wire type at the end change nothing, but a truncated field is rejected.
    let unknown: [UInt8] = [
      0xA0, 0x3F, 1, 0xAA, 0x3F, 2, 7, 7, 0xAD, 0x3F, 0, 0, 0, 0, 0xA1, 0x3F, 0, 0, 0, 0, 0, 0, 0, 0,
    ]
    let more = (bytes + unknown).withUnsafeBytes { bytes in
      Result { () throws(WireError) in try fromBytes(decoder, bytes) }
    }
    #expect(more == one, "\(row.json) with unknown fields")
    let cut = (bytes + [0xAA, 0x3F, 9, 7]).withUnsafeBytes { bytes in
      Result { () throws(WireError) in try fromBytes(decoder, bytes) }
    }
    if case .success = one { #expect(throws: WireError.self) { try cut.get() } }
  }

  @Test func limitsTheNestingOfFilters() throws {
    func filter(depth: Int) -> [UInt8] {
      var filter: [UInt8] = []
      ProtobufWriter.message(3, to: &filter) { unary in
        ProtobufWriter.int64(1, 3, to: &unary)
        ProtobufWriter.message(2, to: &unary) { ProtobufWriter.string(2, "a", to: &$0) }
      }
      for _ in 0..<depth {
        let inner = filter
        filter = []
        ProtobufWriter.message(1, to: &filter) { composite in
          ProtobufWriter.int64(1, 1, to: &composite)
          ProtobufWriter.bytes(2, inner, to: &composite)
        }
      }
      var query: [UInt8] = []
      ProtobufWriter.bytes(3, filter, to: &query)
      return query
    }
    func decode(_ bytes: [UInt8]) throws -> Query {
      try bytes.withUnsafeBytes { try ProtobufMessageDecoder().query($0, below: .root) }
    }
    let max = ProtobufMessageDecoder.nestingDepthMax
    #expect(try decode(filter(depth: max - 1)).filter != nil)
    #expect(throws: WireError.malformedProtobuf("filter is nested too deeply")) { try decode(filter(depth: max)) }
    #expect(throws: WireError.self) { try decode(filter(depth: 2000)) }
  }

  @Test func refusesTextThatIsNotUTF8() {
    let write: [UInt8] = [0x12, 2, 0xC3, 0x28]
    #expect(throws: WireError.malformedProtobuf("string field contains invalid UTF-8")) {
      try write.withUnsafeBytes { try ProtobufMessageDecoder().write($0) }
    }
  }

  /// As in every protobuf decoder, the last member of a oneof wins.
  @Test func lastMemberWins() throws {
    let name = "projects/p/databases/(default)/documents/c/d"
    var bytes: [UInt8] = []
    ProtobufWriter.message(1, to: &bytes) { ProtobufWriter.string(1, name + "x", to: &$0) }
    ProtobufWriter.string(2, name, to: &bytes)
    let write = try bytes.withUnsafeBytes { try ProtobufMessageDecoder().write($0) }.write
    #expect(write.operation == .delete)
    #expect(write.key.path.text == "c/d")
  }

  @Test func encodesResults() throws {
    let time = try #require(Timestamp(rfc3339: "2025-03-27T14:30:00.123456Z".utf8))
    let whole = try #require(Timestamp(rfc3339: "2025-03-27T14:30:00Z".utf8))
    var bytes: [UInt8] = []
    DocumentProtobuf.append(
      WriteResult(updateTime: time, transformResults: [.integer(6), .null, .timestamp(whole)]), to: &bytes)
    #expect(bytes == Self.bytes("0a0b08e8c195bf06108094ef3a12021006120258001208520608e8c195bf06"))
    bytes = []
    DocumentProtobuf.append(WriteResult(updateTime: nil), to: &bytes)
    #expect(bytes.isEmpty)
    DocumentProtobuf.append(code: 5, message: "No document to update: x", to: &bytes)
    #expect(bytes == Self.bytes("080512184e6f20646f63756d656e7420746f207570646174653a2078"))
    bytes = []
    let values: [(alias: String, value: Value)] = [("a", .integer(3)), ("b", .double(4)), ("c", .null)]
    try RunAggregationQueryResponse(values, transaction: nil, readTime: whole, explainMetrics: nil)
      .appendProtobuf(to: &bytes)
    #expect(
      bytes
        == Self.bytes(
          "0a2212070a016112021003120e0a0162120919000000000000104012070a0163120258001a0608e8c195bf06"))
  }

  @Test func encodesExplanations() throws {
    let metrics = ExplainMetrics(
      indexesUsed: [.init(scope: "Collection", properties: "(a ASC, __name__ ASC)")], plan: "scan",
      execution: .init(
        results: 3, microseconds: 1_000_123, readOperations: 4, documentsScanned: 5, indexEntriesScanned: 6))
    var bytes: [UInt8] = []
    try metrics.appendProtobuf(to: &bytes)
    // The entries of a map have no order on the wire, so the bytes are compared without order.
    let expected = Self.bytes(
      "0a560a540a0e0a04706c616e12061a047363616e0a250a0a70726f7065727469657312171a152861204153432c205f5f6e616d655f5f204153"
        + "43290a1b0a0b71756572795f73636f7065120c1a0a436f6c6c656374696f6e12af0108031a06080110f8c00720042aa0010a660a0f62"
        + "696c6c696e675f64657461696c7312532a510a190a12646f63756d656e74735f62696c6c61626c6512031a01340a1d0a16696e6465785f"
        + "656e74726965735f62696c6c61626c6512031a01300a150a0e6d696e5f71756572795f636f737412031a01300a180a11646f63756d656e"
        + "74735f7363616e6e656412031a01350a1c0a15696e6465785f656e74726965735f7363616e6e656412031a0136")
    #expect(bytes.sorted() == expected.sorted())
    #expect(bytes.prefix(4) == expected.prefix(4))
  }

  /// Any bytes are decoded or rejected without a crash.
  @Test func mutatedBytesNeverTrap() throws {
    let seed = TestSeeds.of("FUZZ_SEED", otherwise: [1])[0]
    var random = SplitMix(seed: seed)
    for row in GoldenMessages.rows {
      for _ in 0..<50 {
        var bytes = Self.bytes(row.hex)
        for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
          let place = Int.random(in: 0..<bytes.count, using: &random)
          switch Int.random(in: 0..<3, using: &random) {
          case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
          case 1: bytes.remove(at: place)
          default: bytes.insert(UInt8.random(in: 0...255, using: &random), at: place)
          }
        }
        bytes.withUnsafeBytes(WireFuzz.messages)
      }
    }
  }

  static func bytes(_ hex: String) -> [UInt8] {
    var digits = Array(hex.utf8)[...]
    var bytes: [UInt8] = []
    while digits.count >= 2 {
      bytes.append(UInt8(String(decoding: digits.prefix(2), as: UTF8.self), radix: 16) ?? 0)
      digits = digits.dropFirst(2)
    }
    return bytes
  }
}
