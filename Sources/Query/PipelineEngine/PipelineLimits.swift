/// The limits of pipelines while they run.
package enum PipelineLimits {
  /// The time that the slices of a pipeline take together, in seconds. A longer pipeline gets DEADLINE_EXCEEDED.
  /// Source: pipelines.md, section 6.4.
  package static let runSecondsMax = 60
  /// The data that a pipeline holds in memory, in bytes: groups, samples, and results of nested pipelines. A pipeline
  /// that needs more gets RESOURCE_EXHAUSTED. Sorts continue in a temporary file. Source: Hearth's own limit, which
  /// bounds memory; Firestore allows 128 MiB (pipelines.md, section 6.4).
  package static let heldBytesMax = 32 << 20
  /// The same data of all pipelines of the process, in bytes. A pipeline that needs more gets RESOURCE_EXHAUSTED.
  /// Source: Hearth's own limit, which bounds memory.
  package static let processBytesMax = 32 << 20
  /// The stages of a request, with those of its nested pipelines. A request with more is INVALID_ARGUMENT. Source:
  /// Hearth's own limit, which bounds the stack and memory.
  package static let stagesMax = 500
  /// The variables of a request, with one for each nested pipeline. A request with more is INVALID_ARGUMENT. Source:
  /// Hearth's own limit, which bounds memory.
  package static let variablesMax = 500
  /// The words and phrases of a search. A longer text is INVALID_ARGUMENT. Source: Hearth's own limit, which bounds the
  /// time that a document holds a thread.
  package static let searchPhrasesMax = 100
  /// The conditions of one `where` stage that indexes and rules consider. Further ones are only evaluated on rows.
  /// Source: Hearth's own limit, which bounds the time of planning.
  static let plannedConditionsMax = 200
  /// The `where` stages whose conditions indexes and rules consider. Source: Hearth's own limit, which bounds the time
  /// of planning.
  static let plannedStagesMax = 20
  /// The elements of a list that indexes and rules consider. Source: Hearth's own limit, which bounds the time of
  /// planning.
  static let plannedElementsMax = 1000
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
