import DocumentModel
import FixtureTree
import Testing

@Suite struct FixtureTreeReaderTests {
  struct Case: CustomTestStringConvertible {
    let name: String
    let input: String
    let expected: [String]
    var testDescription: String { name }

    init(_ name: String, _ input: String, _ expected: [String]) {
      self.name = name
      self.input = input
      self.expected = expected
    }
  }

  static let accepted: [Case] = [
    Case("no collections", "{\"$collections\": []}", []),
    Case("an empty tree", "{}", []),
    Case("an empty collection", "{\"$collections\": [\"a\"], \"a\": {}}", []),
    Case("an empty document", "{\"$collections\": [\"a\"], \"a\": {\"x\": {}}}", ["a/x {}"]),
    Case(
      "plain values",
      """
      {"$collections": ["a"], "a": {"x": {"z": null, "b": true, "c": false, "d": -0, "e": 1.0, "f": 1e2, "g": "s",
        "h": [1, {"i": []}], "j": {}, "k": 9223372036854775807}}}
      """,
      [
        "a/x {b: true, c: false, d: 0, e: double(1.0), f: double(100.0), g: \"s\", h: [1, {i: []}], j: {}, "
          + "k: 9223372036854775807, z: null}"
      ]),
    Case(
      "special values",
      """
      {"$collections": ["a"], "a": {"x": {
        "t": {"$timestamp": "2025-03-27T15:30:00.1234567+01:00"}, "r": {"$ref": "users/u1"},
        "f": {"$ref": "projects/p/databases/d/documents/c/d"}, "b": {"$bytes": "AAH_"}, "e": {"$bytes": "AA=="},
        "g": {"$geo": [45.46, -9]}, "d": {"$double": 1}, "n": {"$double": "NaN"}, "i": {"$double": "-Infinity"},
        "z": {"$double": "-0"}, "v": {"$vector": [1, 2.5, "Infinity"]}, "w": [{"$double": 3}]}}}
      """,
      [
        "a/x {b: bytes([0, 1, 255]), d: double(1.0), e: bytes([0]), f: ref(projects/p/databases/d/documents/c/d), "
          + "g: geo(45.46, -9.0), i: double(-inf), n: double(nan), "
          + "r: ref(projects/demo/databases/(default)/documents/users/u1), t: time(2025-03-27T14:30:00.123456Z), "
          + "v: {__type__: \"__vector__\", value: [double(1.0), double(2.5), double(inf)]}, w: [double(3.0)], "
          + "z: double(-0.0)}"
      ]),
    Case(
      "subcollections before, between and after fields",
      """
      {"$collections": ["u", "u/*/h", "u/*/h/*/r"], "u": {"1": {"h": {"x": {"r": {"k": {"n": 1}}, "m": 2}}, "a": 3},
        "2": {"b": 4, "h": {}, "c": {"h": {"deep": true}}}}}
      """,
      ["u/1/h/x/r/k {n: 1}", "u/1/h/x {m: 2}", "u/1 {a: 3}", "u/2 {b: 4, c: {h: {deep: true}}}"]),
    Case(
      "a deeper pattern that implies those above it",
      "{\"$collections\": [\"u/*/h\"], \"u\": {\"1\": {\"h\": {\"2\": {}}}}}",
      ["u/1/h/2 {}", "u/1 {}"]),
    Case(
      "a named document in a pattern",
      """
      {"$collections": ["u/1/h", "u/*/g"], "u": {"1": {"h": {"a": {}}, "g": {"b": {}}},
        "2": {"h": {"a": 1}, "g": {"c": {}}}}}
      """, ["u/1/h/a {}", "u/1/g/b {}", "u/1 {}", "u/2/g/c {}", "u/2 {h: {a: 1}}"]),
    Case(
      "missing parents", "{\"$collections\": [\"u/*/h\"], \"u\": {\"1\": {\"$missing\": true, \"h\": {\"2\": {}}}}}",
      ["u/1/h/2 {}"]),
    Case(
      "a missing parent without documents", "{\"$collections\": [\"u\"], \"u\": {\"1\": {\"$missing\": true}}}", []),
    Case("not missing", "{\"$collections\": [\"u\"], \"u\": {\"1\": {\"$missing\": false}}}", ["u/1 {}"]),
    Case(
      "separate fields",
      """
      {"$collections": ["u/*/h"], "u": {"1": {"$fields": {"h": {"x": 1}, "$$missing": 2}, "h": {"2": {}}, "b": 3}}}
      """, ["u/1/h/2 {}", "u/1 {$missing: 2, b: 3, h: {x: 1}}"]),
    Case(
      "escaped keys",
      """
      {"$collections": ["$c", "$c/*/$$s"], "$$c": {"$$d": {"$$f": {"$$ref": 1, "$$": 2}, "$$$s": {"e": {}}, "$$$": 3}}}
      """, ["$c/$d/$$s/e {}", "$c/$d {$$: 3, $f: {$: 2, $ref: 1}}"]),
    Case(
      "unusual names",
      """
      {"$collections": ["読書 📚", "読書 📚/*/a.b"], "読書 📚": {"__id7__": {"a.b": {"\\"q\\"": {}}, "x y": {" ": 1}},
        "2025-04-29T16:30:12": {}, "é": {}, "e\u{301}": {}}}
      """,
      [
        "読書 📚/__id7__/a.b/\"q\" {}", "読書 📚/__id7__ {x y: { : 1}}", "読書 📚/2025-04-29T16:30:12 {}", "読書 📚/é {}",
        "読書 📚/e\u{301} {}",
      ]),
  ]

  @Test(arguments: accepted)
  func readsTrees(_ test: Case) throws {
    let read = try documents(test.input).map(line)
    #expect(read.map { Array($0.utf8) } == test.expected.map { Array($0.utf8) }, "\(read)")
    #expect(try documents(test.input, chunkBytesMax: 1).map(line) == read)
  }

  static let c = "\"$collections\": [\"a\", \"a/*/s\"]"
  static let refused: [Case] = [
    Case(
      "not an object", "[]",
      ["x.json:1:1: the objects have no paths, so name the collection that they are for: --collection users"]),
    Case(
      "no shape", "{\"users\": {\"u1\": {\"n\": [1]}}, \"rooms\": {}}",
      [
        "x.json:1:2: the tree does not say which maps are collections; add this line at the top: "
          + "\"$collections\": [\"users\", \"rooms\"], with one more pattern for each subcollection, such as "
          + "\"users/*/…\""
      ]),
    Case(
      "a second list of collections", "{\(c), \"a\": {}, \"$collections\": []}",
      ["x.json:1:43: \"$collections\" occurs twice in this object, first on line 1; remove or rename one"]),
    Case(
      "an unknown collection", "{\(c),\n\"b\": {}}",
      [
        "x.json:2:1: \"b\" is not among the collections; if it is one, write "
          + "\"$collections\": [\"a\", \"a/*/s\", \"b\"],"
      ]),
    Case(
      "a pattern of a document", "{\"$collections\": [\"a/*\"]}",
      ["x.json:1:19: \"a/*\" is not a collection pattern: it ends with a document; end it with a collection id"]),
    Case(
      "a collection that is a number", "{\(c), \"a\": 1}",
      ["x.json:1:39: a: a collection must be an object of documents by id"]),
    Case(
      "a field with the name of a subcollection", "{\(c), \"a\": {\"x\": {\"s\": 1}}}",
      [
        "x.json:1:51: a/x/s: a collection must be an object of documents by id; if this is a field, "
          + "move it into \"$fields\" of its document"
      ]),
    Case(
      "a document that is a number", "{\(c), \"a\": {\"x\": 1}}",
      ["x.json:1:45: a/x: a document must be an object, {…}"]),
    Case(
      "an array in an array", "{\(c), \"a\": {\"x\": {\"f\": {\"g\": [[1]]}}}}",
      [
        "x.json:1:58: a/x: field \"f.g\": Nested arrays are not allowed; put the inner array into a map, "
          + "such as {\"values\": […]}"
      ]),
    Case(
      "a large integer", "{\(c), \"a\": {\"x\": {\"f\": 9223372036854775808}}}",
      [
        "x.json:1:51: a/x: field \"f\": 9223372036854775808 does not fit 64 bits; "
          + "write {\"$double\": 9223372036854775808} for a double, or a string"
      ]),
    Case(
      "a large double", "{\(c), \"a\": {\"x\": {\"f\": 1e999}}}",
      ["x.json:1:51: a/x: field \"f\": \"1e999\" is beyond the range of doubles"]),
    Case(
      "an unknown special value", "{\(c), \"a\": {\"x\": {\"f\": {\"$date\": 1}}}}",
      [
        "x.json:1:52: a/x: field \"f\": \"$date\" is not one of $timestamp, $ref, $bytes, $geo, $double, $vector; "
          + "write a key that begins with \"$\" as \"$$…\""
      ]),
    Case(
      "a special value with another member", "{\(c), \"a\": {\"x\": {\"f\": {\"$double\": 1, \"g\": 2}}}}",
      ["x.json:1:66: a/x: field \"f\": a special value must be the only member of its object"]),
    Case(
      "a special key after others", "{\(c), \"a\": {\"x\": {\"f\": {\"g\": 2, \"$double\": 1}}}}",
      [
        "x.json:1:60: a/x: field \"f\": \"$double\" is not allowed here; write a key that begins with \"$\" as \"$$…\""
      ]),
    Case(
      "a bad timestamp", "{\(c), \"a\": {\"x\": {\"a b\": {\"$timestamp\": \"2025-02-30\"}}}}",
      [
        "x.json:1:68: a/x: field \"`a b`\": \"2025-02-30\" is not a timestamp; write one such as "
          + "\"2025-03-27T14:30:00Z\""
      ]),
    Case(
      "a bad reference", "{\(c), \"a\": {\"x\": {\"f\": {\"$ref\": \"users\"}}}}",
      [
        "x.json:1:60: a/x: field \"f\": \"users\" is not a document; write a path such as \"users/u1\" or a full name "
          + "(Document name \"projects/demo/databases/(default)/documents/users\" lacks \"/\" at index 49.)"
      ]),
    Case(
      "bad base64", "{\(c), \"a\": {\"x\": {\"f\": {\"$bytes\": \"A\"}}}}",
      ["x.json:1:62: a/x: field \"f\": \"A\" is not valid base64"]),
    Case(
      "a bad geo point", "{\(c), \"a\": {\"x\": {\"f\": {\"$geo\": [91, 0]}}}}",
      ["x.json:1:66: a/x: field \"f\": Geo point latitude '91.0' outside permitted range -90.0 to 90.0."]),
    Case(
      "a short geo point", "{\(c), \"a\": {\"x\": {\"f\": {\"$geo\": [1]}}}}",
      ["x.json:1:62: a/x: field \"f\": \"$geo\" must be [latitude, longitude]"]),
    Case(
      "an empty vector", "{\(c), \"a\": {\"x\": {\"f\": {\"$vector\": []}}}}",
      ["x.json:1:64: a/x: field \"f\": Invalid vector value: it has no dimensions."]),
    Case(
      "a reserved field", "{\(c), \"a\": {\"x\": {\"__f__\": 1}}}",
      [
        "x.json:1:46: a/x: field \"__f__\": field name __f__ is reserved; names that begin and end with two "
          + "underscores belong to the service"
      ]),
    Case(
      "an empty field name", "{\(c), \"a\": {\"x\": {\"\": 1}}}",
      ["x.json:1:46: a/x: field \"``\": The property.name is the empty string."]),
    Case(
      "a document twice", "{\(c), \"a\": {\"x\": {},\n\"y\": {},\n\"x\": {}}}",
      ["x.json:3:1: a: \"x\" occurs twice in this object, first on line 1; remove or rename one"]),
    Case(
      "a field twice", "{\(c), \"a\": {\"x\": {\"f\": 1,\n\"f\": 2}}}",
      ["x.json:2:1: a/x: \"f\" occurs twice in this object, first on line 1; remove or rename one"]),
    Case(
      "a field twice, once in $fields", "{\(c), \"a\": {\"x\": {\"$fields\": {\"f\": 1}, \"f\": 2}}}",
      ["x.json:1:67: a/x: \"f\" occurs twice in this object, first on line 1; remove or rename one"]),
    Case(
      "a collection twice", "{\(c), \"a\": {},\n \"a\": {}}",
      ["x.json:2:2: \"a\" occurs twice in this object, first on line 1; remove or rename one"]),
    Case(
      "a missing document with fields", "{\(c), \"a\": {\"x\": {\"f\": 1, \"$missing\": true}}}",
      [
        "x.json:1:70: a/x: a document with \"$missing\" does not exist and has no fields; remove one of the two"
      ]),
    Case(
      "an id with a slash", "{\(c), \"a\": {\"x/y\": {}}}",
      ["x.json:1:40: a: the id \"x/y\" contains \"/\", which separates ids in a path; rename it"]),
    Case(
      "a reserved id", "{\(c), \"a\": {\"__x__\": {}}}",
      ["x.json:1:40: a/__x__: Resource id \"__x__\" is invalid because it is reserved."]),
    Case(
      "an empty id", "{\(c), \"a\": {\"\": {}}}",
      ["x.json:1:40: a/: Document name \"a/\" contains an empty resource id at index 1."]),
    Case("text after the end", "{\(c)} x", ["x.json:1:34: expected the end of the text, found \"x\""]),
    Case(
      "a truncated file", "{\(c), \"a\": {\"x\": {\"f\": ",
      ["x.json:1:51: a/x: field \"f\": the text ends too early; the file may be cut short"]),
  ]

  @Test(arguments: refused)
  func refusesBrokenTreesWithPlaceAndAdvice(_ test: Case) {
    let error = #expect(throws: FixtureTreeError.self) { try documents(test.input) }
    #expect(error.map { ["\($0)"] } == test.expected)
    let inPieces = #expect(throws: FixtureTreeError.self) { try documents(test.input, chunkBytesMax: 1) }
    #expect(inPieces == error)
  }

  @Test func shapeOfTheCallerAppliesUnlessTheTreeHasOne() throws {
    let shape = try CollectionShape(["a", "a/*/s"])
    let tree = "{\"a\": {\"x\": {\"s\": {\"y\": {}}, \"t\": {\"z\": {}}}}}"
    #expect(try documents(tree, shape: shape).map(line) == ["a/x/s/y {}", "a/x {t: {z: {}}}"])
    let own = "{\"$collections\": [\"a\", \"a/*/t\"], \"a\": {\"x\": {\"s\": {\"y\": {}}, \"t\": {\"z\": {}}}}}"
    #expect(try documents(own, shape: shape).map(line) == ["a/x/t/z {}", "a/x {s: {y: {}}}"])
  }

  @Test func collectionsMustComeFirst() throws {
    let late = "{\"a\": {},\n \"$collections\": [\"a\"]}"
    let error = #expect(throws: FixtureTreeError.self) { try documents(late, shape: try CollectionShape(["a"])) }
    #expect(error?.description == "x.json:2:2: \"$collections\" must be the first key")
  }

  @Test func enforcesTheLimitsOfWrites() throws {
    func tree(_ fields: String) -> String { "{\"$collections\": [\"a\"], \"a\": {\"x\": {\(fields)}}}" }
    func message(_ fields: String) -> String? {
      #expect(throws: FixtureTreeError.self) { try documents(tree(fields)) }?.message
    }
    let value = String(repeating: "v", count: Limits.valueBytesMax)
    #expect(throws: Never.self) { try documents(tree("\"f\": \"\(value)\"")) }
    #expect(message("\"f\": \"\(value)v\"")?.contains("longer than 1048487 bytes") == true)
    let half = String(repeating: "v", count: 600_000)
    #expect(message("\"f\": \"\(half)\", \"g\": \"\(half)\"")?.hasPrefix("A document cannot be written") == true)
    #expect(message("\"\(String(repeating: "k", count: 1501))\": 1")?.contains("longer than 1500 bytes") == true)
    func nested(_ depth: Int) -> String {
      "\"f\": " + String(repeating: "{\"m\": ", count: depth) + "1" + String(repeating: "}", count: depth)
    }
    #expect(throws: Never.self) { try documents(tree(nested(20))) }
    #expect(message(nested(21))?.contains("invalid nested entity") == true)
  }

  @Test func repeatsItsError() throws {
    var reader = FixtureTreeReader(ByteSource(Array("{\"$collections\": [\"a\"], \"a\": 1}".utf8)), database: demo)
    var errors: [FixtureTreeError] = []
    for _ in 0..<2 {
      do throws(FixtureTreeError) { _ = try reader.next() } catch { errors.append(error) }
    }
    #expect(errors.count == 2)
    #expect(errors.first == errors.last)
  }

  @Test func readerStaysAtTheEnd() throws {
    var reader = FixtureTreeReader(ByteSource(Array("{\"$collections\": [\"a\"], \"a\": {}}".utf8)), database: demo)
    #expect(try reader.next() == nil)
    #expect(try reader.next() == nil)
  }

  @Test func namesTheFileThatCannotBeOpened() {
    let error = #expect(throws: FixtureTreeError.self) { try ByteSource(file: "/nonexistent/tree.json") }
    #expect(error?.description == "/nonexistent/tree.json: cannot open the file: No such file or directory")
  }
}
