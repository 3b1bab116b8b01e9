/// The limits of the expressions of pipelines.
package enum ExpressionLimits {
  /// The nesting of an expression. A deeper expression is INVALID_ARGUMENT. Source: Hearth's own limit, which bounds
  /// the stack.
  package static let depthMax = 100
  /// The functions, fields and constants of all expressions of one stage. A larger stage is INVALID_ARGUMENT. Source:
  /// Hearth's own limit, which bounds memory.
  package static let nodesMax = 1_000_000
  /// The values that the expressions of one stage compute for one row, in bytes. A row that needs more fails with
  /// RESOURCE_EXHAUSTED. Source: Hearth's own limit, which bounds memory.
  package static let rowBytesMax = 32 << 20
  /// The work of the expressions of one stage for one row, in steps of about a nanosecond. A row that needs more fails
  /// with RESOURCE_EXHAUSTED. Source: Hearth's own limit, which bounds the time that a row holds a thread.
  package static let rowWorkMax = 100_000_000
  /// The result of `string_repeat`, in bytes. A longer result is an error. Source: pipelines.md, section 2.
  package static let repeatedBytesMax = 1 << 20
  /// The compiled patterns that expressions computed last, which the server keeps. Each takes at most 1 MiB. Source:
  /// Hearth's own limit, which bounds memory.
  package static let patternsKeptMax = 32
  /// The time zones that the server keeps in memory, a few KiB each. Source: Hearth's own limit, which bounds memory.
  package static let zonesKeptMax = 64
  /// The file of one time zone, in bytes. A larger file is ignored. Source: Hearth's own limit, which bounds memory.
  package static let zoneBytesMax = 256 << 10
  /// The nesting of a computed value, and the names in a field path. A deeper value is an error, and a longer path is
  /// INVALID_ARGUMENT. Source: Hearth's own limit, which bounds the stack.
  package static let valueDepthMax = 100
}
