package import RulesEngine

/// Who calls.
package enum Caller: Sendable {
  /// An administrator, whom no rules concern.
  case admin
  /// Somebody whom the rules judge: signed in, or not (`nil`).
  case user(RulesAuth?)
}
