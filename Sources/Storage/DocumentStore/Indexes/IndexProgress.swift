/// The progress of background work on an index or a field.
struct IndexProgress: Equatable, Sendable {
  /// The number of documents processed.
  var documents: UInt64 = 0
  /// The position to resume from, encoded by the type of work; empty at the start.
  var position: [UInt8] = []
}
