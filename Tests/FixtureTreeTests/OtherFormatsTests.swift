import FixtureTree
import Testing

@Suite struct OtherFormatsTests {
  @Test func readsTreesOfCollections() throws {
    let tree = """
      {"__collections__": {"users": {"u1": {"name": "x", "$odd": 1,
        "at": {"__datatype__": "timestamp", "value": {"_seconds": 1743085800, "_nanoseconds": 5000}},
        "where": {"__datatype__": "geopoint", "value": {"_longitude": 2, "_latitude": 1.5}},
        "list": [{"__datatype__": "documentReference", "value": "users/u2"}],
        "raw": {"__datatype__": "bytes", "value": "AAE="},
        "__collections__": {"habits": {"Running": {"goal": 1.5, "__collections__": {}}}}}, "u2": {}}, "empty": {}}}
      """
    let expected = [
      "users/u1/habits/Running {goal: double(1.5)}",
      "users/u1 {$odd: 1, at: time(2025-03-27T14:30:00.000005Z), "
        + "list: [ref(projects/demo/databases/(default)/documents/users/u2)], name: \"x\", raw: bytes([0, 1]), "
        + "where: geo(1.5, 2.0)}",
      "users/u2 {}",
    ]
    #expect(try documents(tree).map(line) == expected)
    #expect(try documents(tree, chunkBytesMax: 1).map(line) == expected)
  }

  @Test func readsLinesOfBothForms() throws {
    let lines = """
      {"path": "users/u1", "fields": {"n": {"$double": 1}, "$$x": [1]}}

      {"name": "projects/other/databases/(default)/documents/users/u2/habits/a b", "fields": {
        "s": {"stringValue": "x"}, "i": {"integerValue": "7"}, "j": {"integerValue": 8}, "d": {"doubleValue": 1},
        "n": {"doubleValue": "NaN"}, "b": {"booleanValue": false}, "z": {"nullValue": null},
        "t": {"timestampValue": "2025-01-01T00:00:00Z"}, "g": {"geoPointValue": {"latitude": 1}},
        "y": {"bytesValue": "AA=="}, "a": {"arrayValue": {"values": [{"integerValue": "1"}]}}, "e": {"arrayValue": {}},
        "m": {"mapValue": {"fields": {"k": {"stringValue": ""}}}}, "o": {"mapValue": {}},
        "r": {"referenceValue": "projects/p/databases/d/documents/c/d"}},
        "createTime": "2025-01-01T00:00:00Z", "updateTime": "2025-01-01T00:00:00Z"}
      {"path": "users/u3"}
      """
    let expected = [
      "users/u1 {$x: [1], n: double(1.0)}",
      "users/u2/habits/a b {a: [1], b: false, d: double(1.0), e: [], g: geo(1.0, 0.0), i: 7, j: 8, m: {k: \"\"}, "
        + "n: double(nan), o: {}, r: ref(projects/p/databases/d/documents/c/d), s: \"x\", "
        + "t: time(2025-01-01T00:00:00Z), y: bytes([0]), z: null}",
      "users/u3 {}",
    ]
    #expect(try documents(lines).map(line) == expected)
    #expect(try documents(lines, chunkBytesMax: 1).map(line) == expected)
  }

  static let refused: [(format: FixtureReader.Format, text: String, error: String)] = [
    (
      .collectionsTree, "{\"name\": 1}",
      "x.json:1:2: the root can contain only \"__collections__\"; move fields into a document"
    ),
    (
      .collectionsTree, "{\"__collections__\": {\"a\": {\"x\": {\"f\": {\"__datatype__\": \"money\", \"value\": 1}}}}}",
      "x.json:1:56: a/x: field \"f\": the \"__datatype__\" \"money\" is unknown; write timestamp, geopoint, "
        + "documentReference or bytes"
    ),
    (
      .collectionsTree, "{\"__collections__\": {\"a\": {\"x\": 1}}}",
      "x.json:1:33: a/x: a document must be an object, {…}"
    ),
    (
      .documentLines, "{\"path\": \"a\"}",
      "x.json:1:10: a: the path is not that of a document; write pairs of collection and document ids, such as "
        + "\"users/u1\""
    ),
    (.documentLines, "{\"fields\": {}}", "x.json:1:2: \"path\" or \"name\" must come before \"fields\""),
    (
      .documentLines, "{}",
      "x.json:1:2: the line lacks \"path\" or \"name\"; for lines without paths, give --collection"
    ),
    (
      .documentLines, "{\"path\": \"a/b\", \"x\": 1}",
      "x.json:1:17: a/b: unknown key \"x\"; a line has \"path\" or \"name\", and \"fields\" for the document's fields; "
        + "for lines without paths, give --collection"
    ),
    (
      .documentLines,
      "{\"path\": \"a/b\"}\n{\"name\": \"projects/p/databases/d/documents/a/b\", \"fields\": {\"f\": 1}}",
      "x.json:2:66: a/b: field \"f\": a document with \"name\" needs typed values such as {\"stringValue\": \"x\"}; "
        + "use \"path\" for plain values"
    ),
    (
      .documentLines, "{\"name\": \"a/b\"}",
      "x.json:1:10: Document name \"a/b\" lacks \"projects\" at index 0. For lines without paths, give --collection."
    ),
  ]

  @Test(arguments: refused.indices)
  func refusesBrokenFiles(index: Int) {
    let (format, text, expected) = Self.refused[index]
    let error = #expect(throws: FixtureTreeError.self) { try documents(text, format: format) }
    #expect(error?.description == expected)
  }

  static let formats: [(name: String, text: String, format: FixtureReader.Format)] = [
    ("a.json", "{\"$collections\": [\"path\"]}", .fixtureTree),
    ("a.json", "{\"path\": {\"x\": {}}}", .fixtureTree),
    ("a.json", "{\"path\": \"a/b\"}", .documentLines),
    ("-", "{\"name\": \"projects/p", .fixtureTree),
    ("-", "{\"name\": \"projects/p/databases/d/documents/a/b\"}", .documentLines),
    ("a.jsonl", "", .documentLines),
    ("a.ndjson", "{\"fields\": {}}", .documentLines),
    ("a.json", " \n{\"__collections__\": {}}", .collectionsTree),
    ("a.json", "nonsense", .fixtureTree),
  ]

  @Test(arguments: formats.indices)
  func findsTheFormat(index: Int) throws {
    let (name, text, format) = Self.formats[index]
    let reader = try FixtureReader(ByteSource(Array(text.utf8), chunkBytesMax: 2, name: name), database: demo)
    #expect(reader.format == format)
  }
}
