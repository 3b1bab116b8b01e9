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

    fileprivate init(_ text: ArraySlice<UInt8>) {
      if text.first != UInt8(ascii: "{") {
        self = .literal(Array(text))
      } else if text.suffix(4).elementsEqual("...}".utf8) {
        let name = text.dropFirst().dropLast(4)
        let parity: Parity =
          name.elementsEqual("document".utf8) ? .even : name.elementsEqual("collection".utf8) ? .odd : .any
        self = .rest(parity)
      } else {
        self = .one
      }
    }
  }

  /// The numbers of segments that a capture of several segments matches.
  enum Parity: UInt8, Sendable { case any, even, odd }

  /// The pattern, as written.
  package let text: String

  init(_ text: String) { self.text = text }

  /// Returns the segments, and the verb after the last one with its colon; an empty verb if the pattern has none. A
  /// malformed pattern of the route table is a programming error.
  ///
  /// The result is not stored, because only a router needs it, once. Bytes are compared rather than characters: a
  /// server parses hundreds of patterns whenever it starts.
  func parsed() -> (segments: [Segment], verb: [UInt8]) {
    var bytes = Array(text.utf8)
    precondition(bytes.first == UInt8(ascii: "/"), "malformed route pattern \(text)")
    var verb: [UInt8] = []
    let last = (bytes.lastIndex(of: UInt8(ascii: "/")) ?? 0) + 1
    if let brace = bytes[last...].lastIndex(of: UInt8(ascii: "}")), brace < bytes.count - 1 {
      verb = Array(bytes[(brace + 1)...])
      precondition(verb.first == UInt8(ascii: ":"), "malformed route pattern \(text)")
      bytes.removeSubrange((brace + 1)...)
    }
    let segments = bytes.dropFirst().split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
      .map { Segment($0) }
    precondition(segments.dropLast().allSatisfy { if case .rest = $0 { false } else { true } }, "rest is not last")
    precondition(segments.count { if case .literal = $0 { false } else { true } } <= 4, "too many captures")
    return (segments, verb)
  }
}
