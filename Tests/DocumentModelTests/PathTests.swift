import DocumentModel
import Testing

@Suite struct ResourceIDTests {
  static let numbers: [(String, Int64?)] = [
    ("__id7__", 7), ("__id-7__", -7), ("__id9223372036854775807__", .max), ("__id-9223372036854775808__", .min),
    ("__id9223372036854775808__", nil), ("__id-9223372036854775809__", nil), ("__id07__", nil), ("__id+7__", nil),
    ("__id0__", nil), ("__id-0__", nil), ("__id__", nil), ("__id-__", nil), ("__id7_", nil), ("_id7__", nil),
    ("__id7___", nil), ("__id7x__", nil), ("", nil), ("7", nil),
  ]

  @Test(arguments: numbers.indices)
  func findsTheNumberOfAnID(row: Int) {
    let (text, number) = Self.numbers[row]
    #expect(ResourceID.number(text.utf8) == number)
  }

  @Test(arguments: [
    ("____", true), ("__x__", true), ("__é__", true), ("___", false), ("__", false), ("__x_", false), ("_x__", false),
    ("", false), ("x", false),
  ])
  func recognizesReservedIDs(text: String, isReserved: Bool) {
    #expect(ResourceID.isReserved(text.utf8) == isReserved)
  }

  @Test func ordersIDsAsNames() {
    let ladder = ["__id-9__", "__id-1__", "__id2__", "__id10__", "-", "10", "2", "__id", "__id1_", "a", "é", "😀"]
    for (low, a) in ladder.enumerated() {
      for (high, b) in ladder.enumerated() {
        #expect(ResourceID.compare(Array(a.utf8), Array(b.utf8)) == Ordering(low, high), "\(a) compared with \(b)")
      }
    }
  }
}

@Suite struct ResourcePathTests {
  static let accepted: [(text: String, segments: Int)] = [
    ("", 0), ("c", 1), ("c/d", 2), ("c/d/e", 3), ("c/a b.c", 2), ("c/...", 2), ("c/__id5__", 2), ("c/é😀", 2),
    (String(repeating: "x", count: 1500), 1),
    (Array(repeating: "c/d", count: 100).joined(separator: "/"), 200),
  ]

  @Test(arguments: accepted.indices)
  func acceptsValidPaths(row: Int) throws {
    let (text, segments) = Self.accepted[row]
    let path = try ResourcePath(text)
    #expect(path.text == text)
    #expect(path.segmentCount == segments)
    #expect(path.segments.count == segments)
    #expect(path.isRoot == (segments == 0))
    #expect(path.isDocument == (segments > 0 && segments.isMultiple(of: 2)))
    #expect(path.isCollection == !segments.isMultiple(of: 2))
    #expect((DocumentKey(path) != nil) == path.isDocument)
    if segments > 0 {
      #expect(path.parent.appending(path.lastSegment) == path)
      #expect(path.isAtOrBelow(path.parent))
      #expect(!path.parent.isAtOrBelow(path))
    }
  }

  static let refused: [(String, ModelError)] = [
    ("/", .emptyResourceID(path: "/", index: 0)), ("c//d", .emptyResourceID(path: "c//d", index: 1)),
    ("c/", .emptyResourceID(path: "c/", index: 1)), ("c/.", .dotResourceID(path: "c/.", id: ".", index: 1)),
    ("../d", .dotResourceID(path: "../d", id: "..", index: 0)),
    ("__c__/d", .reservedResourceID(id: "__c__", isCollection: true)),
    ("__id5__/d", .reservedResourceID(id: "__id5__", isCollection: true)),
    ("c/__x__", .reservedResourceID(id: "__x__", isCollection: false)),
    (String(repeating: "x", count: 1501), .resourceIDTooLong),
    (Array(repeating: "c/d", count: 101).joined(separator: "/"), .pathTooDeep),
    (Array(repeating: String(repeating: "x", count: 1499), count: 5).joined(separator: "/"), .documentNameTooLong),
  ]

  @Test(arguments: refused.indices)
  func refusesInvalidPaths(row: Int) {
    let (text, error) = Self.refused[row]
    #expect(throws: error) { try ResourcePath(text) }
  }

  @Test func ordersPathsBySegment() throws {
    let ladder = ["", "a", "a/__id3__", "a/__id20__", "a/b", "a/b/c", "a/b/c/d", "a/b-", "a-", "b"]
    for (low, a) in ladder.enumerated() {
      for (high, b) in ladder.enumerated() {
        #expect(ResourcePath.compare(try ResourcePath(a), try ResourcePath(b)) == Ordering(low, high), "\(a), \(b)")
      }
    }
  }

  @Test func comparesAncestorsByWholeSegments() throws {
    #expect(try ResourcePath("a/b").isAtOrBelow(try ResourcePath("a")))
    #expect(try !ResourcePath("ab/c").isAtOrBelow(try ResourcePath("a")))
    #expect(try ResourcePath("ab/c").isAtOrBelow(.root))
  }

  @Test func comparesPathsAsBytes() throws {
    let paths = [try ResourcePath("c/\u{E9}"), try ResourcePath("c/e\u{301}")]
    #expect(Set(paths).count == 2)
  }
}

@Suite struct ResourceNameTests {
  @Test func parsesAndPrints() throws {
    let text = "projects/p/databases/(default)/documents/c/d/e/f"
    let (database, key) = try ResourceName.document(text.utf8)
    #expect(database == DatabaseID(project: "p"))
    #expect(key.description == "c/d/e/f")
    #expect(ResourceName(database: database, path: key.path).text == text)
    let root = try ResourceName.parent("projects/p/databases/x/documents".utf8)
    #expect(root.path.isRoot)
    #expect(root.text == "projects/p/databases/x/documents")
    #expect(try ResourceName.database("projects/p/databases/x".utf8) == DatabaseID(project: "p", database: "x"))
  }

  static let refused: [(String, String)] = [
    ("", #"Document name "" lacks "projects" at index 0."#),
    ("c/d", #"Document name "c/d" lacks "projects" at index 0."#),
    ("projects", #"Document name "projects" lacks "projects" at index 0."#),
    ("projects/p/documents", #"Document name "projects/p/documents" lacks "databases" at index 11."#),
    ("projects/p/databases/d", #"Document name "projects/p/databases/d" lacks "documents" at index 22."#),
    ("projects/p/databases/d/documents", #"Document name "projects/p/databases/d/documents" lacks "/" at index 32."#),
    (
      "projects/p/databases/d/documents/c",
      #"Document name "projects/p/databases/d/documents/c" lacks "/" at index 34."#
    ),
    ("projects//databases/d/documents/c/d", "Invalid project or database id \"/d\"."),
    ("projects/../databases/d/documents/c/d", "Invalid project or database id \"../d\"."),
  ]

  @Test(arguments: refused.indices)
  func refusesInvalidNames(row: Int) {
    let (text, expected) = Self.refused[row]
    do {
      _ = try ResourceName.document(text.utf8)
      Issue.record("no error for \(text)")
    } catch {
      #expect(error.description == expected)
    }
  }
}

@Suite struct FieldPathTests {
  static let accepted: [(String, [String])] = [
    ("a", ["a"]), ("a.b", ["a", "b"]), ("_a1.B_2", ["_a1", "B_2"]), ("`a.b`", ["a.b"]),
    ("a.`b c`.d", ["a", "b c", "d"]),
    ("`\\``", ["`"]), ("`\\\\`", ["\\"]), ("`1`", ["1"]), ("`é`", ["é"]), ("__name__", ["__name__"]), ("`a`", ["a"]),
  ]

  @Test(arguments: accepted.indices)
  func parsesValidPaths(row: Int) throws {
    let (text, segments) = Self.accepted[row]
    let path = try FieldPath(text)
    #expect(path.segments == segments)
    #expect(try FieldPath(path.text) == path)
    #expect(path.isDocumentName == (text == "__name__"))
  }

  static let malformed = ["a.", ".a", "a..b", "1a", "a b", "`a", "``", "`a`b", "a`b`", "`a\\", "é", "a-b", "a.`", "*"]

  @Test(arguments: malformed)
  func refusesMalformedPaths(text: String) {
    #expect(throws: ModelError.invalidFieldPath(text)) { try FieldPath(text) }
  }

  static let refused: [(String, ModelError)] = [
    ("", .emptyFieldPath), ("a.__x__", .reservedFieldPath("a.__x__")),
    ("a.__name__", .reservedFieldPath("a.__name__")), (String(repeating: "a", count: 1501), .fieldNameTooLong),
  ]

  @Test(arguments: refused.indices)
  func refusesInvalidFieldNames(row: Int) {
    let (text, error) = Self.refused[row]
    #expect(throws: error) { try FieldPath(text) }
  }

  @Test func masksDropPathsInsideShorterOnes() throws {
    let rows: [([String], [String])] = [
      ([], []), (["b", "a"], ["a", "b"]), (["a.b", "a"], ["a"]), (["a.b", "a.c", "a.b.d"], ["a.b", "a.c"]),
      (["a", "a"], ["a"]), (["a.b", "ab", "a"], ["a", "ab"]), (["`a.b`", "a"], ["a", "`a.b`"]),
    ]
    for (paths, kept) in rows {
      let mask = FieldMask(try paths.map { try FieldPath($0) })
      #expect(mask.paths.map(\.text) == kept, "\(paths)")
    }
  }

  @Test func comparesPathsAsBytes() {
    #expect(FieldPath(field: "\u{E9}") != FieldPath(field: "e\u{301}"))
    #expect(Set([FieldPath(field: "\u{E9}"), FieldPath(field: "e\u{301}")]).count == 2)
    #expect(FieldPath(segments: ["a", "b"]) != FieldPath(segments: ["ab"]))
  }
}
