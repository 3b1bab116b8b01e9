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
    "allow ", "match /", "{x=**}", "$(", "/a/", "function ", "let ", "return ", "if ", " in ", " is ", "&&", "||", "!", "?", ":",
    "request.resource.data", "resource.data", ".toSet()", ".keys()", "[1:", "(((((((((", "))))", "'", "\\u", "/*", "*/", "//",
    "9223372036854775808", "1.", "get(", "debug(", "duration.value(", "[[[[[[", "{'a':", "- -", "service cloud.firestore {",
  ]

  private static func texts(_ texts: [String]) -> [[UInt8]] { texts.map { Array($0.utf8) } }
}
