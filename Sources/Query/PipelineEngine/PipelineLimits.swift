/// The limits of pipelines while they run.
package enum PipelineLimits {
  /// The time that the slices of a pipeline take together, in seconds. A longer pipeline gets DEADLINE_EXCEEDED.
  /// Source: pipelines.md, section 6.4.
  package static let runSecondsMax = 60
  /// The data that a pipeline holds in memory, in bytes: groups, samples, and results of nested pipelines. A pipeline
  /// that needs more gets RESOURCE_EXHAUSTED. Sorts continue in a temporary file. Source: pipelines.md, section 6.4.
  package static let heldBytesMax = 128 << 20
  /// The same data of all pipelines of the process, in bytes. A pipeline that needs more gets RESOURCE_EXHAUSTED.
  /// Source: Hearth's own limit, which bounds memory.
  package static let processBytesMax = 128 << 20
  /// The writes of an update or delete stage that are committed together. The stage then continues with the next ones.
  /// Source: Hearth's own limit, which bounds memory.
  package static let writesInFlightMax = 200
  /// The documents that a source reads ahead, in bytes. The last one may exceed it. Source: Hearth's own limit, which
  /// bounds memory.
  static let batchBytesMax = 64 << 10
  /// The documents that a source reads ahead. Source: Hearth's own limit, which bounds memory.
  static let batchRowsMax = 256
  /// The encoded bytes of one value of a sort. Longer values are cut: rows that agree up to this length keep the order
  /// in which they came. Source: Hearth's own limit, which bounds memory.
  static let sortKeyBytesMax = 16 << 10
  /// The bytes of a row that a sort keeps beside its key. Longer rows are written to the temporary file at once.
  /// Source: Hearth's own limit, which bounds memory.
  static let sortedRowBytesMax = 32 << 10
}
