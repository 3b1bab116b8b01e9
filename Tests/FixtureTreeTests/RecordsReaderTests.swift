import DocumentModel
import Testing
@testable import FixtureTree

/// Objects without paths: arrays, lines, and objects of arrays.
@Suite struct RecordsReaderTests {
  /// The lines of all documents of a text, with the facts about it.
  static func read(
    _ text: String, name: String = "x.json", collection: String? = "users", chunkBytesMax: Int = .max,
    _ change: (inout ReadOptions) -> Void = { _ in }
  ) throws -> (lines: [String], tally: ReadTally) {
    var options = ReadOptions()
    options.collection = try collection.map { try ResourcePath($0) }
    change(&options)
    let source = ByteSource(Array(text.utf8), chunkBytesMax: chunkBytesMax, name: name)
    let types =
      options.infersTypes
      ? try FixtureReader.inferTypes(ByteSource(Array(text.utf8), name: name), options: options) : nil
    var reader = try FixtureReader(source, database: demo, options: options, types: types)
    var lines: [String] = []
    while let document = try reader.next() { lines.append(try line(document)) }
    return (lines, reader.tally)
  }

  static let accepted: [(text: String, collection: String?, lines: [String])] = [
    (
      #"[{"id": "a", "n": 1.5}, {"n": [{}, null], "id": "b"}]"#, "users",
      [#"users/a {id: "a", n: double(1.5)}"#, #"users/b {id: "b", n: [{}, null]}"#]
    ),
    ("{\"_id\": 7, \"id\": \"x\"}\n\n{\"_id\": 8}", "a/b/c", [#"a/b/c/7 {_id: 7, id: "x"}"#, "a/b/c/8 {_id: 8}"]),
    (#"[{"__id__": "a", "id": 1}, {"__id__": "b"}]"#, "users", ["users/a {id: 1}", "users/b {}"]),
    (
      #"{"users": [{"id": "a"}], "teams": [], "users/a/notes": [{"_id": "n"}]}"#, nil,
      [#"users/a {id: "a"}"#, #"users/a/notes/n {_id: "n"}"#]
    ),
    (#"{"data": [{"id": "a"}]}"#, "users", [#"users/a {id: "a"}"#]),
    (
      #"{"tags": [{"x": 1}], "id": "a"} {"tags": [], "id": "b"}"#, "users",
      [
        #"users/a {id: "a", tags: [{x: 1}]}"#, #"users/b {id: "b", tags: []}"#,
      ]
    ),
    (#"[] [{"id": "a"}] {"id": "b"}"#, "users", [#"users/a {id: "a"}"#, #"users/b {id: "b"}"#]),
    (
      #"[{"id": "a", "at": {"$timestamp": "2025-01-01T00:00:00Z"}, "m": {"$date": 1, "$$": 2}}]"#, "users",
      [#"users/a {at: time(2025-01-01T00:00:00Z), id: "a", m: {$$: 2, $date: 1}}"#]
    ),
    ("[]", "users", []),
  ]

  @Test(arguments: accepted.indices)
  func readsObjectsWithoutPaths(index: Int) throws {
    let (text, collection, lines) = Self.accepted[index]
    #expect(try Self.read(text, collection: collection).lines == lines)
    #expect(try Self.read(text, collection: collection, chunkBytesMax: 1).lines == lines)
  }

  @Test func optionsChooseTheID() throws {
    let text = #"[{"email": "a@x", "id": 1}, {"id": 1, "email": "b@x"}]"#
    let named = try Self.read(text) { $0.idMember = "email" }
    #expect(named.lines == [#"users/a@x {email: "a@x", id: 1}"#, #"users/b@x {email: "b@x", id: 1}"#])
    let dropped = try Self.read(text) {
      $0.idMember = "email"
      $0.dropsIDMember = true
    }
    #expect(dropped.lines == ["users/a@x {id: 1}", "users/b@x {id: 1}"])
    let random = try Self.read(text) { $0.generatesIDs = true }
    #expect(random.tally.generatedIDs == 2)
    #expect(random.lines.allSatisfy { $0.contains(#/^users/[A-Za-z0-9]{20} \{email: /#) }, "\(random.lines)")
    let none = try Self.read(#"[{"n": 1}, {"n": 2}]"#)
    #expect(none.tally.generatedIDs == 2 && Set(none.lines.map { $0.prefix(26) }).count == 2)
    // Each collection has its own rule.
    let mixed = try Self.read(#"{"a": [{"id": "x"}], "b": [{"n": 1}]}"#, collection: nil)
    #expect(mixed.lines.first == #"a/x {id: "x"}"# && mixed.tally.generatedIDs == 1)
  }

  static let refused: [(text: String, collection: String?, error: String)] = [
    (
      #"[{"id": "a"}]"#, nil,
      "x.json:1:1: the objects have no paths, so name the collection that they are for: --collection users"
    ),
    (
      #"{"id": "a", "n": 1}"#, nil,
      "x.json:1:2: the file is not a fixture tree, because \"id\" is not a map of documents; if each object of the file "
        + "is a document, name their collection: --collection users"
    ),
    (
      "[{\"id\": \"a\"},\n {\"n\": 1}]", "users",
      "x.json:2:2: users: the object has no \"id\", which the first object has; add it, name another one with --id, or "
        + "give --generate-ids"
    ),
    (
      "[{\"n\": 1},\n {\"id\": 1}]", "users",
      "x.json:2:3: users: the object has \"id\", but the first object has none; give --id id, or --generate-ids"
    ),
    (
      "[{\"id\": \"a\"},\n{\"id\": \"a\"}]", "users",
      "x.json:2:1: users/a: two records have the ID \"a\", the first on line 1; name another one with --id, or give "
        + "--generate-ids"
    ),
    (
      #"[{"id": {"$oid": "5"}}]"#, "users",
      "x.json:1:9: users: field \"id\": an ID must be a string or a whole number; name another one with --id, or give "
        + "--generate-ids"
    ),
    (
      #"[{"id": ""}]"#, "users",
      "x.json:1:2: users: the ID is empty; name another one with --id, or give --generate-ids"
    ),
    (
      #"[{"id": "a/b"}]"#, "users",
      "x.json:1:2: users: the id \"a/b\" contains \"/\", which separates ids in a path; rename it"
    ),
    (#"[1]"#, "users", "x.json:1:2: an element is not an object; each document is an object, {…}"),
    (
      #"[{"id": "a"}] 5"#, "users",
      "x.json:1:15: expected an object or an array of objects; each document is an object, {…}"
    ),
    (
      #"{"users": [{"id": 1}], "count": 1}"#, nil,
      "x.json:1:33: count: \"count\" must be an array of objects, like the first member of the file; for maps of "
        + "documents by ID, write a fixture tree"
    ),
    (
      #"{"a": [{"id": 1}], "b": []}"#, "users",
      "x.json:1:20: b: the file has several arrays; leave out --collection, so that each key is a collection"
    ),
    (
      #"{"a/b": [{"id": 1}]}"#, nil,
      "x.json:1:2: a/b: \"a/b\" is the path of a document; write that of a collection"
    ),
    (
      #"{"$collections": ["a"], "a": {}}"#, "users",
      "x.json: the file contains the paths of its documents; leave out --collection"
    ),
    (
      #"{"path": "a/b", "fields": {}}"#, "users",
      "x.json: the file contains the paths of its documents; leave out --collection"
    ),
    (
      "[{\"id\": \"a\", \"list\": [[1]]}]", "users",
      "x.json:1:23: users: field \"list\": Nested arrays are not allowed; put the inner array into a map, "
        + "such as {\"values\": […]}"
    ),
    ("[{\"id\": \"a\"}", "users", "x.json:1:13: the text ends too early; the file may be cut short"),
  ]

  @Test(arguments: refused.indices)
  func refusesWithPlaceAndRemedy(index: Int) {
    let (text, collection, expected) = Self.refused[index]
    let error = #expect(throws: FixtureTreeError.self) { try Self.read(text, collection: collection) }
    #expect(error?.description == expected)
  }

  static let formats: [(name: String, text: String, collection: Bool, format: FixtureReader.Format)] = [
    ("a.json", "[", false, .records),
    ("a.json", #"{"a": [{}]}"#, false, .recordsByCollection),
    ("a.json", #"{"a": [1]}"#, false, .fixtureTree),
    ("a.json", #"{"a": 1}"#, true, .records),
    ("a.json", "id,name\n", true, .csv),
    ("a.json", "id,name\n", false, .fixtureTree),
    ("-", "", true, .fixtureTree),
    ("a.csv.gz", "{", false, .csv),
    ("a.tsv", "", false, .csv),
    ("a.ndjson.zst", "[", false, .documentLines),
    ("a.ndjson", "[", true, .records),
    ("a.json", #"{"path": "x", "n": 1}"#, true, .records),
  ]

  @Test(arguments: formats.indices)
  func findsTheFormat(index: Int) throws {
    let (name, text, hasCollection, format) = Self.formats[index]
    var options = ReadOptions()
    options.collection = hasCollection ? try ResourcePath("users") : nil
    let source = ByteSource(Array(text.utf8), chunkBytesMax: 2, name: name)
    #expect(try FixtureReader(source, database: demo, options: options).format == format)
  }

  static let sdkValues: [(text: String, value: String)] = [
    (#"{"_seconds": 1600000000, "_nanoseconds": 5000}"#, "time(2020-09-13T12:26:40.000005Z)"),
    (#"{"nanoseconds": 0, "seconds": 1600000000}"#, "time(2020-09-13T12:26:40Z)"),
    (#"{"_latitude": 45.5, "_longitude": 9}"#, "geo(45.5, 9.0)"),
    (
      #"{"_firestore": {"projectId": "demo"}, "_path": {"segments": ["users", "b"]}, "_converter": {}}"#,
      "ref(projects/demo/databases/(default)/documents/users/b)"
    ),
    (
      #"{"_firestore": {}, "_path": {"segments": ["c", "d"], "projectId": "p", "databaseId": "x"}}"#,
      "ref(projects/p/databases/x/documents/c/d)"
    ),
    (#"{"_firestore": {}, "_path": {"segments": ["c", "d"]}}"#, "ref(projects/demo/databases/(default)/documents/c/d)"),
    (#"{"type": "Buffer", "data": [0, 255]}"#, "bytes([0, 255])"),
    (#"{"_values": [1, 2.5]}"#, #"{__type__: "__vector__", value: [double(1.0), double(2.5)]}"#),
    (#"{"type": "firestore/timestamp/1.0", "seconds": 0, "nanoseconds": 0}"#, "time(1970-01-01T00:00:00Z)"),
    (#"{"type": "firestore/geoPoint/1.0", "latitude": 1, "longitude": 2}"#, "geo(1.0, 2.0)"),
    (#"{"type": "firestore/bytes/1.0", "bytes": "AAE="}"#, "bytes([0, 1])"),
    (
      #"{"type": "firestore/documentReference/1.0", "referencePath": "c/d"}"#,
      "ref(projects/demo/databases/(default)/documents/c/d)"
    ),
  ]

  @Test(arguments: sdkValues.indices)
  func readsValuesOfFirebaseSDKs(index: Int) throws {
    let (text, value) = Self.sdkValues[index]
    let record = #"[{"id": "a", "f": \#(text), "l": [\#(text)]}]"#
    let read = try Self.read(record)
    #expect(read.lines == [#"users/a {f: \#(value), id: "a", l: [\#(value)]}"#])
    #expect(read.tally.sdkValuesRead == 2)
    let kept = try Self.read(record) { $0.readsSDKValues = false }
    #expect(kept.lines.first?.contains("f: {") == true)
    #expect(kept.tally.sdkValuesLeft == 2 && kept.tally.sdkValuesRead == 0)
    // In a tree, such a map can be one that an export wrote, so it stays.
    let tree = #"{"$collections": ["users"], "users": {"a": {"f": \#(text)}}}"#
    let left = try Self.read(tree, collection: nil)
    #expect(left.tally.sdkValuesLeft == 1 && left.lines.first?.contains("f: {") == true)
    #expect(try Self.read(tree, collection: nil) { $0.readsSDKValues = true }.lines == ["users/a {f: \(value)}"])
  }

  @Test(arguments: [
    #"{"_seconds": 1}"#, #"{"_seconds": 1, "_nanoseconds": 0, "x": 1}"#, #"{"_seconds": "1", "_nanoseconds": 0}"#,
    #"{"_seconds": 1.5, "_nanoseconds": 0}"#, #"{"_seconds": 1, "_nanoseconds": 1000000000}"#,
    #"{"latitude": 1, "longitude": 2}"#, #"{"_latitude": 91, "_longitude": 2}"#, #"{"type": "Buffer", "data": [256]}"#,
    #"{"type": "x", "seconds": 1, "nanoseconds": 0}"#, #"{"_values": ["a"]}"#, #"{"_path": {"segments": ["a"]}}"#,
    #"{"_firestore": {}, "_path": {"segments": []}}"#,
  ])
  func otherMapsStayMaps(text: String) throws {
    let read = try Self.read(#"[{"id": "a", "f": \#(text)}]"#)
    #expect(read.tally == ReadTally() && read.lines.first?.contains("f: {") == true, "\(read.lines)")
  }

  @Test func countsAndRewritesReferencesToOtherDatabases() throws {
    let lines = """
      {"path": "a/1", "fields": {"r": {"$ref": "projects/old/databases/(default)/documents/u/1"}, "s": {"$ref": "u/1"}}}
      {"name": "projects/old/databases/(default)/documents/a/2", "fields": {"r": {"referenceValue":
        "projects/demo/databases/other/documents/u/2"}, "s": {"referenceValue":
        "projects/demo/databases/(default)/documents/u/2"}}}
      """
    let kept = try Self.read(lines, collection: nil)
    #expect(kept.tally.foreignReferences == 2)
    #expect(kept.tally.firstForeignReference == "projects/old/databases/(default)/documents/u/1")
    #expect(kept.lines[0].contains("r: ref(projects/old/"))
    let changed = try Self.read(lines, collection: nil) { $0.rewritesReferences = true }
    #expect(
      changed.lines
        == [1, 2].map { number in
          let reference = "ref(projects/demo/databases/(default)/documents/u/\(number))"
          return "a/\(number) {r: \(reference), s: \(reference)}"
        })
    #expect(changed.tally.foreignReferences == 2)
  }

  @Test func memoryIsIndependentOfTheFileSize() throws {
    var options = ReadOptions()
    options.collection = try ResourcePath("users")
    var buffered: [Int] = []
    for count in [100, 20_000] {
      var index = -1
      var pending: [UInt8] = []
      var offset = 0
      let source = ByteSource(name: "generated") { buffer in
        if offset == pending.count {
          index += 1
          offset = 0
          pending =
            index > count ? [] : Array((index < count ? "\(index == 0 ? "[" : ",") {\"id\": \(index)}\n" : "]").utf8)
        }
        let piece = min(buffer.count, pending.count - offset)
        buffer.copyBytes(from: pending[offset..<offset + piece])
        offset += piece
        return piece
      }
      var reader = RecordsReader(source, database: demo, options: options, bufferBytes: 4096)
      var read = 0
      while try reader.next() != nil { read += 1 }
      #expect(read == count)
      buffered.append(reader.bufferedBytes)
    }
    // Only the table of IDs grows: 16 bytes per ID plus spare room, up to a limit.
    #expect(buffered[1] - buffered[0] <= 65_536 * 16, "\(buffered)")
  }
}
