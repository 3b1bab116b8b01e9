/// The route of a request: the number of a row in the handler's table, and the parts of the path that the row
/// captures. An ``Exchange`` keeps it, so that the handler matches each request only once.
package struct RouteMatch: Sendable {
  /// A part of the request target, in bytes from its start.
  package struct Part: Sendable {
    package var start: Int32 = 0
    package var count: Int32 = 0

    /// Creates a part.
    package init(start: Int = 0, count: Int = 0) {
      self.start = Int32(start)
      self.count = Int32(count)
    }
  }

  /// The outcomes that are not a row's number.
  private static let (unmatched, missing): (Int32, Int32) = (-1, -2)

  private var row = Self.unmatched
  /// Whether a row has the path, but none of those rows has the method.
  package var isWrongMethod = false
  private var parts = (Part(), Part(), Part(), Part())
  /// The maximum number of captured parts.
  package static let partsMax = 4

  /// Creates a match that is not known yet.
  package init() {}

  /// Creates a match with a row. `parts` contains at most ``partsMax`` parts.
  package init(row: Int) { self.row = Int32(row) }

  /// The match of a path that no row has.
  package static var notFound: RouteMatch {
    var match = RouteMatch()
    match.row = missing
    return match
  }

  /// Whether the request has been matched, with or without success.
  package var isKnown: Bool { row != Self.unmatched }

  /// The number of the row, or `nil` if no row has the path.
  package var number: Int? { row >= 0 ? Int(row) : nil }

  /// The captured parts, in the order of the path.
  package subscript(index: Int) -> Part {
    get {
      switch index {
      case 0: parts.0
      case 1: parts.1
      case 2: parts.2
      default: parts.3
      }
    }
    set {
      switch index {
      case 0: parts.0 = newValue
      case 1: parts.1 = newValue
      case 2: parts.2 = newValue
      default: parts.3 = newValue
      }
    }
  }

  /// Sets the row of a match whose parts were captured before.
  package mutating func found(_ row: Int, isWrongMethod: Bool = false) {
    self.row = Int32(row)
    self.isWrongMethod = isWrongMethod
  }
}
