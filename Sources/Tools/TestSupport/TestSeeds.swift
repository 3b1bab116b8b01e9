import Foundation

/// Where random tests start: the same every time unless asked otherwise, so that a test that fails has found a change.
package enum TestSeeds {
  /// The seed in an environment variable, alone: a number, or `random` for another one each time. Otherwise `fixed`.
  package static func of(_ variable: String, otherwise fixed: [UInt64]) -> [UInt64] {
    guard let text = ProcessInfo.processInfo.environment[variable] else { return fixed }
    return [UInt64(text) ?? UInt64.random(in: 1..<1_000_000)]
  }
}
