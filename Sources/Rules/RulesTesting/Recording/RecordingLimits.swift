/// The limits of a recording of cases.
package enum RecordingLimits {
  /// The distinct cases of one recording. Further decisions are counted but not recorded. Source: Hearth.
  package static let casesMax = 50_000
  /// The text of all cases of one recording, in bytes: half of the size of a test file. Further decisions are counted
  /// but not recorded. Source: Hearth.
  package static let bytesMax = 32 << 20
  /// The rulesets of one recording, each of which gets a file. Decisions of further rulesets are counted but not
  /// recorded. Source: Hearth.
  package static let rulesetsMax = 100
}
