import DocumentModel
import WireFormat

/// Entry points for fuzzing. Each accepts any bytes, must not trap, and returns in bounded time.
package enum RulesFuzz {
  /// Compiles bytes as a ruleset. If they compile, prints the ruleset and evaluates requests.
  package static func ruleset(_ bytes: UnsafeRawBufferPointer) {
    let text = String(decoding: bytes, as: UTF8.self)
    do throws(RulesetError) {
      let ruleset = try Ruleset(compiling: text)
      _ = ruleset.printedProgram.utf8.count + ruleset.printedTree.utf8.count
      for diagnostic in ruleset.diagnostics { _ = diagnostic.rendered(file: "fuzz") }
      evaluate(ruleset)
    } catch {
      precondition(!error.diagnostics.isEmpty, "a RulesetError must contain diagnostics")
      let all = Ruleset.diagnostics(of: text, at: Timestamp(uncheckedMicroseconds: 0))
      precondition(error.diagnostics.allSatisfy(all.contains), "the list of errors must contain those of the compiler")
      for diagnostic in error.diagnostics { _ = diagnostic.rendered(file: "fuzz") }
    }
  }

  /// Compiles bytes as the condition of a rule, and evaluates requests.
  package static func expression(_ bytes: UnsafeRawBufferPointer) {
    let condition = String(decoding: bytes, as: UTF8.self)
    let text = """
      rules_version = '2'; service cloud.firestore { match /databases/{database}/documents {
      function f(x) { let y = x; return y; }
      match /t/{id} { allow read, write: if \(condition)
      ; } match /{p=**}/t/{id} { allow read: if \(condition)
      ; } } }
      """
    guard let ruleset = try? Ruleset(compiling: text) else { return }
    evaluate(ruleset)
  }

  /// Evaluates a ruleset with arbitrary bytes as the stored document.
  package static func storedDocument(_ bytes: UnsafeRawBufferPointer) {
    guard let ruleset = storedRules else { return }
    var request = BorrowedRulesRequest()
    request.database = RuleBytes.of("(default)")
    request.path = RuleBytes.of("t/x")
    request.resource = bytes
    request.newResource = bytes
    request.claims = bytes
    for method in [RulesMethod.get, .update] {
      request.method = method
      _ = Evaluator().decide(ruleset, request, explaining: .trace)
    }
  }

  private static let storedRules = try? Ruleset(
    compiling: """
      rules_version = '2'; service cloud.firestore { match /databases/{database}/documents/t/{id} {
      allow get: if resource.data.a == resource.data.b || resource.data == {'a': 1}
        || resource.data.keys().hasAny(['a']) || resource.data.values().toSet().size() == 1
        || resource.data.j[0] in resource.data.k || resource.data.f > 1
        || request.auth.token.a.b.c == 1 || string(resource.data.e) == 'x';
      allow update: if request.resource.data.diff(resource.data).affectedKeys().hasOnly(['a'])
        && request.resource.data.j == resource.data.j && resource.data.j.join(',') == 'x';
      } }
      """)

  private final class NoDocuments: DocumentLookup {
    func lookUp(
      _ path: UnsafeRawBufferPointer, isAfter: Bool, _ body: (UnsafeRawBufferPointer) -> Void
    ) -> LookupOutcome {
      if path.count % 2 == 0 { return .missing }
      body(UnsafeRawBufferPointer(start: nil, count: 0))
      return .found
    }
  }

  private static func evaluate(_ ruleset: Ruleset) {
    let fields = EncodedFields(
      MapValue([
        ("a", .integer(1)), ("s", .string("text")), ("l", .array([.integer(1), .string("z")])),
        ("m", .map(MapValue([("k", .double(5))]))), ("t", .timestamp(Timestamp(uncheckedMicroseconds: 1))),
      ]))
    let evaluator = Evaluator()
    let lookups = DocumentLookups(NoDocuments())
    for method in RulesMethod.allCases {
      var request = RulesRequest(
        method, ResourcePath(uncheckedBytes: Array((method == .list ? "t" : "t/x").utf8)),
        auth: RulesAuth(uid: "u", claims: MapValue([("admin", .boolean(true))])),
        time: Timestamp(uncheckedMicroseconds: 1_700_000_000_000_000))
      request.resource = fields
      request.newResource = fields
      let plain = evaluator.decide(ruleset, request, lookups: lookups)
      lookups.removeAll()
      let traced = evaluator.decide(ruleset, request, lookups: lookups, explaining: .trace)
      lookups.removeAll()
      precondition(plain.isAllowed == traced.isAllowed && plain.line == traced.line, "tracing must change nothing")
      guard method == .list else { continue }
      var query = Query(collectionID: "t")
      query.filter = .and([
        .field(FieldPath(field: "a"), .equal, .integer(1)), .field(FieldPath(field: "s"), .greaterThan, .string("a")),
      ])
      request.query = query
      for mode in [ProofMode.sound, .emulator] {
        _ = evaluator.decide(ruleset, request, lookups: lookups, mode: mode)
        lookups.removeAll()
      }
    }
  }
}
