/// The form of a route's path: `/v1/projects/{project}/databases/{database}/documents/{path...}:runQuery`.
///
/// - A segment without braces matches itself.
/// - `{name}` matches one segment, and captures it.
/// - `{name...}` matches all further segments, also none. `{document...}` matches an even number of segments from 2,
///   and `{collection...}` an odd number. It must be the last segment.
/// - A `:verb` after a capture matches the end of the last segment, which the capture then does not include.
///
/// A pattern captures at most four parts.
package struct RoutePattern: Sendable {
  enum Segment: Equatable, Sendable {
    case literal([UInt8])
    case one
    case rest(Parity)
  }

  /// The numbers of segments that a capture of several segments matches.
  enum Parity: UInt8, Sendable { case any, even, odd }

  /// The pattern, as written.
  package let text: String
  let segments: [Segment]
  /// The verb after the last segment, with its colon; empty without a verb.
  let verb: [UInt8]

  /// Parses a pattern of the route table. A malformed pattern is a programming error.
  init(_ text: String) {
    self.text = text
    var parts = text.dropFirst().split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    var verb = ""
    if let last = parts.last, let brace = last.lastIndex(of: "}") {
      verb = String(last[last.index(after: brace)...])
      parts[parts.count - 1] = String(last[...brace])
    }
    precondition(text.hasPrefix("/") && (verb.isEmpty || verb.hasPrefix(":")), "malformed route pattern \(text)")
    self.verb = Array(verb.utf8)
    segments = parts.map { part in
      guard part.hasPrefix("{") else { return .literal(Array(part.utf8)) }
      switch part {
      case "{document...}": return .rest(.even)
      case "{collection...}": return .rest(.odd)
      default: return part.hasSuffix("...}") ? .rest(.any) : .one
      }
    }
    precondition(segments.dropLast().allSatisfy { if case .rest = $0 { false } else { true } }, "rest is not last")
    precondition(segments.count { if case .literal = $0 { false } else { true } } <= 4, "too many captures")
  }
}
