import DatabaseService
import RulesEngine
import RulesTesting
import Synchronization

/// Gathers what the expressions of a ruleset in force give.
final class CoverageObserver: DecisionObserver {
  private let gathered: Mutex<Coverage>

  private init(_ ruleset: Ruleset) { gathered = Mutex(Coverage(file: "firestore.rules", ruleset)) }

  /// The watcher of a ruleset, which watches from the first time on that somebody asks for it.
  static func of(_ guarding: ActiveRuleset) -> CoverageObserver? {
    guarding.watcher { CoverageObserver(guarding.ruleset) } as? CoverageObserver
  }

  func note(_ decision: Decision) { gathered.withLock { $0.add(decision) } }

  /// What came so far.
  var coverage: Coverage { gathered.withLock { $0 } }
}
