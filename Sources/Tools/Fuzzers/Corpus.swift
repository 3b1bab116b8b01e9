import DocumentModel
import FirebaseExport
import WireFormat

/// The initial inputs: small, and together covering every kind of value, path and message.
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
    let damaged = EncodedFields(MapValue([("h", .geoPoint(GeoPoint(latitude: 45.5, longitude: .nan)))])).bytes
    return [whole] + single + [whole.map { $0 ^ 0x80 }, damaged]
  }()

  /// Requests in gRPC's format: writes with a mask and with transforms, a query with every clause, and aggregations.
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
    var listen: [UInt8] = []
    ProtobufWriter.message(2, to: &listen) { target in
      ProtobufWriter.message(2, to: &target) { followed in
        ProtobufWriter.string(1, "projects/p/databases/(default)/documents", to: &followed)
        ProtobufWriter.bytes(2, query, to: &followed)
      }
      ProtobufWriter.string(4, "token", to: &target)
      ProtobufWriter.int64(5, 2, to: &target)
      ProtobufWriter.message(12, to: &target) { ProtobufWriter.int64(1, 3, to: &$0) }
    }
    var follow: [UInt8] = []
    ProtobufWriter.message(2, to: &follow) { target in
      ProtobufWriter.message(3, to: &target) { ProtobufWriter.string(2, name, to: &$0) }
      ProtobufWriter.int64(5, 1, to: &target)
    }
    var batch: [UInt8] = []
    ProtobufWriter.string(1, "projects/p/databases/(default)", to: &batch)
    ProtobufWriter.bytes(3, update, to: &batch)
    ProtobufWriter.string(4, "token", to: &batch)
    return [update, delete, query, aggregation, listen, follow, batch]
  }()

  /// Batches of the commit log: one operation of each kind, and all together.
  static let batches: [[UInt8]] = [
    [1], [1, 1, 1, 2, 97, 98, 99], [1, 2, 1, 97], [1, 3, 1, 2, 97, 98, 99],
    [1, 1, 1, 0, 97, 2, 1, 97, 3, 0, 1, 98, 1, 2, 1, 97, 98, 99],
  ]

  static let json = texts([
    #"{"a": {"stringValue": "x"}, "b": {"integerValue": "-12"}, "c": {"doubleValue": 1.5e3}, "d": {"nullValue": null}}"#,
    #"{"t": {"timestampValue": "2025-03-27T14:30:00.123456Z"}, "y": {"bytesValue": "AP8="}, "z": {"booleanValue": true}}"#,
    #"{"g": {"geoPointValue": {"latitude": 45.5, "longitude": -9}}, "n": {"doubleValue": "NaN"}, "i": {"doubleValue": "Infinity"}}"#,
    #"{"r": {"referenceValue": "projects/p/databases/(default)/documents/c/d"}}"#,
    #"{"l": {"arrayValue": {"values": [{"integerValue": 1}, {"mapValue": {"fields": {"k": {"stringValue": "\u00e9\n"}}}}]}}}"#,
    #"[{"update": {"name": "projects/p/databases/(default)/documents/c/d", "fields": {"a": {"integerValue": "1"}}}, "updateMask": {"fieldPaths": ["a", "b.`c d`"]}, "currentDocument": {"exists": true}}]"#,
    #"[{"delete": "projects/p/databases/(default)/documents/c/d", "currentDocument": {"updateTime": "2025-03-27T14:30:00Z"}}]"#,
    #"[{"transform": {"document": "projects/p/databases/(default)/documents/c/d", "fieldTransforms": [{"fieldPath": "n", "increment": {"integerValue": "2"}}, {"fieldPath": "s", "setToServerValue": "REQUEST_TIME"}, {"fieldPath": "l", "appendMissingElements": {"values": [{"nullValue": null}]}}]}}]"#,
    #"{"database": "projects/p/databases/(default)", "addTarget": {"query": {"structuredQuery": {"from": [{"collectionId": "c"}], "orderBy": [{"field": {"fieldPath": "__name__"}, "direction": "ASCENDING"}]}, "parent": "projects/p/databases/(default)/documents"}, "targetId": 2, "resumeToken": "AP8=", "expectedCount": 3}}"#,
    #"{"addTarget": {"documents": {"documents": ["projects/p/databases/(default)/documents/c/d"]}, "targetId": 1, "once": true}, "labels": {"a": "b"}}"#,
    #"{"streamToken": "MA==", "writes": [{"update": {"name": "projects/p/databases/(default)/documents/c/d"}}]}"#,
  ])

  static let jsonTokens = [
    "{", "}", "[", "]", ",", ":", "\"", "null", "true", "1e999", "-0", "\\ud800", "\\u0000", "9223372036854775808",
    "\"stringValue\"", "\"mapValue\"", "\"fields\"", "\"arrayValue\"", "\"values\"", "\"integerValue\"", "[[[[[[[[",
    "{\"a\":",
  ]

  static let paths = texts([
    "a.b.c", "`a.b`.c", "a\\`b", "field_1", "projects/p/databases/(default)/documents/users/u1/habits/h1",
    "2025-03-27T14:30:00.123456Z", "2025-03-27T14:30:00+02:00", "0001-01-01T00:00:00Z", "__id7__",
    "__id-9223372036854775808__",
  ])

  static let http = texts([
    "\u{3}GET /v1/projects/p?x=%20 HTTP/1.1\r\nHost: h\r\nAccept-Encoding: gzip, br;q=0\r\n\r\n",
    "\u{1}POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.1\r\nHost: h\r\n\r\n",
    "\u{7}POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n5;a=b\r\nhello\r\n0\r\nT: v\r\n\r\n",
    "\u{5}POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
    "\u{2}HEAD / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n",
  ])

  /// Connections, each preceded by the size of its pieces.
  static let http2: [[UInt8]] = {
    func frame(_ type: UInt8, _ flags: UInt8, _ stream: UInt8, _ payload: [UInt8]) -> [UInt8] {
      [0, UInt8(payload.count >> 8), UInt8(payload.count & 255), type, flags, 0, 0, 0, stream] + payload
    }
    // Encodes GET or POST, http, a path that is not in the static table, and two fields, one of which enters the
    // dynamic table.
    func head(_ method: UInt8, _ path: String) -> [UInt8] {
      [method, 0x86, 0x04, UInt8(path.utf8.count)] + Array(path.utf8) + [
        0x40, 1, 0x61, 2, 0x62, 0x63, 0x00, 1, 0x64, 0,
      ]
    }
    let settings = frame(4, 0, 0, [0, 4, 0, 0, 1, 0]) + frame(4, 1, 0, [])
    let connections: [[UInt8]] = [
      frame(1, 5, 1, head(0x82, "/abc")) + frame(1, 5, 3, head(0x82, "/")),
      frame(1, 4, 1, head(0x83, "/abc")) + frame(0, 0, 1, [1, 2]) + frame(0, 9, 1, [1, 3, 0]),
      frame(1, 4, 1, head(0x83, "/")) + frame(0, 0, 1, [1, 2]) + frame(8, 0, 1, [0, 0, 1, 0]) + frame(0, 1, 1, [4]),
      frame(1, 4, 1, head(0x83, "/a")) + frame(0, 1, 1, [1, 2]) + frame(3, 0, 1, [0, 0, 0, 8]),
      frame(1, 0x25, 1, [0x80, 0, 0, 0, 16] + head(0x82, "/ab")) + frame(2, 0, 3, [0, 0, 0, 0, 1]),
      frame(1, 1, 1, [0x82, 0x86]) + frame(9, 4, 1, [0x84]) + frame(6, 0, 0, [1, 2, 3, 4, 5, 6, 7, 8]),
      frame(1, 4, 1, head(0x83, "/")) + frame(1, 5, 1, [0x00, 1, 0x61, 0]) + frame(7, 0, 0, [0, 0, 0, 0, 0, 0, 0, 0]),
      frame(1, 5, 1, [0x3f, 0x09, 0x82, 0x86, 0x84, 0x41, 0x83, 0x1c, 0x64, 0x5d]) + frame(8, 0, 0, [0, 0, 1, 0]),
    ]
    return connections.enumerated().map { [UInt8($0.offset * 9)] + settings + $0.element }
  }()

  static let fixtures = texts([
    #"{"$collections": ["a", "a/*/b"], "a": {"x": {"n": 1, "s": "t", "b": {"y": {"d": {"$double": "NaN"}}}}, "z": {"$missing": true, "b": {"q": {}}}}}"#,
    #"{"$collections": ["a"], "a": {"x": {"t": {"$timestamp": "2025-03-27T14:30:00Z"}, "r": {"$ref": "a/x"}, "y": {"$bytes": "AP8="}, "g": {"$geo": [1, 2]}, "v": {"$vector": [1, 2]}, "$$k": [1, 2.5, null, true, [1]]}}}"#,
    #"{"$collections": ["a"], "a": {"x": {"$fields": {"b": 1}, "m": {"n": {"o": "p"}}}}}"#,
    #"{"__collections__": {"a": {"x": {"n": 1, "__collections__": {"b": {"y": {"__datatype__": "timestamp"}}}}}}}"#,
    "{\"path\": \"a/x\", \"fields\": {\"n\": 1}}\n{\"path\": \"a/y\", \"fields\": {}}\n",
  ])

  /// Entities of every kind of value, and an output file with the first of them.
  static let exports: [[UInt8]] = {
    let entities = protobuf.dropLast().map {
      ExportFuzz.sample("users/u1/habits/__id7__", EncodedFields(canonical: $0))
    }
    return entities + [ExportFuzz.outputFile(entities[0])]
  }()

  /// A tar archive and a zip archive with one stored file each, and a gzip member.
  static let archives: [[UInt8]] = {
    var header = [UInt8](repeating: 0, count: 512)
    func put(_ text: String, at offset: Int) {
      header.replaceSubrange(offset..<offset + text.utf8.count, with: text.utf8)
    }
    put("a/output-0", at: 0)
    put("00000000003", at: 124)
    put("0", at: 156)
    put("ustar", at: 257)
    put("        ", at: 148)
    let sum = header.reduce(0) { $0 + Int($1) }
    put(String(repeating: "0", count: 6 - String(sum, radix: 8).count) + String(sum, radix: 8) + "\0 ", at: 148)
    let tar = header + Array("abc".utf8) + [UInt8](repeating: 0, count: 509 + 1024)
    // The local header, the content "abc", the directory and its end.
    let fields: [UInt8] = [20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xC2, 0x41, 0x24, 0x35, 3, 0, 0, 0, 3, 0, 0, 0, 1, 0, 0, 0]
    let local: [UInt8] = [0x50, 0x4B, 3, 4] + fields + Array("aabc".utf8)
    let entry: [UInt8] = [0x50, 0x4B, 1, 2, 20, 0] + fields + [UInt8](repeating: 0, count: 14) + Array("a".utf8)
    let end: [UInt8] = [
      0x50, 0x4B, 5, 6, 0, 0, 0, 0, 1, 0, 1, 0, UInt8(entry.count), 0, 0, 0, UInt8(local.count), 0, 0, 0, 0, 0,
    ]
    let gzip: [UInt8] = [31, 139, 8, 0, 0, 0, 0, 0, 0, 3, 75, 76, 74, 6, 0, 0xC2, 0x41, 0x24, 0x35, 3, 0, 0, 0]
    return [tar, local + entry + end, gzip]
  }()

  static let records: [[UInt8]] =
    texts([
      #"[{"id": "a", "at": {"_seconds": 1, "_nanoseconds": 0}, "p": {"_latitude": 1, "_longitude": 2}}, {"id": "b"}]"#,
      #"{"users": [{"_id": 1, "r": {"_firestore": {"projectId": "p"}, "_path": {"segments": ["a", "b"]}}}], "b": []}"#,
      #"{"n": 1, "b": {"type": "Buffer", "data": [1, 2]}}"# + "\n" + #"{"n": 2, "v": {"_values": [1, 2]}}"#,
      "id,n:int,t:timestamp,g:geo,j:json\na,1,2025-01-01,\"1,2\",\"[1, {\"\"$ref\"\": \"\"a/b\"\"}]\"\nb,,,,\n",
      "__path__;name\r\na/b;\"x;\"\"y\"\"\r\n\"\r\n",
    ]) + [
      // gzip and zstd of `[{"id": 1}]`.
      [
        0x1F, 0x8B, 0x08, 0x00, 0x00, 0x00, 0x00, 0x00, 0x02, 0x03, 0x8B, 0xAE, 0x56, 0xCA, 0x4C, 0x51, 0xB2, 0x52,
        0x30, 0xAC, 0x8D, 0x05, 0x00, 0xD1, 0xE2, 0xCE, 0x89, 0x0B, 0x00, 0x00, 0x00,
      ],
      [0x28, 0xB5, 0x2F, 0xFD, 0x00, 0x58, 0x59, 0x00, 0x00] + Array(#"[{"id": 1}]"#.utf8),
    ]

  static let rulesets = texts([
    "rules_version = '2'; service cloud.firestore { match /databases/{d}/documents { function own(id) { let u = request.auth.uid; return u == id; } match /users/{id} { allow read, write: if own(id); match /notes/{n=**} { allow get: if exists(/databases/$(d)/documents/users/$(id)); } } } }",
    "service cloud.firestore { match /databases/{d}/documents/{x=**} { allow read: if request.time < timestamp.date(2030, 1, 1) } }",
    "rules_version = '2'; service cloud.firestore { match /{p=**}/t/{id} { allow list: if resource.data.a == 1 && request.query.limit <= 10; allow create: if request.resource.data.keys().hasOnly(['a']); } } service firebase.storage { match /b/{b}/o { allow read; } }",
  ])

  static let ruleExpressions = texts([
    "resource.data.l[0] == 1 ? f(1) : 'a' + 'b' in ['ab']",
    "request.resource.data.diff(resource.data).affectedKeys().hasOnly(['a']) && !(1 / 0 == 1)",
    "'a1b2'.split('[0-9]').join('-').replace('(a)', '$1$1').matches('a+.*') || b'\\xff'.toHexString() is string",
    "timestamp.value('2020-01-01T00:00:00Z') + duration.value(1, 'd') > request.time.date()",
    "(/a/{x=**}/$(1)).bind({'x': /p/q})[0:2] == path('/a/p') || {'a': {'b': 1}}.get(['a', 'b'], 0) == 1",
    "get(/databases/$(database)/documents/t/$(id)).data.a == math.pow(2, 3) || -9223372036854775808 % -1 == 0",
    "hashing.sha256('\\u00e9\\ud83d').toBase64()[0:5].size() == latlng.value(1, 2).distance(resource.data.g)",
  ])

  static let ruleTokens = [
    "allow ", "match /", "{x=**}", "$(", "/a/", "function ", "let ", "return ", "if ", " in ", " is ", "&&", "||", "!",
    "?", ":",
    "request.resource.data", "resource.data", ".toSet()", ".keys()", "[1:", "(((((((((", "))))", "'", "\\u", "/*", "*/",
    "//",
    "9223372036854775808", "1.", "get(", "debug(", "duration.value(", "[[[[[[", "{'a':", "- -",
    "service cloud.firestore {",
  ]

  private static func texts(_ texts: [String]) -> [[UInt8]] { texts.map { Array($0.utf8) } }

  static let globTokens = [
    "**", "*", "?", "@(", "!(", "+(", ")", "|", "{", ",", "}", "[", "]", ":a", "/", "\\", "(?P<a>",
  ]

  static let hosting: [[UInt8]] = [
    #"{"hosting": {"public": "p", "cleanUrls": true, "trailingSlash": false, "ignore": ["**/.*", "a/**"]}}"#,
    #"{"hosting": [{"target": "a", "public": "p", "i18n": {"root": "/l"}}, {"site": "b", "public": "q"}]}"#,
    #"{"hosting": {"redirects": [{"source": "/blog/:a*", "destination": "/:a", "type": 302}]}}"#,
    #"{"hosting": {"redirects": [{"regex": "/(?<a>[^/]+)/(.*)", "destination": "https://x.y/:a/:2?z"}]}}"#,
    #"{"hosting": {"rewrites": [{"source": "/a/!(*.js|*.css)", "function": "f"}, {"source": "**", "destination": "/i"}]}}"#,
    #"{"hosting": {"headers": [{"source": "**/*.@(a|b)", "headers": [{"key": "A", "value": "b"}]}]}} // c"#,
  ].map { Array($0.utf8) }

  static let hostedPaths: [[UInt8]] = [
    "/", "/a/b.html", "/%2e%2e/etc/passwd", "/a%00b", "//x", "/%E4%BD%A0", "fr-CA, en;q=0.5", "/{a,b/**}/[a-c]?",
    "/:a/*",
  ].map { Array($0.utf8) }
}
