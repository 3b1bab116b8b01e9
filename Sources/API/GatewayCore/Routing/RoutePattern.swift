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
  /// A segment, whose text is borrowed from the pattern.
  enum Segment {
    case literal(UnsafeRawBufferPointer)
    case one
    case rest(Parity)
  }

  /// The numbers of segments that a capture of several segments matches.
  enum Parity: UInt8, Sendable { case any, even, odd }

  /// The pattern, as written.
  package let text: String

  init(_ text: String) { self.text = text }

  /// Calls `body` with the bytes of the path without the verb, and with the verb after it, including its colon. The verb
  /// is empty if the pattern has none. A malformed pattern of the route table is a programming error.
  ///
  /// A server reads hundreds of patterns whenever it starts, so this allocates nothing.
  func withParts(_ body: (_ path: UnsafeRawBufferPointer, _ verb: UnsafeRawBufferPointer) -> Void) {
    var text = text
    text.withUTF8 { utf8 in
      let bytes = UnsafeRawBufferPointer(utf8)
      precondition(bytes.first == UInt8(ascii: "/"), "malformed route pattern")
      var end = bytes.count
      while end > 0, bytes[end - 1] != UInt8(ascii: "}"), bytes[end - 1] != UInt8(ascii: "/") { end -= 1 }
      // A verb follows a capture. Otherwise a colon is part of a literal segment.
      if bytes[end - 1] == UInt8(ascii: "/") { end = bytes.count }
      precondition(end == bytes.count || bytes[end] == UInt8(ascii: ":"), "malformed route pattern")
      body(UnsafeRawBufferPointer(rebasing: bytes[..<end]), UnsafeRawBufferPointer(rebasing: bytes[end...]))
    }
  }

  /// Returns the segment of a path that starts at `start`, and the start of the next one, which is after the end of the
  /// path if none follows.
  static func segment(of path: UnsafeRawBufferPointer, at start: Int) -> (segment: Segment, next: Int) {
    var end = start
    while end < path.count, path[end] != UInt8(ascii: "/") { end += 1 }
    let text = UnsafeRawBufferPointer(rebasing: path[start..<end])
    guard text.first == UInt8(ascii: "{") else { return (.literal(text), end + 1) }
    guard text.count > 4, text[text.count - 2] == UInt8(ascii: ".") else { return (.one, end + 1) }
    precondition(end == path.count, "the capture of several segments is not the last segment")
    let parity: Parity =
      text.dropping("{document.") != nil ? .even : text.dropping("{collection.") != nil ? .odd : .any
    return (.rest(parity), end + 1)
  }
}
