import DatabaseService
import RulesEngine
import RulesTesting
import Synchronization

/// Records the results of all expressions of a ruleset in force.
final class CoverageObserver: DecisionObserver {
  private let gathered: Mutex<Coverage>

  private init(_ ruleset: Ruleset) { gathered = Mutex(Coverage(file: "firestore.rules", ruleset)) }

  /// Returns the observer of a ruleset. It observes from the first call on.
  static func of(_ activeRuleset: ActiveRuleset) -> CoverageObserver? {
    activeRuleset.observer { CoverageObserver(activeRuleset.ruleset) } as? CoverageObserver
  }

  func note(_ decision: Decision) { gathered.withLock { $0.add(decision) } }

  /// The results recorded so far.
  var coverage: Coverage { gathered.withLock { $0 } }
}
