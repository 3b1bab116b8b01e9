import Synchronization

/// The number of bytes that readers have read from files, for a display of progress. One thread reads, another may
/// show the number.
package final class ReadMeter: Sendable {
  private let count = Atomic(0)

  package init() {}

  /// The bytes read so far, as they are in the files.
  package var bytes: Int { count.load(ordering: .relaxed) }

  func add(_ bytes: Int) { count.wrappingAdd(bytes, ordering: .relaxed) }

  /// Starts again at 0, for another pass over the files.
  package func reset() { count.store(0, ordering: .relaxed) }
}
