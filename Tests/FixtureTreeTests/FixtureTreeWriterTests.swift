import DocumentModel
import FixtureTree
import Testing
import TestSupport
import WireFormat

@Suite struct FixtureTreeWriterTests {
  static func document(_ path: String, _ fields: [(String, Value)]) throws -> FixtureDocument {
    let key = try #require(DocumentKey(try ResourcePath(path)))
    return FixtureDocument(key: key, fields: EncodedFields(MapValue(fields)), line: 0)
  }

  @Test func writesReadableText() throws {
    let long = String(repeating: "long text ", count: 9)
    let documents = [
      try Self.document("rooms/lobby/messages/m1/marks/x", []),
      try Self.document("users/u1", [("name", .string("Ann")), ("n", .integer(1)), ("d", .double(2))]),
      try Self.document(
        "users/u1/habits/Run",
        [("goal", .double(0.5)), ("at", .timestamp(Timestamp(uncheckedMicroseconds: 0)))]),
      try Self.document("users/u2", [("habits", .null), ("name", .string("Bo"))]),
      try Self.document("users/u3", [("habits", .null), ("text", .string(long))]),
      try Self.document(
        "users/u4",
        [
          ("list", .array([.map(MapValue([("a", .string(long)), ("b", .integer(1))])), .integer(2)])),
          ("name", .string(long)),
          ("short", .array([.integer(1), .map(MapValue())])), ("$odd", .map(MapValue([("$x", .boolean(true))]))),
          ("v", .vector([1, 0.5, -0.0])), ("w", .geoPoint(GeoPoint(latitude: 45.5, longitude: -9))),
          ("x", .reference("projects/demo/databases/(default)/documents/users/u1")),
          ("y", .reference("projects/other/databases/(default)/documents/users/u1")), ("z", .bytes([1, 2])),
        ]),
      try Self.document("users/u5", []),
    ]
    #expect(
      try export(documents) == """
        {
          "$collections": ["rooms", "rooms/*/messages", "rooms/*/messages/*/marks", "users", "users/*/habits"],
          "rooms": {
            "lobby": {
              "$missing": true,
              "messages": {
                "m1": {
                  "$missing": true,
                  "marks": {
                    "x": {}
                  }
                }
              }
            }
          },
          "users": {
            "u1": {
              "d": {"$double": 2},
              "n": 1,
              "name": "Ann",
              "habits": {
                "Run": {"at": {"$timestamp": "1970-01-01T00:00:00Z"}, "goal": 0.5}
              }
            },
            "u2": {"$fields": {"habits": null, "name": "Bo"}},
            "u3": {
              "$fields": {
                "habits": null,
                "text": "\(long)"
              }
            },
            "u4": {
              "$$odd": {"$$x": true},
              "list": [
                {"a": "\(long)", "b": 1},
                2
              ],
              "name": "\(long)",
              "short": [1, {}],
              "v": {"$vector": [1, 0.5, "-0"]},
              "w": {"$geo": [45.5, -9]},
              "x": {"$ref": "users/u1"},
              "y": {"$ref": "projects/other/databases/(default)/documents/users/u1"},
              "z": {"$bytes": "AQI="}
            },
            "u5": {}
          }
        }

        """)
  }

  @Test func writesATreeWithoutDocuments() throws {
    #expect(try export([]) == "{\n  \"$collections\": []\n}\n")
    #expect(try documents(try export([])).isEmpty)
  }

  @Test func sortsPatternsAndRemovesRepeats() throws {
    let paths = try ["users/b/habits", "users", "users/a/habits", "a/x/b/y/c"].map { try ResourcePath($0) }
    #expect(CollectionShape.patterns(of: paths) == ["a/*/b/*/c", "users", "users/*/habits"])
  }

  @Test(arguments: ["", "a/", "a//b", "a/*", "a/*/__b__", "/a"])
  func refusesInvalidPatterns(pattern: String) {
    #expect(throws: CollectionShape.InvalidPattern.self) { try CollectionShape([pattern]) }
  }

  @Test func limitsCombinationsOfPatterns() {
    // Every combination of named and other documents is a separate state: 2^40 without a limit.
    let patterns = (0..<40).map { named in
      (0..<40).map { "c/" + ($0 == named ? "x" : "*") }.joined(separator: "/") + "/c"
    }
    #expect(throws: CollectionShape.InvalidPattern.self) { try CollectionShape(patterns) }
  }

  @Test(arguments: 0..<200)
  func readsBackTheWrittenText(seed: Int) throws {
    var random = SplitMix(seed: UInt64(seed))
    let tree = random.tree()
    let text = try export(tree)
    let read = try documents(text).sorted { $0.key < $1.key }
    #expect(read.map(\.key) == tree.map(\.key), "seed \(seed)\n\(text)")
    for (before, after) in zip(tree, read) where before.fields != after.fields {
      Issue.record("seed \(seed): \(try line(before)) became \(try line(after))\n\(text)")
    }
    #expect(Array(try export(read).utf8) == Array(text.utf8), "seed \(seed): the second export differs")
  }
}
