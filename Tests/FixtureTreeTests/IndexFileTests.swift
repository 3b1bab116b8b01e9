import DocumentModel
import FixtureTree
import Testing
import TestSupport

/// Tests the configuration that index files declare, and the errors for mistakes in them.
@Suite struct IndexFileTests {
  private func read(_ text: String) throws -> IndexConfiguration {
    try IndexFile.read(ByteSource(Array(text.utf8), name: "i.json"))
  }

  @Test func readsEverySetting() throws {
    let configuration = try read(
      """
      {
        "indexes": [
          {"collectionGroup": "rooms", "queryScope": "COLLECTION", "apiScope": "ANY_API", "density": "SPARSE_ALL",
           "fields": [{"fieldPath": "owner", "order": "ASCENDING"}, {"fieldPath": "stats.`a-b`", "order": "DESCENDING"},
                      {"fieldPath": "__name__", "order": "ASCENDING"}]},
          {"collectionId": "rooms", "fields": [{"fieldPath": "tags", "mode": "ARRAY_CONTAINS"},
                                               {"fieldPath": "at", "mode": "DESCENDING"}]},
          {"collectionGroup": "rooms", "queryScope": "COLLECTION_GROUP", "multikey": false, "shardCount": 1,
           "fields": [{"fieldPath": "tags", "arrayConfig": "CONTAINS"}, {"fieldPath": "at", "order": "ASCENDING"},
                      {"fieldPath": "v", "vectorConfig": {"dimension": 768, "flat": {}}}]},
          {"collectionGroup": "docs", "fields": [{"fieldPath": "v", "vectorConfig": {"dimension": 3}}]},
          {"collectionGroup": "docs", "fields": [{"fieldPath": "__name__", "order": "DESCENDING"}]}
        ],
        "fieldOverrides": [
          {"collectionGroup": "rooms", "fieldPath": "text", "indexes": []},
          {"collectionGroup": "rooms", "fieldPath": "expireAt", "ttl": true, "indexes": [
            {"queryScope": "COLLECTION", "order": "ASCENDING"}, {"queryScope": "COLLECTION_GROUP", "order": "DESCENDING"},
            {"arrayConfig": "CONTAINS"}]},
          {"collectionGroup": "rooms", "fieldPath": "gone", "ttl": true},
          {"collectionGroup": "__default__", "fieldPath": "*", "indexes": [{"order": "ASCENDING"}]},
          {"collectionGroup": "docs", "fieldPath": "*", "ttl": false, "indexes": []}
        ]
      }
      """)
    #expect(
      configuration.indexes == [
        IndexDefinition(
          collectionID: "rooms", scope: .collection,
          fields: [
            .init(field("owner"), .ascending), .init(field("stats.`a-b`"), .descending),
            .init(field("__name__"), .ascending),
          ]),
        IndexDefinition(
          collectionID: "rooms", scope: .collection,
          fields: [
            .init(field("tags"), .contains), .init(field("at"), .descending),
          ]),
        IndexDefinition(
          collectionID: "rooms", scope: .collectionGroup,
          fields: [
            .init(field("tags"), .contains), .init(field("at"), .ascending), .init(field("v"), .vector(dimension: 768)),
          ]),
        IndexDefinition(collectionID: "docs", scope: .collection, fields: [.init(field("v"), .vector(dimension: 3))]),
        IndexDefinition(collectionID: "docs", scope: .collection, fields: [.init(field("__name__"), .descending)]),
      ])
    #expect(
      configuration.fields == [
        FieldIndexing(collectionID: "rooms", path: field("text"), entries: []),
        FieldIndexing(
          collectionID: "rooms", path: field("expireAt"),
          entries: [
            .init(.collection, .ascending), .init(.collectionGroup, .descending), .init(.collection, .contains),
          ], expires: true),
        FieldIndexing(collectionID: "rooms", path: field("gone"), entries: FieldIndexing.automatic, expires: true),
        FieldIndexing(
          collectionID: "__default__", path: FieldIndexing.allFields, entries: [.init(.collection, .ascending)]),
        FieldIndexing(collectionID: "docs", path: FieldIndexing.allFields, entries: []),
      ])
    // The written text reads back as the same configuration and produces the same text again.
    let text = IndexFile.text(of: configuration)
    let again = try IndexFile.read(ByteSource(text))
    #expect(again == configuration)
    #expect(IndexFile.text(of: again) == text)
    #expect(try read("{}") == IndexConfiguration())
  }

  @Test func writesTheFormatOfTheDeployTools() {
    let configuration = IndexConfiguration(
      indexes: [
        IndexDefinition(
          collectionID: "rooms", scope: .collection,
          fields: [
            .init(field("owner"), .ascending), .init(field("v"), .vector(dimension: 2)),
          ])
      ],
      fields: [FieldIndexing(collectionID: "rooms", path: field("at"), entries: [], expires: true)])
    #expect(
      String(decoding: IndexFile.text(of: configuration), as: UTF8.self) == """
        {
          "indexes": [
            {
              "collectionGroup": "rooms",
              "queryScope": "COLLECTION",
              "fields": [
                {
                  "fieldPath": "owner",
                  "order": "ASCENDING"
                },
                {
                  "fieldPath": "v",
                  "vectorConfig": {
                    "dimension": 2,
                    "flat": {}
                  }
                }
              ]
            }
          ],
          "fieldOverrides": [
            {
              "collectionGroup": "rooms",
              "fieldPath": "at",
              "ttl": true,
              "indexes": []
            }
          ]
        }

        """)
  }

  private struct Mistake: Sendable {
    var text: String
    var message: String
  }

  private static func index(_ fields: String) -> String {
    #"{"indexes": [{"collectionGroup": "c", "fields": "# + fields + "}]}"
  }
  private static func override(_ rest: String) -> String {
    #"{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "a""# + rest + "}]}"
  }

  private static func textField(_ path: String) -> String {
    #"{"fieldPath": "\#(path)", "searchConfig": {"textSpec": {"indexSpecs": "#
      + #"[{"indexType": "TOKENIZED", "matchType": "MATCH_GLOBALLY"}]}}}"#
  }

  /// Text indexes, also with the name that tools add, are written as they are read.
  @Test func textIndexesRoundTrip() throws {
    let configuration = try read(
      #"{"indexes": [{"collectionGroup": "posts", "fields": [\#(Self.textField("title")), \#(Self.textField("body")), "#
        + #"{"fieldPath": "__name__", "order": "ASCENDING"}], "searchIndexOptions": {"textLanguage": "de-CH"}}, "#
        + #"{"collectionGroup": "posts", "fields": [\#(Self.textField("title"))]}]}"#)
    let german = try #require(TextLanguage(tag: "de"))
    #expect(
      configuration.indexes == [
        IndexDefinition(
          collectionID: "posts", scope: .collection,
          fields: [.init(field("title"), .text(german)), .init(field("body"), .text(german))]),
        IndexDefinition(collectionID: "posts", scope: .collection, fields: [.init(field("title"), .text(.english))]),
      ])
    let text = String(decoding: IndexFile.text(of: configuration), as: UTF8.self)
    #expect(text.contains("\"textLanguage\": \"de\"") && text.contains("MATCH_GLOBALLY"))
    #expect(try read(text) == configuration)
  }

  private static let mistakes = [
    Mistake(text: "", message: "i.json:1:1: "),
    Mistake(text: "{\n  \"indexes\": [,]}", message: "i.json:2:15: "),
    Mistake(text: "[]", message: "i.json:1:1: must be an object"),
    Mistake(text: #"{"index": []}"#, message: #"i.json:1:2: unknown key "index""#),
    Mistake(text: "{\"indexes\": [],\n \"indexes\": []}", message: #"i.json:2:2: key "indexes" occurs twice"#),
    Mistake(text: #"{"indexes": {}}"#, message: "i.json:1:13: indexes: must be an array"),
    Mistake(text: "{\"indexes\": [\n  {\"fields\": []}]}", message: #"i.json:2:14: indexes[0].fields: is empty"#),
    Mistake(
      text:
        #"{"indexes": [{"fields": [{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "ASCENDING"}]}]}"#,
      message: #"i.json:1:14: indexes[0]: lacks "collectionGroup""#),
    Mistake(text: #"{"indexes": [{"collectionGroup": "c"}]}"#, message: #"i.json:1:14: indexes[0]: lacks "fields""#),
    Mistake(
      text: #"{"indexes": [{"collectionGroup": "a/b"}]}"#,
      message: #"i.json:1:34: indexes[0].collectionGroup: "a/b" is not a collection id"#),
    Mistake(
      text: #"{"indexes": [{"collectionGroup": "__default__"}]}"#, message: "i.json:1:34: indexes[0].collectionGroup: "),
    Mistake(
      text: #"{"indexes": [{"collectionGroup": "c", "collectionId": "c"}]}"#, message: "are the same; remove one"),
    Mistake(
      text: #"{"indexes": [{"collectionGroup": "c", "queryScope": "COLLECTION_RECURSIVE"}]}"#,
      message: #"must be "COLLECTION" or "COLLECTION_GROUP", not "COLLECTION_RECURSIVE""#),
    Mistake(text: #"{"indexes": [{"collectionGroup": "c", "density": "DENSE"}]}"#, message: #"must be "SPARSE_ALL""#),
    Mistake(
      text: #"{"indexes": [{"collectionGroup": "c", "unique": true}]}"#, message: "indexes[0].unique: must be false"),
    Mistake(text: #"{"indexes": [{"collectionGroup": "c", "name": "x"}]}"#, message: #"unknown key "name""#),
    Mistake(text: index(#"[{"fieldPath": "a", "order": "ASCENDING"}]"#), message: "belongs in \"fieldOverrides\""),
    Mistake(
      text: index(#"[{"fieldPath": "a", "order": "ascending"}]"#),
      message: #"indexes[0].fields[0].order: must be "ASCENDING" or "DESCENDING", not "ascending""#),
    Mistake(
      text: index(#"[{"fieldPath": "a..b", "order": "ASCENDING"}]"#),
      message: #"fields[0].fieldPath: "a..b" is not a field path"#),
    Mistake(text: index(#"[{"fieldPath": "*", "order": "ASCENDING"}]"#), message: "must name one field"),
    Mistake(text: index(#"[{"order": "ASCENDING"}]"#), message: #"indexes[0].fields[0]: lacks "fieldPath""#),
    Mistake(text: index(#"[{"fieldPath": "a"}]"#), message: #"indexes[0].fields[0]: lacks "order""#),
    Mistake(
      text: index(#"[{"fieldPath": "a", "order": "ASCENDING", "arrayConfig": "CONTAINS"}]"#),
      message: #"a field has only one of "order", "arrayConfig", "vectorConfig" and "searchConfig""#),
    Mistake(
      text: index(#"[{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "a", "order": "ASCENDING"}]"#),
      message: "fields[1]: field a is already in the index"),
    Mistake(
      text: index(#"[{"fieldPath": "a", "arrayConfig": "CONTAINS"}, {"fieldPath": "b", "arrayConfig": "CONTAINS"}]"#),
      message: "only one array field"),
    Mistake(
      text: index(#"[{"fieldPath": "__name__", "order": "ASCENDING"}, {"fieldPath": "b", "order": "ASCENDING"}]"#),
      message: "only a vector field can follow __name__"),
    Mistake(
      text: index(#"[{"fieldPath": "__name__", "arrayConfig": "CONTAINS"}]"#), message: "__name__ requires an \"order\""
    ),
    Mistake(
      text: index(#"[{"fieldPath": "v", "vectorConfig": {"dimension": 2}}, {"fieldPath": "b", "order": "ASCENDING"}]"#),
      message: "must be the last of the index"),
    Mistake(text: index(#"[{"fieldPath": "v", "vectorConfig": {"dimension": 0}}]"#), message: "from 1 to 2048"),
    Mistake(text: index(#"[{"fieldPath": "v", "vectorConfig": {"flat": {}}}]"#), message: #"lacks "dimension""#),
    Mistake(text: index(#"[{"fieldPath": "v", "searchConfig": {}}]"#), message: #"lacks "textSpec""#),
    Mistake(
      text: index(#"[{"fieldPath": "v", "searchConfig": {"textSpec": {}}}]"#), message: #"one element in "indexSpecs""#),
    Mistake(
      text: index(#"[{"fieldPath": "v", "searchConfig": {"textSpec": {"indexSpecs": [{"matchType": "X"}]}}}]"#),
      message: #"must be "MATCH_GLOBALLY""#),
    Mistake(
      text: index(#"[{"fieldPath": "v", "searchConfig": {"geoSpec": {}}}]"#), message: "a search by distance needs no"),
    Mistake(
      text: index("[\(textField("v")), {\"fieldPath\": \"b\", \"order\": \"ASCENDING\"}]"),
      message: "either all fields of an index"),
    Mistake(
      text: index("[\(textField("v"))], \"searchIndexOptions\": {\"textLanguage\": \"xx\"}"),
      message: "searchIndexOptions.textLanguage: must be the code of a known language"),
    Mistake(
      text: index("[\(textField("v"))], \"searchIndexOptions\": {\"textLanguageOverrideFieldPath\": \"l\"}"),
      message: "the language of a document is not supported"),
    Mistake(
      text: index(#"[{"fieldPath": "__name__", "order": "ASCENDING"}], "searchIndexOptions": {}"#),
      message: "needs fields with"),
    Mistake(
      text: #"{"indexes": [{"collectionGroup": "c", "fields": [\#(textField("a"))]}, "#
        + #"{"collectionGroup": "c", "fields": [\#(textField("b"))]}]}"#,
      message: "already has a text index in en"),
    Mistake(text: override(""), message: #"i.json:1:21: fieldOverrides[0]: lacks "indexes""#),
    Mistake(text: override(#", "ttl": "yes""#), message: "fieldOverrides[0].ttl: must be true or false"),
    Mistake(text: override(#", "indexes": [{"queryScope": "COLLECTION"}]"#), message: #"indexes[0]: lacks "order""#),
    Mistake(
      text: override(#", "indexes": [{"vectorConfig": {"dimension": 2}}]"#), message: "declared under \"indexes\""),
    Mistake(text: override(#", "indexes": [{"order": "ASCENDING", "x": 1}]"#), message: "\"x\" is not allowed here"),
    Mistake(
      text: #"{"fieldOverrides": [{"collectionGroup": "__default__", "fieldPath": "a", "indexes": []}]}"#,
      message: "allows only the field path \"*\""),
    Mistake(
      text: #"{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "*", "ttl": true}]}"#, message: "not \"*\""),
    Mistake(
      text: #"{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "__name__", "indexes": []}]}"#,
      message: "is not a field path"),
    Mistake(
      text:
        #"{"fieldOverrides": [{"collectionGroup": "c", "fieldPath": "a", "indexes": []}, {"collectionGroup": "c", "fieldPath": "a", "indexes": []}]}"#,
      message: "fieldOverrides[1]: this field of c is already declared above"),
    Mistake(
      text: "{\"indexes\": [\n\(twice),\n\(twice)]}",
      message: "i.json:3:1: indexes[1]: the same index is already declared on line 2"),
  ]
  private static let twice =
    #"{"collectionGroup": "c", "fields": [{"fieldPath": "a", "order": "ASCENDING"}, {"fieldPath": "b", "order": "ASCENDING"}]}"#

  @Test func reportsThePlaceOfAMistake() {
    for mistake in Self.mistakes {
      do {
        _ = try read(mistake.text)
        Issue.record("no error for \(mistake.text)")
      } catch {
        #expect("\(error)".contains(mistake.message), "\(mistake.text)\n\(error)")
      }
    }
    do {
      _ = try IndexFile.read(
        ByteSource(Array(repeating: UInt8(ascii: " "), count: IndexFile.bytesMax + 1), name: "i.json"))
      Issue.record("no error for a file that is too long")
    } catch { #expect("\(error)".contains("is longer than")) }
  }
}
