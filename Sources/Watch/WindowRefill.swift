import DocumentModel
import DocumentStore
import KeyValue
import Matching
import QueryEngine
import WireFormat

/// Reads the results that a window holds, in slices, each on its own snapshot.
final class WindowRefill {
  /// The results of a completed refill.
  struct Contents: Sendable {
    /// The version that the entries show.
    let version: Int64
    let entries: [ResultWindow.Entry]
  }

  /// The version at which the results are read.
  let version: Int64
  private let execution: QueryExecution
  private var range: QueryRange?
  private var entries: [ResultWindow.Entry] = []

  /// Plans the query of a window at a version. The version must be readable on every snapshot.
  init(
    _ query: WatchedQuery, _ snapshot: any KeyValueSnapshot, at version: Int64, _ options: PlanOptions
  ) throws {
    self.version = version
    range = query.range
    execution = try QueryExecution(query.filling, snapshot, at: version, options)
  }

  /// Whether the query waits for scratch space; see ``QueryEngine/QueryResults/wait(_:)``.
  func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { execution.wait(wake) }

  /// The results once all are read, otherwise `nil`.
  var contents: Contents? { execution.isAtEnd ? Contents(version: version, entries: entries) : nil }

  /// Reads a slice.
  func slice(_ snapshot: any KeyValueSnapshot) throws {
    try execution.slice(snapshot, units: QueryExecution.sliceUnits) { key, document in
      var place: [UInt8] = []
      if try range?.place(of: EncodedMap(documentFields: document.fields), at: key.path, into: &place) ?? false {
        // The key's memory is reused for the next result.
        let path = ResourcePath(uncheckedBytes: key.path.bytes.map { $0 })
        entries.append(ResultWindow.Entry(place: place, path: path))
      }
      return true
    }
  }
}
