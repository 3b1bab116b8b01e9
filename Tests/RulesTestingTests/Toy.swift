import DocumentModel
import RulesEngine
import RulesTesting

/// A small ruleset with cases for it.
enum Toy {
  static let rules = """
    rules_version = '2';
    service cloud.firestore {
      match /databases/{database}/documents {
        match /rooms/{room} {
          allow read: if owns(resource.data);
          allow create: if owns(request.resource.data) && request.resource.data.size < 10;
          allow update: if owns(resource.data)
            && request.resource.data.size == resource.data.size + 1;
          allow delete: if false;
        }
        match /logs/{log} {
          allow create: if getAfter(/databases/$(database)/documents/rooms/$(log)).data.size == 3;
          allow get: if exists(/databases/$(database)/documents/rooms/$(log));
        }
        function owns(data) {
          return data.owner == request.auth.uid;
        }
      }
    }
    """

  static let time = Timestamp(uncheckedMicroseconds: 1_746_878_400_000_000)

  /// Returns a test file with the rules and the cases.
  static func file(_ cases: String, more: String = "") -> String {
    """
    {
     "rules": \(quoted(rules)),
     "time": "2025-05-10T12:00:00Z",\(more)
     "documents": {"$collections": ["rooms"], "rooms": {"r1": {"owner": "ann", "size": 1, "at": {"x": 1, "y": 2}}}},
     "cases": [
    \(cases)
    ]}
    """
  }

  static func suite(_ cases: String, more: String = "") throws -> RuleTestSuite {
    try SuiteReader(now: time).read(Array(file(cases, more: more).utf8), file: "toy.tests.json")
  }

  /// Runs the cases. Returns the run and its coverage.
  static func run(_ cases: String) throws -> (run: SuiteRun, coverage: Coverage) {
    let suite = try suite(cases)
    let ruleset = try Ruleset(compiling: suite.rules)
    let empty = Coverage(file: "toy.rules", ruleset)
    var coverage: Coverage? = empty
    let run = SuiteRun(suite, by: ruleset, coverage: &coverage)
    return (run, coverage ?? empty)
  }

  static func quoted(_ text: String) -> String {
    "\"" + text.replacing("\\", with: "\\\\").replacing("\"", with: "\\\"").replacing("\n", with: "\\n") + "\""
  }
}
