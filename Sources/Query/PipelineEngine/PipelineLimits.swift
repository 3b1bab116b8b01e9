/// The limits of a pipeline while it runs (pipelines.md, section 6.4).
package enum PipelineLimits {
  /// The time that the slices of a pipeline take together, in seconds. A longer pipeline gets DEADLINE_EXCEEDED.
  package static let runSecondsMax = 60
  /// The data that a pipeline holds in memory: groups, samples, and results of nested pipelines, in bytes. More is
  /// RESOURCE_EXHAUSTED. Sorts continue in a temporary file; see `ScratchLimits`.
  package static let heldBytesMax = 128 << 20
  /// The documents that a source reads ahead, in bytes. The last one may exceed it.
  static let batchBytes = 64 << 10
  /// The documents that a source reads ahead.
  static let batchRows = 256
  /// The encoded bytes of one sort key or group key. Longer keys of a sort are cut, so that rows that agree up to this
  /// length keep the order in which they came.
  static let sortKeyBytesMax = 16 << 10
  /// The bytes of a row up to which a sort holds it beside its key. Longer rows are written to the temporary file.
  static let sortedRowBytesMax = 32 << 10
  /// The writes of an update or delete stage that are committed together.
  package static let writesInFlightMax = 200
}
