import DocumentModel
import QueryEngine
import Synchronization

/// The shapes of the queries so far, with the indexes that production would require for them.
///
/// At most ``shapesMax`` shapes are recorded over all databases, about half a kilobyte each. Queries of other shapes
/// are executed but not recorded, and ``needs(in:)`` reports that the log is incomplete.
final class QueryLog: Sendable {
  /// The recorded data of one shape.
  final class Shape: Sendable {
    let database: DatabaseID
    let needs: IndexNeeds
    /// Whether the automatic single-field entries are enough.
    let isAutomatic: Bool

    fileprivate init(_ database: DatabaseID, _ needs: IndexNeeds) {
      self.database = database
      self.needs = needs
      isAutomatic = needs.isAutomatic
    }
  }

  static let shapesMax = 10_000

  private struct State {
    var shapes: [QueryShape: Shape] = [:]
    var hasForgotten = false
  }

  private let state = Mutex(State())

  /// Returns the needs of a query, and records its shape. Cost if the shape is recorded already: a hash and a
  /// lookup, 0.4 µs.
  func note(_ query: ResolvedQuery, aggregated: [FieldPath] = []) -> Shape {
    let key = QueryShape(query.query, aggregated: aggregated, in: query.database)
    if let known = state.withLock({ $0.shapes[key] }) { return known }
    let shape = Shape(query.database, IndexNeeds(query, aggregated: aggregated))
    state.withLock { state in
      if state.shapes.count < Self.shapesMax {
        state.shapes[key] = shape
      } else {
        state.hasForgotten = true
      }
    }
    return shape
  }

  /// Returns the needs of the shapes recorded for a database, and whether all shapes were recorded.
  func needs(in database: DatabaseID) -> (needs: [IndexNeeds], isComplete: Bool) {
    state.withLock { state in
      (state.shapes.values.filter { $0.database == database }.map(\.needs), !state.hasForgotten)
    }
  }
}
