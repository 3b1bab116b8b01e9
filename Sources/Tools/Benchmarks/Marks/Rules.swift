import DocumentModel
import RulesEngine
import WireFormat

extension Benchmark {
  static let rules = Benchmark(
    name: "rules",
    summary: "decisions of security rules in this process",
    meaning: """
      One evaluator on one thread evaluates the same request repeatedly. The owner checks read the token and the stored
      fields in place and allocate nothing. The long ruleset has over 500 lines, 80 match blocks and function calls. Its
      condition reads two other documents, which are in memory.
      """
  ) {
    var table = ResultTable("work", "ns each", "per second")
    Run.progress("rules")
    let ann = RulesAuth(uid: "ann", claims: MapValue([("sub", .string("ann")), ("admin", .boolean(false))]))
    var request = RulesRequest(
      .get, ResourcePath(uncheckedBytes: Array("users/ann".utf8)), auth: ann,
      time: Timestamp(uncheckedMicroseconds: 1_790_000_000_000_000))
    request.resource = EncodedFields(
      MapValue([
        ("name", .string("Ann")), ("owner", .string("ann")), ("tags", .array([.string("a")])), ("title", .string("x")),
      ]))
    try measure("request.auth.uid == userId", "request.auth.uid == userId", 2_000_000)
    try measure("resource.data.owner == request.auth.uid", "resource.data.owner == request.auth.uid", 2_000_000)
    try measure(
      "signed in, owner, and three fields checked",
      "request.auth != null && resource.data.owner == request.auth.uid && resource.data.title is string"
        + " && resource.data.tags.size() <= 5", 1_000_000)

    let long = try Ruleset(compiling: longRuleset)
    let documents = MemoryDocuments([
      "members/ann": MapValue([("role", .string("editor"))]), "rooms/lobby": MapValue([("open", .boolean(true))]),
    ])
    request.path = ResourcePath(uncheckedBytes: Array("c79/d1".utf8))
    try time("500 lines, 80 blocks, two get()", 200_000, long, DocumentLookups(documents))
    return table

    func measure(_ name: String, _ condition: String, _ count: Int) throws {
      let rules = try Ruleset(
        compiling: """
          rules_version = '2';
          service cloud.firestore {
            match /databases/{database}/documents {
              match /users/{userId} { allow read: if \(condition); }
            }
          }
          """)
      try time(name, count, rules, nil)
    }

    func time(_ name: String, _ count: Int, _ rules: Ruleset, _ lookups: DocumentLookups?) throws {
      let evaluator = Evaluator()
      var allowed = 0
      let watch = Stopwatch()
      request.withBorrowed { borrowed in
        for _ in 0..<count {
          if evaluator.decide(rules, borrowed, lookups: lookups).isAllowed { allowed += 1 }
          lookups?.removeAll()
        }
      }
      let seconds = watch.seconds
      guard allowed == count else { throw BenchmarkError("'\(name)' was denied") }
      table.add(name, Format.tenths(seconds / Double(count) * 1e9), Format.count(Double(count) / seconds))
    }
  }

  private static var longRuleset: String {
    var text = """
      rules_version = '2';
      service cloud.firestore {
        match /databases/{database}/documents {
          function role() {
            return get(/databases/$(database)/documents/members/$(request.auth.uid)).data.role;
          }
          function isOpen() {
            return get(/databases/$(database)/documents/rooms/lobby).data.open;
          }

      """
    for index in 0..<80 {
      text += """
            match /c\(index)/{id} {
              allow read: if request.auth != null
                && isOpen()
                && role() in ['editor', 'admin'];
              allow write: if role() == 'admin';
            }

        """
    }
    return text + "  }\n}\n"
  }
}

/// In-memory documents by path.
private final class MemoryDocuments: DocumentLookup {
  private let documents: [(path: [UInt8], fields: [UInt8])]

  init(_ documents: [String: MapValue]) {
    self.documents = documents.map { (Array($0.key.utf8), EncodedFields($0.value).bytes) }
  }

  func lookUp(
    _ path: UnsafeRawBufferPointer, isAfter: Bool, _ body: (UnsafeRawBufferPointer) -> Void
  ) -> LookupOutcome {
    guard let found = documents.first(where: { $0.path.elementsEqual(path) }) else { return .missing }
    found.fields.withUnsafeBytes(body)
    return .found
  }
}
