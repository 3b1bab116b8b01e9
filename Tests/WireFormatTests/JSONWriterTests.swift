import DocumentModel
import Testing
import TestSupport

@testable import WireFormat

@Suite struct JSONWriterTests {
  static let values: [(Value, String)] = [
    (.null, #"{"nullValue":null}"#),
    (.boolean(false), #"{"booleanValue":false}"#),
    (.integer(0), #"{"integerValue":"0"}"#),
    (.integer(.min), #"{"integerValue":"-9223372036854775808"}"#),
    (.integer(.max), #"{"integerValue":"9223372036854775807"}"#),
    (.double(0), #"{"doubleValue":0}"#),
    (.double(-0.0), #"{"doubleValue":-0.0}"#),
    (.double(1), #"{"doubleValue":1}"#),
    (.double(-1.5), #"{"doubleValue":-1.5}"#),
    (.double(0.1), #"{"doubleValue":0.1}"#),
    (.double(0.0001), #"{"doubleValue":0.0001}"#),
    (.double(0.00001), #"{"doubleValue":1e-05}"#),
    (.double(100), #"{"doubleValue":100}"#),
    (.double(123456.789), #"{"doubleValue":123456.789}"#),
    (.double(1e14), #"{"doubleValue":100000000000000}"#),
    (.double(1e15), #"{"doubleValue":1e+15}"#),
    (.double(9007199254740992), #"{"doubleValue":9007199254740992}"#),
    (.double(1e21), #"{"doubleValue":1e+21}"#),
    (.double(.leastNonzeroMagnitude), #"{"doubleValue":5e-324}"#),
    (.double(-.greatestFiniteMagnitude), #"{"doubleValue":-1.7976931348623157e+308}"#),
    (.double(.nan), #"{"doubleValue":"NaN"}"#),
    (.double(.infinity), #"{"doubleValue":"Infinity"}"#),
    (.double(-.infinity), #"{"doubleValue":"-Infinity"}"#),
    (.timestamp(Timestamp(uncheckedMicroseconds: 0)), #"{"timestampValue":"1970-01-01T00:00:00Z"}"#),
    (.timestamp(Timestamp(uncheckedMicroseconds: 500_000)), #"{"timestampValue":"1970-01-01T00:00:00.500Z"}"#),
    (.timestamp(Timestamp(uncheckedMicroseconds: -1)), #"{"timestampValue":"1969-12-31T23:59:59.999999Z"}"#),
    (.timestamp(.earliest), #"{"timestampValue":"0001-01-01T00:00:00Z"}"#),
    (.string(""), #"{"stringValue":""}"#),
    (.string("a\"b\\c/d"), #"{"stringValue":"a\"b\\c/d"}"#),
    (.string("\u{0}\u{8}\t\n\u{B}\u{C}\r\u{1F}\u{7F}"), #"{"stringValue":"\u0000\b\t\n\u000b\f\r\u001f"# + "\u{7F}\"}"),
    (.string("\u{2028}<é😀>"), "{\"stringValue\":\"\u{2028}<é😀>\"}"),
    (.string("1234567\"1234567\n12345678\\"), #"{"stringValue":"1234567\"1234567\n12345678\\"}"#),
    (.bytes([]), #"{"bytesValue":""}"#),
    (.bytes([0xFF]), #"{"bytesValue":"/w=="}"#),
    (.bytes([0xFB, 0xEF]), #"{"bytesValue":"++8="}"#),
    (.bytes([1, 2, 3, 4]), #"{"bytesValue":"AQIDBA=="}"#),
    (
      .reference("projects/p/databases/d/documents/a/b"),
      #"{"referenceValue":"projects/p/databases/d/documents/a/b"}"#
    ),
    (.geoPoint(GeoPoint(latitude: 0, longitude: 0)), #"{"geoPointValue":{}}"#),
    (.geoPoint(GeoPoint(latitude: 0, longitude: -7.5)), #"{"geoPointValue":{"longitude":-7.5}}"#),
    (.array([]), #"{"arrayValue":{}}"#),
    (.array([.null, .integer(1)]), #"{"arrayValue":{"values":[{"nullValue":null},{"integerValue":"1"}]}}"#),
    (.map(MapValue()), #"{"mapValue":{}}"#),
    (
      .map(MapValue([("b\n", .null), ("a", .map(MapValue()))])),
      #"{"mapValue":{"fields":{"a":{"mapValue":{}},"b\n":{"nullValue":null}}}}"#
    ),
  ]

  @Test(arguments: values.indices)
  func writesAndReadsBack(row: Int) throws {
    let (tree, text) = Self.values[row]
    #expect(try json(tree) == text)
    #expect(try value(json: text) == tree)
    #expect(try value(json: json(tree, .pretty)) == tree)
  }

  @Test func indentsPrettyTextByTwo() throws {
    let text = try json(.map(MapValue([("a", .array([.null, .boolean(true)])), ("b", .array([]))])), .pretty)
    #expect(
      text == """
        {
          "mapValue": {
            "fields": {
              "a": {
                "arrayValue": {
                  "values": [
                    {
                      "nullValue": null
                    },
                    {
                      "booleanValue": true
                    }
                  ]
                }
              },
              "b": {
                "arrayValue": {}
              }
            }
          }
        }
        """)
  }

  @Test func writesEmptyBracketsAndScalars() {
    #expect(
      json(.pretty) {
        $0.beginObject(); $0.endObject()
      } == "{}")
    #expect(
      json(.pretty) {
        $0.beginArray(); $0.endArray()
      } == "[]")
    #expect(
      json(.pretty) {
        $0.beginArray(); $0.number(-12); $0.string("é"); $0.null(); $0.endArray()
      } == """
        [
          -12,
          "é",
          null
        ]
        """)
    #expect(
      json {
        $0.beginArray(); $0.number(1); $0.beginObject(); $0.endObject(); $0.bool(true); $0.endArray()
      }
        == "[1,{},true]")
  }

  @Test func indentsDeepText() {
    let text = json(.pretty) { writer in
      for _ in 0..<50 { writer.beginArray() }
      writer.null()
      for _ in 0..<50 { writer.endArray() }
    }
    let lines = text.split(separator: "\n")
    #expect(lines.count == 101)
    #expect(lines[50] == String(repeating: " ", count: 100) + "null")
  }

  @Test func doublesReadBackTheSame() throws {
    var random = SplitMix(seed: 4)
    for _ in 0..<5000 {
      let number = Double(bitPattern: random.next())
      guard number.isFinite else { continue }
      let text = json { $0.double(number) }
      #expect(Double(text)?.bitPattern == number.bitPattern, "\(number)")
      let back = try value(json: "{\"doubleValue\":\(text)}")
      #expect(back == .double(number), "\(text)")
    }
  }
}

@Suite struct DocumentOutputTests {
  static let map = MapValue([
    (
      "a",
      .map(
        MapValue([
          ("b", .integer(1)), ("c", .map(MapValue([("d", .null), ("e", .boolean(true))]))), ("s", .string("x")),
        ]))
    ),
    ("b", .integer(2)), ("odd.name", .string("y")), ("z", .array([.integer(3)])),
  ])

  /// The paths of a mask, and the fields of ``map`` that it keeps; `nil` if it keeps none.
  static let masks: [([String], MapValue?)] = [
    (["a", "b", "z", "`odd.name`"], map),
    (["b"], MapValue([("b", .integer(2))])),
    (["`odd.name`"], MapValue([("odd.name", .string("y"))])),
    (["a.b"], MapValue([("a", .map(MapValue([("b", .integer(1))])))])),
    (
      ["a.c.e", "z"],
      MapValue([
        ("a", .map(MapValue([("c", .map(MapValue([("e", .boolean(true))])))]))), ("z", .array([.integer(3)])),
      ])
    ),
    (["a.b", "a"], MapValue([("a", map["a"] ?? .null)])),
    (["a.x", "b.c", "odd.name", "z.a"], nil),
    (["a.x", "a.c.x", "b"], MapValue([("b", .integer(2))])),
    (
      ["a.s", "a.c.d"], MapValue([("a", .map(MapValue([("c", .map(MapValue([("d", .null)]))), ("s", .string("x"))])))])
    ),
    (["__name__"], nil),
    (["__name__", "b"], MapValue([("b", .integer(2))])),
    ([], nil),
  ]

  static func withDocument<R>(_ map: MapValue, _ body: (EncodedDocument) throws -> R) rethrows -> R {
    let root = Array("projects/p/databases/(default)/documents".utf8)
    let path = Array("c/d\"q".utf8)
    return try root.withUnsafeBytes { root in
      try path.withUnsafeBytes { path in
        try EncodedFields(map).bytes.withUnsafeBytes { fields in
          try body(
            EncodedDocument(
              root: root, path: path, fields: fields, createTime: Timestamp(uncheckedMicroseconds: 0),
              updateTime: Timestamp(uncheckedMicroseconds: 1_000_001)))
        }
      }
    }
  }

  @Test(arguments: masks.indices)
  func masksKeepTheNamedFields(row: Int) throws {
    let (paths, kept) = Self.masks[row]
    let mask = FieldMask(try paths.map { try FieldPath($0) })
    try Self.withDocument(Self.map) { document in
      let text = try json(document, mask: mask)
      let decoded = try decoding(text) { (decoder, root) throws(WireError) in try decoder.document(root) }
      #expect(decoded.fields == EncodedFields(kept ?? MapValue()))
      #expect(text.contains("\"fields\"") == (kept != nil))

      var message: [UInt8] = []
      try DocumentProtobuf.append(document, mask: mask, to: &message)
      let fields = try message.withUnsafeBytes { try EncodedFields.canonical(fromClient: $0) }
      #expect(fields == EncodedFields(kept ?? MapValue()))
      // The message contains the stored form of the fields.
      #expect(message.count > fields.bytes.count)
    }
  }

  @Test func printsDocumentsAsTheServiceDoes() throws {
    try Self.withDocument(MapValue([("n", .integer(7))])) { (document) throws in
      #expect(
        try json(document, .pretty) == """
          {
            "name": "projects/p/databases/(default)/documents/c/d\\"q",
            "fields": {
              "n": {
                "integerValue": "7"
              }
            },
            "createTime": "1970-01-01T00:00:00Z",
            "updateTime": "1970-01-01T00:00:01.000001Z"
          }
          """)
    }
    try Self.withDocument(MapValue()) { document in
      let text = try json(document)
      #expect(text.hasPrefix(#"{"name":"projects/p/databases/(default)/documents/c/d\"q","createTime":"#))
    }
  }

  @Test func documentMessagesHaveTheirFields() throws {
    try Self.withDocument(Self.map) { document in
      var message: [UInt8] = []
      try DocumentProtobuf.append(document, to: &message)
      try message.withUnsafeBytes { (buffer) throws in
        var reader = ProtobufReader(buffer)
        #expect(try reader.next()?.string == "projects/p/databases/(default)/documents/c/d\"q")
        for _ in 0..<4 { #expect(try reader.next()?.number == 2) }
        #expect(try reader.next().map { try EncodedValue.timestamp($0.bytes) }?.microseconds == 0)
        let last = try reader.next()
        #expect(last?.number == 4)
        #expect(try last.map { try EncodedValue.timestamp($0.bytes) }?.microseconds == 1_000_001)
        #expect(try reader.next() == nil)
      }
    }
  }

  @Test func writesResultsOfWrites() throws {
    #expect(try json(WriteResult(updateTime: nil)) == "{}")
    let result = WriteResult(
      updateTime: Timestamp(uncheckedMicroseconds: 1), transformResults: [.integer(3), .null])
    #expect(
      try json(result)
        == #"{"updateTime":"1970-01-01T00:00:00.000001Z","transformResults":[{"integerValue":"3"},{"nullValue":null}]}"#
    )
  }
}

@Suite struct ReservedJSONTests {
  /// The lengths of texts around the size of the block, and far above it.
  static let lengths = [0, 1, 63, 64, 65, 500, 512, 513, 900, 960, 1000, 1023, 1024, 1025, 5000, 100_000]

  @Test(arguments: lengths)
  func textsOfAnyLengthReadBack(length: Int) throws {
    let plain = String(repeating: "x", count: length)
    let tree = Value.map(
      MapValue([
        ("a" + plain.prefix(400), .string(plain)),
        ("b", .array([.string(plain + "\n"), .integer(.min), .string(plain)])),
        ("c", .bytes(Array(plain.utf8))), ("d", .double(-1.7976931348623157e308)),
      ]))
    let text = try json(tree)
    #expect(text.utf8.count > 3 * length)
    #expect(try value(json: text) == tree)
    #expect(try value(json: json(tree, .pretty)) == tree)
  }

  @Test func everyOffsetInTheBlockReadsBack() throws {
    // The block is sent when less than 64 bytes of it are left.
    for length in stride(from: 900, through: 1030, by: 2) {
      let tree = Value.array([
        .string(String(repeating: "x", count: length)), .integer(-12), .null,
        .timestamp(Timestamp(uncheckedMicroseconds: 1)), .double(0.1), .boolean(true),
        .geoPoint(GeoPoint(latitude: 1.5, longitude: -7.25)),
        .map(MapValue([("k", .reference("projects/p/databases/d/documents/a/b"))])),
      ])
      #expect(try value(json: json(tree)) == tree)
      #expect(try value(json: json(tree, .pretty)) == tree)
    }
  }

  @Test func deepValuesAreIndentedByTwoPerLevel() throws {
    let tree = (0..<19).reduce(Value.null) { inner, _ in .map(MapValue([("m", inner)])) }
    let lines = try json(tree, .pretty).split(separator: "\n")
    let deepest = try #require(lines.first { $0.contains("nullValue") })
    #expect(deepest == String(repeating: " ", count: 2 * (3 * 19 + 1)) + "\"nullValue\": null")
  }
}
