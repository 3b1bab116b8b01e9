/// The limits of the memory and the temporary files that queries use while they run: to sort results, to search for the
/// nearest vectors, and to divide results into parts.
///
/// If a sort gets no more memory, it writes its results to a temporary file. If it gets no memory for that, it waits.
/// If it waits too long, or too many wait already, it fails with RESOURCE_EXHAUSTED.
package enum ScratchLimits {
  /// The memory of all queries of the process, in bytes. A query that needs more waits.
  package static let memoryBytesMax = 64 << 20
  /// The memory of one query, in bytes. A sort that needs more continues in a temporary file. Other work that needs
  /// more gets RESOURCE_EXHAUSTED.
  package static let queryMemoryBytesMax = 32 << 20
  /// A part of the memory of a sort, in bytes. A sort that has one can always continue in a temporary file.
  package static let chunkBytes = 512 << 10
  /// The memory of a small sort, in bytes. An eighth of ``memoryBytesMax`` is only for small sorts.
  package static let smallBytesMax = 64 << 10
  /// The temporary files of all queries of the process, in bytes. A query that needs more gets RESOURCE_EXHAUSTED.
  package static let fileBytesMax = 2 << 30
  /// The temporary file of one query, in bytes. A query that needs more gets RESOURCE_EXHAUSTED.
  package static let queryFileBytesMax = 512 << 20
  /// The queries that wait for memory. Another one gets RESOURCE_EXHAUSTED at once.
  package static let waitingMax = 256
  /// The time that a query waits for memory, in seconds. Then it gets RESOURCE_EXHAUSTED.
  package static let waitSecondsMax = 10
  /// The time that a query keeps its memory while its client reads nothing and other queries wait, in seconds. Then it
  /// gets RESOURCE_EXHAUSTED.
  package static let idleSecondsMax = 5
  /// The time that a query keeps its memory while other queries wait, in seconds. Then it gets RESOURCE_EXHAUSTED.
  package static let holdSecondsMax = 60
  /// The data that all pipelines of the process hold in memory, in bytes: groups, and results of nested pipelines. It is
  /// apart from ``memoryBytesMax``. A pipeline that needs more gets RESOURCE_EXHAUSTED at once.
  package static let pipelineBytesMax = 32 << 20
}
