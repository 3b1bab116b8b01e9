import DocumentModel
import Testing
import TestSupport

@testable import WireFormat

@Suite struct JSONValueDecodingTests {
  /// Accepted forms other than those that the writer prints.
  static let accepted: [(String, Value)] = [
    (#"{"integerValue":12}"#, .integer(12)),
    (#"{"integerValue":"-9223372036854775808"}"#, .integer(.min)),
    (#"{"integerValue":-9223372036854775808}"#, .integer(.min)),
    (#"{"integerValue":3.0}"#, .integer(3)),
    (#"{"integerValue":1e3}"#, .integer(1000)),
    (#"{"integer_value":"012"}"#, .integer(12)),
    (#"{"doubleValue":3}"#, .double(3)),
    (#"{"doubleValue":"1.5"}"#, .double(1.5)),
    (#"{"doubleValue":"-0"}"#, .double(-0.0)),
    (#"{"doubleValue":-0.0}"#, .double(-0.0)),
    (#"{"doubleValue":18446744073709551615}"#, .double(0x1p64)),
    (#"{"doubleValue":100000000000000000000}"#, .double(1e20)),
    (#"{"doubleValue":-100000000000000000000}"#, .double(-1e20)),
    (#"{"double_value":18446744073709551616}"#, .double(18446744073709551616)),
    (
      #"{"mapValue":{"fields":{"s":{"stringValue":"99999999999999999999"},"d":{"doubleValue":99999999999999999999}}}}"#,
      .map(MapValue([("s", .string("99999999999999999999")), ("d", .double(1e20))]))
    ),
    (#"{"doubleValue":123456789012345678901234.5}"#, .double(123456789012345678901234.5)),
    (#"{"boolean_value":true}"#, .boolean(true)),
    (#"{"nullValue":"NULL_VALUE"}"#, .null),
    (#"{"null_value":0}"#, .null),
    (#"{"nullValue":null,"stringValue":null}"#, .null),
    (#"{"stringValue":"x","integerValue":null}"#, .string("x")),
    (#"{"stringValue":"\ud83d\ude00\u00e9\/"}"#, .string("😀é/")),
    (#"{"bytesValue":"-_8"}"#, .bytes([0xFB, 0xFF])),
    (#"{"bytesValue":"+/8="}"#, .bytes([0xFB, 0xFF])),
    (#"{"bytes_value":"AQ"}"#, .bytes([1])),
    (
      #"{"timestampValue":"2025-03-27T14:30:00.1234567+02:00"}"#,
      .timestamp(Timestamp(uncheckedMicroseconds: 1_743_078_600_123_456))
    ),
    (#"{"timestamp_value":"1969-12-31T23:59:59.999999999Z"}"#, .timestamp(Timestamp(uncheckedMicroseconds: -1))),
    (#"{"geoPointValue":{"latitude":"1.5","longitude":null}}"#, .geoPoint(GeoPoint(latitude: 1.5, longitude: 0))),
    (#"{"geo_point_value":{}}"#, .geoPoint(GeoPoint(latitude: 0, longitude: 0))),
    (#"{"arrayValue":{"values":null}}"#, .array([])),
    (#"{"array_value":{"values":[]}}"#, .array([])),
    (#"{"map_value":{"fields":{}}}"#, .map(MapValue())),
    (
      #"{"mapValue":{"fields":{"b":{"integerValue":1},"a":{"nullValue":null},"b":{"integerValue":2}}}}"#,
      .map(MapValue([("a", .null), ("b", .integer(2))]))
    ),
    (
      #"{"mapValue":{"fields":{"value":{"arrayValue":{"values":[{"integerValue":1},{"doubleValue":2}]}},"#
        + #""__type__":{"stringValue":"__vector__"}}}}"#, .vector([1, 2])
    ),
  ]

  @Test(arguments: accepted.indices)
  func acceptsValidValues(row: Int) throws {
    let (text, expected) = Self.accepted[row]
    #expect(try value(json: text) == expected, "\(text)")
  }

  /// A value in field `f` of a document, and the text of its error.
  static let refused: [(String, String)] = [
    (#"{"integerValue":"abc"}"#, #"Invalid value at 'document.fields[1].value.integer_value' (TYPE_INT64), "abc""#),
    (#"{"integerValue":1.5}"#, "Invalid value at 'document.fields[1].value.integer_value' (TYPE_INT64), 1.5"),
    (#"{"integerValue":""}"#, #"Invalid value at 'document.fields[1].value.integer_value' (TYPE_INT64), """#),
    (#"{"integerValue":"+1"}"#, #"Invalid value at 'document.fields[1].value.integer_value' (TYPE_INT64), "+1""#),
    (
      #"{"integerValue":"9223372036854775808"}"#,
      #"Invalid value at 'document.fields[1].value.integer_value' (TYPE_INT64), "9223372036854775808""#
    ),
    (
      #"{"integerValue":9223372036854775808}"#,
      "Invalid value at 'document.fields[1].value.integer_value' (TYPE_INT64), 9223372036854775808"
    ),
    (#"{"integerValue":true}"#, "Invalid value at 'document.fields[1].value.integer_value' (TYPE_INT64), true"),
    (#"{"booleanValue":"yes"}"#, #"Invalid value at 'document.fields[1].value.boolean_value' (TYPE_BOOL), "yes""#),
    (#"{"booleanValue":1}"#, "Invalid value at 'document.fields[1].value.boolean_value' (TYPE_BOOL), 1"),
    (#"{"doubleValue":"inf"}"#, #"Invalid value at 'document.fields[1].value.double_value' (TYPE_DOUBLE), "inf""#),
    (#"{"doubleValue":"1x"}"#, #"Invalid value at 'document.fields[1].value.double_value' (TYPE_DOUBLE), "1x""#),
    (#"{"doubleValue":""}"#, #"Invalid value at 'document.fields[1].value.double_value' (TYPE_DOUBLE), """#),
    (#"{"doubleValue":"0x10"}"#, #"Invalid value at 'document.fields[1].value.double_value' (TYPE_DOUBLE), "0x10""#),
    (#"{"stringValue":12}"#, "Invalid value at 'document.fields[1].value.string_value' (TYPE_STRING), 12"),
    (
      #"{"stringValue":{}}"#,
      "Invalid value at 'document.fields[1].value.string_value' (TYPE_STRING), Starting an object on a scalar field"
    ),
    (
      #"{"stringValue":[]}"#,
      "Invalid JSON payload received. Invalid value at 'document.fields[1].value.string_value': "
        + "Proto field is not repeating, cannot start list."
    ),
    (
      #"{"bytesValue":"a"}"#,
      #"Invalid value at 'document.fields[1].value.bytes_value' (TYPE_BYTES), Base64 decoding failed for "a""#
    ),
    (
      #"{"bytesValue":"a$bc"}"#,
      #"Invalid value at 'document.fields[1].value.bytes_value' (TYPE_BYTES), Base64 decoding failed for "a$bc""#
    ),
    (
      #"{"bytesValue":"AQ="}"#,
      #"Invalid value at 'document.fields[1].value.bytes_value' (TYPE_BYTES), Base64 decoding failed for "AQ=""#
    ),
    (
      #"{"timestampValue":"yesterday"}"#,
      "Invalid value at 'document.fields[1].value.timestamp_value' "
        + #"(type.googleapis.com/google.protobuf.Timestamp), "yesterday""#
    ),
    (
      #"{"timestampValue":"10000-01-01T00:00:00Z"}"#,
      "Invalid value at 'document.fields[1].value.timestamp_value' "
        + #"(type.googleapis.com/google.protobuf.Timestamp), "10000-01-01T00:00:00Z""#
    ),
    (
      #"{"nullValue":1}"#,
      "Invalid value at 'document.fields[1].value.null_value' (type.googleapis.com/google.protobuf.NullValue), 1"
    ),
    (
      #"{"strinValue":"x"}"#,
      #"Invalid JSON payload received. Unknown name "strinValue" at 'document.fields[1].value': Cannot find field."#
    ),
    (
      #"{"strinValue":null}"#,
      #"Invalid JSON payload received. Unknown name "strinValue" at 'document.fields[1].value': Cannot find field."#
    ),
    (
      #"{"stringValue":"x","integerValue":"1"}"#,
      "Invalid value at 'document.fields[1].value' (oneof), oneof field 'value_type' is already set. "
        + "Cannot set 'integerValue'"
    ),
    (
      #""x""#,
      "Invalid value at 'document.fields[1].value' (type.googleapis.com/google.firestore.v1.Value), \"x\""
    ),
    ("{}", "Cannot convert firestore.v1.Value with type unset."),
    ("null", "Invalid value at 'document.fields[1].value' (type.googleapis.com/google.firestore.v1.Value), null"),
    (#"{"fieldReferenceValue":"a"}"#, ModelError.unstorableValue.description),
    (
      #"{"mapValue":{"fields":{"a":{"integerValue":"x"}}}}"#,
      "Invalid value at 'document.fields[1].value.map_value.fields[0].value.integer_value' (TYPE_INT64), \"x\""
    ),
    (
      #"{"mapValue":{"feilds":{}}}"#,
      #"Invalid JSON payload received. Unknown name "feilds" at 'document.fields[1].value.map_value': "#
        + "Cannot find field."
    ),
    (
      #"{"arrayValue":{"values":[{"nullValue":null},{"integerValue":"x"}]}}"#,
      "Invalid value at 'document.fields[1].value.array_value.values[1].integer_value' (TYPE_INT64), \"x\""
    ),
    (#"{"arrayValue":{"values":[{"arrayValue":{}}]}}"#, "Nested arrays are not allowed"),
    (
      #"{"geoPointValue":{"latitude":"x"}}"#,
      "Invalid value at 'document.fields[1].value.geo_point_value.latitude' (TYPE_DOUBLE), \"x\""
    ),
    (#"{"geoPointValue":{"latitude":91}}"#, "Geo point latitude '91.0' outside permitted range -90.0 to 90.0."),
    (
      #"{"geoPointValue":{"longitude":"NaN"}}"#,
      "Geo point longitude 'nan' outside permitted range -180.0 to 180.0."
    ),
    (
      #"{"referenceValue":"projects/p/databases/d/documents/a"}"#,
      #"Document name "projects/p/databases/d/documents/a" lacks "/" at index 34."#
    ),
    (#"{"referenceValue":"a/b"}"#, #"Document name "a/b" lacks "projects" at index 0."#),
    (#"{"mapValue":{"fields":{"__x__":{"nullValue":null}}}}"#, "field name __x__ is reserved"),
    (#"{"mapValue":{"fields":{"":{"nullValue":null}}}}"#, "The property.name is the empty string."),
  ]

  @Test(arguments: refused.indices)
  func refusesInvalidValues(row: Int) {
    let (text, expected) = Self.refused[row]
    let body = #"{"name":"x","fields":{"e":{"nullValue":null},"f":\#(text)}}"#
    let thrown = message { () throws(WireError) in
      try decoding(body) { (decoder, root) throws(WireError) in
        decoder.enter("document")
        return try decoder.document(root)
      }
    }
    #expect(thrown == expected)
  }

  @Test func errorsQuoteLongTextsInPart() {
    let text = String(repeating: "é", count: 5000)
    let thrown = message { () throws(WireError) in try value(json: "{\"integerValue\":\"\(text)\"}") }
    #expect(thrown.utf8.count < 300)
    #expect(thrown.hasSuffix("é…\""))
  }

  static let malformed: [(String, String)] = [
    ("", "Invalid JSON payload received. Unexpected end of string. Expected a value."),
    ("   ", "Invalid JSON payload received. Unexpected end of string. Expected a value."),
    ("{", "Invalid JSON payload received. Unexpected token."),
    ("{} {}", "Invalid JSON payload received. Unexpected token."),
    ("{'a':1}", "Invalid JSON payload received. Unexpected token."),
    (#"{"a":tru}"#, "Invalid JSON payload received. Unexpected token."),
    (#"{"a":01}"#, "Invalid JSON payload received. Unable to parse number."),
    (#"{"a":1e999}"#, "Invalid JSON payload received. Unable to parse number."),
    (#"{"a":"x"#, "Invalid JSON payload received. Malformed string: closing quote or legal escape expected."),
    (#"{"a":"\q"}"#, "Invalid JSON payload received. Malformed string: closing quote or legal escape expected."),
    (#"{"a":"\ud800"}"#, "Invalid JSON payload received. Malformed string: closing quote or legal escape expected."),
    ("{\"a\":\"\n\"}", "Invalid JSON payload received. Malformed string: closing quote or legal escape expected."),
    (
      String(repeating: "[", count: 300) + String(repeating: "]", count: 300),
      "Invalid JSON payload received. Message too deep. Max recursion depth of 256 reached."
    ),
  ]

  @Test(arguments: malformed.indices)
  func explainsMalformedText(row: Int) {
    let (text, expected) = Self.malformed[row]
    #expect(message { () throws(WireError) in try fields(json: text) } == expected)
  }

  @Test func refusesInvalidUTF8() {
    let bytes = Array(#"{"a":{"stringValue":""#.utf8) + [0xC3, 0x28] + Array("\"}}".utf8)
    let thrown = message { () throws(WireError) in
      try decoding(bytes) { (decoder, root) throws(WireError) in try decoder.fields(root) }
    }
    #expect(thrown == "Invalid JSON payload received. Encountered non UTF-8 code points.")
    // A lone low surrogate cannot be encoded in UTF-8 either.
    #expect(throws: WireError.self) { try fields(json: #"{"a":{"stringValue":"\udc00"}}"#) }
    #expect(throws: WireError.self) { try fields(json: #"{"a\udc00":{"stringValue":""}}"#) }
  }

  @Test func acceptsTwentyLevelsAndNoMore() {
    func nested(_ depth: Int) -> String {
      let head = String(repeating: #"{"mapValue":{"fields":{"a":"#, count: depth)
      return "{\"f\":\(head){\"nullValue\":null}\(String(repeating: "}}}", count: depth))}"
    }
    #expect(throws: Never.self) { try fields(json: nested(20)) }
    #expect(throws: WireError.model(.tooDeep(field: "f"))) { try fields(json: nested(21)) }
    #expect(throws: WireError.self) { try fields(json: nested(100_000)) }
  }

  @Test func refusesTextBeyondTheLimit() {
    let document = JSONDocument(bytesMax: 20_000)
    let text = Array("[\"\(String(repeating: "x", count: 20_000))\"]".utf8)
    #expect(throws: WireError.invalidJSON("Payload is longer than 20000 bytes.")) {
      try text.withRawBytes { (buffer) throws(WireError) in try document.withParsed(buffer) { _ in } }
    }
  }

  @Test func readsPaddedTextInPlace() throws {
    let text = Array(#"{"a":{"integerValue":"7"}}"#.utf8)
    let padded = text + [UInt8](repeating: 0x5A, count: JSONDocument.paddingBytes)
    let document = JSONDocument()
    let decoder = JSONMessageDecoder()
    let fields = try padded.withRawBytes { (buffer) throws(WireError) in
      let body = UnsafeRawBufferPointer(rebasing: buffer[..<text.count])
      return try document.withParsed(body, isPadded: true) { (root) throws(WireError) in try decoder.fields(root) }
    }
    #expect(fields == EncodedFields(MapValue([("a", .integer(7))])))
  }
}

@Suite struct JSONPropertyTests {
  @Test(arguments: 0..<10)
  func treesSurviveJSON(round: Int) throws {
    let seed = UInt64(round) + 9000
    var random = SplitMix(seed: seed)
    for _ in 0..<60 {
      let map = random.mapValue(depth: -2)
      let stored = EncodedFields(map)
      let text = try stored.withMap { (view) throws(WireError) in
        var writer = JSONWriter(random.chance(oneIn: 2) ? .pretty : .compact)
        try DocumentJSON.append(fields: view, to: &writer)
        return writer.bytes
      }
      let back = try decoding(text) { (decoder, root) throws(WireError) in try decoder.fields(root) }
      #expect(back == stored, "seed \(seed): \(map)")
    }
  }

  @Test(arguments: 0..<8)
  func keyOrderDoesNotMatter(round: Int) throws {
    let seed = UInt64(round) + 300
    var random = SplitMix(seed: seed)
    for _ in 0..<40 {
      let map = random.mapValue(depth: -2)
      let text = Self.shuffled(map, &random)
      #expect(try fields(json: text) == EncodedFields(map), "seed \(seed): \(text)")
    }
  }

  /// Returns the entries of a map in random order at every depth. Some keys occur twice, the right value last.
  static func shuffled(_ map: MapValue, _ random: inout SplitMix) -> String {
    var members: [String] = []
    for (key, value) in map.entries.shuffled(using: &random) {
      let name = json { $0.string(key) }
      if random.chance(oneIn: 5) { members.append("\(name):{\"nullValue\":null}") }
      members.append("\(name):\(shuffled(value, &random))")
    }
    return "{" + members.joined(separator: ", ") + "}"
  }

  static func shuffled(_ value: Value, _ random: inout SplitMix) -> String {
    switch value {
    case .map(let map): "{\"mapValue\":{\"fields\":\(shuffled(map, &random))}}"
    case .array(let elements):
      "{\"arrayValue\":{\"values\":[\(elements.map { shuffled($0, &random) }.joined(separator: ","))]}}"
    default: (try? json(value)) ?? ""
    }
  }

  @Test(arguments: 0..<8)
  func damagedTextNeverTraps(round: Int) throws {
    let seed = UInt64(round) + 700
    var random = SplitMix(seed: seed)
    let pieces = [
      "{", "}", "[", "]", "\"", ",", ":", "null", "1e5", "99999999999999999999", "\\u0000", "\\ud800", "é",
      "\"stringValue\":", "\"mapValue\":{\"fields\":", "\"arrayValue\":{\"values\":[",
    ]
    for _ in 0..<200 {
      var text = Array(Self.shuffled(random.mapValue(depth: -2), &random).utf8)
      for _ in 0..<Int.random(in: 1...4, using: &random) where !text.isEmpty {
        let at = Int.random(in: 0..<text.count, using: &random)
        switch Int.random(in: 0...3, using: &random) {
        case 0: text[at] = UInt8.random(in: 0...255, using: &random)
        case 1: text.remove(at: at)
        case 2: text.removeSubrange(at..<min(text.count, at + Int.random(in: 1...20, using: &random)))
        default: text.insert(contentsOf: Array(random.pick(pieces).utf8), at: at)
        }
      }
      text.withUnsafeBytes { WireFuzz.json($0) }
    }
  }

  @Test func pathsNeverTrap() {
    var random = SplitMix(seed: 12)
    let alphabet = Array("ab_1.`\\/:-TZ+20é".utf8)
    for _ in 0..<3000 {
      var text: [UInt8] = (0..<Int.random(in: 0...14, using: &random)).map { _ in random.pick(alphabet) }
      if random.chance(oneIn: 3) { text = Array("projects/p/databases/d/documents/".utf8) + text }
      text.withUnsafeBytes { WireFuzz.path($0) }
    }
  }
}
