/// The limits of pipelines while they run.
package enum PipelineLimits {
  /// The time that the slices of a pipeline take together, in seconds. A longer pipeline gets DEADLINE_EXCEEDED.
  /// Source: pipelines.md, section 6.4.
  package static let runSecondsMax = 60
  /// The data that a pipeline holds in memory, in bytes: groups, and results of nested pipelines. A pipeline that needs
  /// more gets RESOURCE_EXHAUSTED. Sorts, samples and groups continue in a temporary file, but one group must fit.
  /// Source: Hearth's own limit, which bounds memory; Firestore allows 128 MiB (pipelines.md, section 6.4).
  package static let heldBytesMax = 32 << 20
  /// The groups of one stage, in bytes. Further groups begin after these have been written to a temporary file. Source:
  /// Hearth's own limit, which bounds memory.
  package static let groupBytesMax = 24 << 20
  /// The runs of a nested pipeline after which the server may group the documents of all rows at once. Source: Hearth's
  /// own choice.
  package static let runsBeforeGroups = 200
  /// The stages of a request, with those of its nested pipelines. A request with more is INVALID_ARGUMENT. Source:
  /// Hearth's own limit, which bounds the stack and memory.
  package static let stagesMax = 500
  /// The variables of a request, with one for each nested pipeline. A request with more is INVALID_ARGUMENT. Source:
  /// Hearth's own limit, which bounds memory.
  package static let variablesMax = 500
  /// The words and phrases of a search. A longer text is INVALID_ARGUMENT. Source: Hearth's own limit, which bounds the
  /// time that a document holds a thread.
  package static let searchPhrasesMax = 100
  /// The text of a search, in bytes. A longer text is INVALID_ARGUMENT. Source: Hearth's own limit, which bounds the
  /// time of planning.
  package static let searchTextBytesMax = 16 << 10
  /// The words of a search, with those inside phrases. A longer text is INVALID_ARGUMENT. Source: Hearth's own limit,
  /// which bounds the index scans of a search.
  package static let searchWordsMax = 200
  /// The conditions of one `where` stage that indexes and rules consider. Further ones are only evaluated on rows.
  /// Source: Hearth's own limit, which bounds the time of planning.
  static let plannedConditionsMax = 200
  /// The `where` stages whose conditions indexes and rules consider. Source: Hearth's own limit, which bounds the time
  /// of planning.
  static let plannedStagesMax = 20
  /// The conditions of a request, with those of its nested pipelines, that indexes and rules consider. Further ones are
  /// only evaluated on rows. A listener whose conditions have more parts is INVALID_ARGUMENT. Source: Hearth's own
  /// limit, which bounds the time of planning.
  package static let requestConditionsMax = 1000
  /// The checks that find the legal conditions of one source among others. Source: Hearth's own limit, which bounds the
  /// time of planning.
  static let plannedChecksMax = 24
  /// The elements of a list that indexes and rules consider. Source: Hearth's own limit, which bounds the time of
  /// planning.
  static let plannedElementsMax = 1000
  /// The writes of an update or delete stage that are committed together. The stage then continues with the next ones.
  /// Source: Hearth's own limit, which bounds memory.
  package static let writesInFlightMax = 200
  /// The times that an update or delete stage evaluates documents again because they changed before they were written.
  /// Then it gets ABORTED. Source: Hearth's own choice.
  package static let writeAttemptsMax = 10
  /// The documents that an update or delete stage evaluates again at once. If more have changed, it gets ABORTED.
  /// Source: Hearth's own limit, which bounds memory.
  package static let changedDocumentsMax = 10_000
  /// The documents that a source reads ahead, in bytes. The last one may exceed it. Source: Hearth's own limit, which
  /// bounds memory.
  static let batchBytesMax = 64 << 10
  /// The documents that a source reads ahead. Source: Hearth's own limit, which bounds memory.
  static let batchRowsMax = 256
  /// The encoded bytes of a document's name in a sort. Longer names are cut. Other values are cut as in the entries of
  /// indexes (``Limits/indexedValueBytesMax``), so that a sort gives the same rows with and without an index. Source:
  /// Hearth's own limit, which bounds memory.
  static let sortedNameBytesMax = 16 << 10
  /// The bytes of a row that a sort keeps beside its key. Longer rows are written to the temporary file at once.
  /// Source: Hearth's own limit, which bounds memory.
  static let sortedRowBytesMax = 32 << 10
}
