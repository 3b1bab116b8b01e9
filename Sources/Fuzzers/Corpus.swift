import DocumentModel
import WireFormat

/// Inputs to start from: small, and together touching every kind of value, path and message.
enum Corpus {
  static let protobuf: [[UInt8]] = {
    let fields = MapValue([
      ("a", .string("text")), ("b", .integer(-5)), ("c", .double(0.5)), ("d", .boolean(true)), ("e", .null),
      ("f", .timestamp(Timestamp(uncheckedMicroseconds: 1_743_085_800_000_000))), ("g", .bytes([0, 255])),
      ("h", .geoPoint(GeoPoint(latitude: 45.5, longitude: -9.25))), ("i", .vector([1, 2])),
      ("j", .array([.integer(1), .string("x"), .map(MapValue([("k", .null)]))])),
      ("k", .map(MapValue([("inner", .map(MapValue([("deep", .double(.nan))])))]))),
    ])
    let whole = EncodedFields(fields).bytes
    // Each field alone too, so that short inputs exist.
    let single = fields.entries.map { EncodedFields(MapValue([($0.key, $0.value)])).bytes }
    return [whole] + single + [whole.map { $0 ^ 0x80 }]
  }()

  /// Requests as gRPC has them: writes with a mask and with transforms, a query with everything, aggregations.
  static let messages: [[UInt8]] = {
    let name = "projects/p/databases/(default)/documents/c/d"
    func field(_ path: String, to out: inout [UInt8]) {
      ProtobufWriter.message(1, to: &out) { ProtobufWriter.string(2, path, to: &$0) }
    }
    var update: [UInt8] = []
    ProtobufWriter.message(1, to: &update) { document in
      ProtobufWriter.string(1, name, to: &document)
      document += protobuf[0]
    }
    ProtobufWriter.message(3, to: &update) { ProtobufWriter.string(1, "a.`b c`", to: &$0) }
    ProtobufWriter.message(4, to: &update) { ProtobufWriter.bool(1, true, to: &$0) }
    for kind in 3...5 {
      ProtobufWriter.message(7, to: &update) { transform in
        ProtobufWriter.string(1, "t", to: &transform)
        ProtobufWriter.message(kind, to: &transform) { ValueCodec.append(.integer(2), to: &$0) }
      }
    }
    var delete: [UInt8] = []
    ProtobufWriter.string(2, name, to: &delete)
    ProtobufWriter.message(4, to: &delete) {
      ProtobufWriter.timestamp(2, Timestamp(uncheckedMicroseconds: 1_743_085_800_000_000), to: &$0)
    }
    var query: [UInt8] = []
    ProtobufWriter.message(2, to: &query) { ProtobufWriter.string(2, "c", to: &$0) }
    ProtobufWriter.message(3, to: &query) { filter in
      ProtobufWriter.message(1, to: &filter) { composite in
        ProtobufWriter.int64(1, 2, to: &composite)
        ProtobufWriter.message(2, to: &composite) { filter in
          ProtobufWriter.message(2, to: &filter) { comparison in
            field("a", to: &comparison)
            ProtobufWriter.int64(2, 8, to: &comparison)
            ProtobufWriter.message(3, to: &comparison) { ValueCodec.append(.array([.integer(1)]), to: &$0) }
          }
        }
      }
    }
    ProtobufWriter.message(4, to: &query) { order in
      field("a", to: &order)
      ProtobufWriter.int64(2, 2, to: &order)
    }
    ProtobufWriter.message(7, to: &query) { cursor in
      ProtobufWriter.message(1, to: &cursor) { ValueCodec.append(.reference(name), to: &$0) }
    }
    ProtobufWriter.message(9, to: &query) { nearest in
      field("v", to: &nearest)
      ProtobufWriter.message(2, to: &nearest) { ValueCodec.append(.vector([1, 2]), to: &$0) }
      ProtobufWriter.int64(3, 1, to: &nearest)
    }
    var aggregation: [UInt8] = []
    ProtobufWriter.bytes(1, query, to: &aggregation)
    ProtobufWriter.message(3, to: &aggregation) { sum in
      ProtobufWriter.message(2, to: &sum) { field("a", to: &$0) }
      ProtobufWriter.string(7, "alias", to: &sum)
    }
    return [update, delete, query, aggregation]
  }()

  static let json = texts([
    #"{"a": {"stringValue": "x"}, "b": {"integerValue": "-12"}, "c": {"doubleValue": 1.5e3}, "d": {"nullValue": null}}"#,
    #"{"t": {"timestampValue": "2025-03-27T14:30:00.123456Z"}, "y": {"bytesValue": "AP8="}, "z": {"booleanValue": true}}"#,
    #"{"g": {"geoPointValue": {"latitude": 45.5, "longitude": -9}}, "n": {"doubleValue": "NaN"}, "i": {"doubleValue": "Infinity"}}"#,
    #"{"r": {"referenceValue": "projects/p/databases/(default)/documents/c/d"}}"#,
    #"{"l": {"arrayValue": {"values": [{"integerValue": 1}, {"mapValue": {"fields": {"k": {"stringValue": "\u00e9\n"}}}}]}}}"#,
    #"[{"update": {"name": "projects/p/databases/(default)/documents/c/d", "fields": {"a": {"integerValue": "1"}}}, "updateMask": {"fieldPaths": ["a", "b.`c d`"]}, "currentDocument": {"exists": true}}]"#,
    #"[{"delete": "projects/p/databases/(default)/documents/c/d", "currentDocument": {"updateTime": "2025-03-27T14:30:00Z"}}]"#,
    #"[{"transform": {"document": "projects/p/databases/(default)/documents/c/d", "fieldTransforms": [{"fieldPath": "n", "increment": {"integerValue": "2"}}, {"fieldPath": "s", "setToServerValue": "REQUEST_TIME"}, {"fieldPath": "l", "appendMissingElements": {"values": [{"nullValue": null}]}}]}}]"#,
  ])

  static let jsonTokens = [
    "{", "}", "[", "]", ",", ":", "\"", "null", "true", "1e999", "-0", "\\ud800", "\\u0000", "9223372036854775808",
    "\"stringValue\"", "\"mapValue\"", "\"fields\"", "\"arrayValue\"", "\"values\"", "\"integerValue\"", "[[[[[[[[", "{\"a\":",
  ]

  static let paths = texts([
    "a.b.c", "`a.b`.c", "a\\`b", "field_1", "projects/p/databases/(default)/documents/users/u1/habits/h1",
    "2025-03-27T14:30:00.123456Z", "2025-03-27T14:30:00+02:00", "0001-01-01T00:00:00Z", "__id7__", "__id-9223372036854775808__",
  ])

  static let http = texts([
    "\u{3}GET /v1/projects/p?x=%20 HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip, br;q=0\r\n\r\n",
    "\u{1}POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "\u{7}POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: v\r\n\r\n",
    "\u{5}POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    "\u{2}HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
  ])

  static let fixtures = texts([
    #"{"$collections": ["a", "a/*/b"], "a": {"x": {"n": 1, "s": "t", "b": {"y": {"d": {"$double": "NaN"}}}}, "z": {"$missing": true, "b": {"q": {}}}}}"#,
    #"{"$collections": ["a"], "a": {"x": {"t": {"$timestamp": "2025-03-27T14:30:00Z"}, "r": {"$ref": "a/x"}, "y": {"$bytes": "AP8="}, "g": {"$geo": [1, 2]}, "v": {"$vector": [1, 2]}, "$$k": [1, 2.5, null, true, [1]]}}}"#,
    #"{"$collections": ["a"], "a": {"x": {"$fields": {"b": 1}, "m": {"n": {"o": "p"}}}}}"#,
    #"{"__collections__": {"a": {"x": {"n": 1, "__collections__": {"b": {"y": {"__datatype__": "timestamp"}}}}}}}"#,
    "{\"path\": \"a/x\", \"fields\": {\"n\": 1}}\n{\"path\": \"a/y\", \"fields\": {}}\n",
  ])

  private static func texts(_ texts: [String]) -> [[UInt8]] { texts.map { Array($0.utf8) } }
}
