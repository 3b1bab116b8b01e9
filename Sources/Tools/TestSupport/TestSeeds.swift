import Foundation

/// The seeds of random tests. They are the same in every run by default, so that a failing test indicates a change.
package enum TestSeeds {
  /// Returns the seed in an environment variable: a number, or `random` for a new one in each run. Without the
  /// variable, returns `fixed`.
  package static func of(_ variable: String, otherwise fixed: [UInt64]) -> [UInt64] {
    guard let text = ProcessInfo.processInfo.environment[variable] else { return fixed }
    return [UInt64(text) ?? UInt64.random(in: 1..<1_000_000)]
  }
}
