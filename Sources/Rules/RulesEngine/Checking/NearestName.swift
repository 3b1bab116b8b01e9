/// Finds the name that a misspelled name probably means.
package enum NearestName {
  /// The greatest number of edits between a name and a suggestion.
  private static let distanceMax = 2

  /// Returns `did you mean 'x'?`, or `nil` if no candidate is similar.
  package static func hint(for name: String, among candidates: some Sequence<String>) -> String? {
    var best: (name: String, distance: Int)?
    let typed = Array(name.utf8)
    for candidate in candidates.sorted() where candidate != name {
      let distance = distance(typed, Array(candidate.utf8))
      let isNear = distance <= distanceMax && distance < max(typed.count, 2) - 1
      if isNear, distance < best?.distance ?? .max { best = (candidate, distance) }
    }
    return best.map { "did you mean '\($0.name)'?" }
  }

  /// Returns how many UTF-8 bytes must be inserted, deleted, replaced or swapped with a neighbor. ASCII case is
  /// ignored. Returns `.max` if the lengths differ by more than ``distanceMax`` bytes, or if `a` has more than 64 bytes.
  private static func distance(_ a: [UInt8], _ b: [UInt8]) -> Int {
    guard abs(a.count - b.count) <= distanceMax, a.count <= 64 else { return .max }
    func same(_ x: UInt8, _ y: UInt8) -> Bool { x == y || (x | 0x20 == y | 0x20 && x | 0x20 >= 0x61) }
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in a.indices {
      var row = [i + 1]
      for j in b.indices {
        var cost = min(last[j] + (same(a[i], b[j]) ? 0 : 1), last[j + 1] + 1, row[j] + 1)
        if i > 0, j > 0, same(a[i], b[j - 1]), same(a[i - 1], b[j]) { cost = min(cost, beforeLast[j - 1] + 1) }
        row.append(cost)
      }
      beforeLast = last
      last = row
    }
    return last[b.count]
  }
}
