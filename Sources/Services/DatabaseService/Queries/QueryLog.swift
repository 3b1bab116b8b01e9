import DocumentModel
import QueryEngine
import Synchronization

/// The shapes of the queries that were served, with the indexes that the service in production would want for them.
///
/// Bounded: at most ``shapesMax`` shapes over all databases, about half a kilobyte each. Later ones are served all the
/// same but not remembered, and ``suggestions(for:)`` says so.
final class QueryLog: Sendable {
  /// What is known of one shape.
  final class Shape: Sendable {
    let database: DatabaseID
    let needs: IndexNeeds
    /// Whether the entries that every field has by itself are enough.
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

  /// What a query needs; remembers its shape. Cost for a shape that was seen before: a hash and a
  /// look-up, 0.4 µs.
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

  /// The needs of the shapes seen in a database, and whether none were forgotten.
  func needs(in database: DatabaseID) -> (needs: [IndexNeeds], isComplete: Bool) {
    state.withLock { state in
      (state.shapes.values.filter { $0.database == database }.map(\.needs), !state.hasForgotten)
    }
  }
}
