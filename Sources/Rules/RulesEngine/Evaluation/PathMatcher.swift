/// Matches the paths of requests against the patterns of match blocks.
enum PathMatcher {
  /// Matches a path of known length, and sets `captures`. Cost: linear in the path.
  ///
  /// For a query, the last segment is unknown (`isLastUnknown`). Only captures match it, and their value is
  /// `unknown`, a failure.
  static func matches(
    _ pattern: MatchPattern, _ segments: UnsafeMutableBufferPointer<MatchPattern.Segment>,
    _ path: UnsafeBufferPointer<PathSegment>, isLastUnknown: Bool, unknown: RuleValue,
    _ captures: UnsafeMutablePointer<RuleValue>
  ) -> Bool {
    let count = Int(pattern.segmentCount)
    let first = Int(pattern.firstSegment)
    guard path.count >= Int(pattern.segmentsMin) else { return false }
    let glob = Int(pattern.globIndex)
    guard glob >= 0 || path.count == count else { return false }
    let covered = path.count - count + 1
    var place = 0
    for index in 0..<count {
      switch segments[first + index] {
      case .glob(let capture):
        let isUnknown = isLastUnknown && place + covered == path.count
        captures[capture] =
          isUnknown ? unknown : .path(UnsafeBufferPointer(rebasing: path[place..<(place + covered)]))
        place += covered
      case .capture(let capture):
        captures[capture] = isLastUnknown && place == path.count - 1 ? unknown : .string(path[place].text)
        place += 1
      case .literal(let text):
        if isLastUnknown && place == path.count - 1 { return false }
        if !RuleBytes.equal(path[place].text, text) { return false }
        place += 1
      }
    }
    return true
  }

  /// Matches the documents of a collection group at any depth below a parent. `path` is the parent, then the
  /// collection ID, then the unknown document. A pattern matches only if it has a glob, which covers any depth,
  /// followed by at most `behindMax` segments.
  static func matchesGroup(
    _ pattern: MatchPattern, _ segments: UnsafeMutableBufferPointer<MatchPattern.Segment>,
    _ path: UnsafeBufferPointer<PathSegment>, segmentsAfterGlobMax: Int, unknown: RuleValue,
    _ captures: UnsafeMutablePointer<RuleValue>
  ) -> Bool {
    let first = Int(pattern.firstSegment)
    let glob = Int(pattern.globIndex)
    let behind = Int(pattern.segmentCount) - glob - 1
    guard glob >= 0, behind <= segmentsAfterGlobMax, glob <= path.count - 2 else { return false }
    for index in 0..<glob {
      switch segments[first + index] {
      case .literal(let text):
        if !RuleBytes.equal(path[index].text, text) { return false }
      case .capture(let capture): captures[capture] = .string(path[index].text)
      case .glob: return false
      }
    }
    for index in 0..<behind {
      let place = path.count - behind + index
      let isUnknown = place == path.count - 1
      switch segments[first + glob + 1 + index] {
      case .literal(let text):
        if isUnknown || !RuleBytes.equal(path[place].text, text) { return false }
      case .capture(let capture): captures[capture] = isUnknown ? unknown : .string(path[place].text)
      case .glob: return false
      }
    }
    if case .glob(let capture) = segments[first + glob] { captures[capture] = unknown }
    return true
  }
}
