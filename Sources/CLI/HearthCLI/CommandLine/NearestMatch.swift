/// Finds the known name that a mistyped one is closest to.
enum NearestMatch {
  /// Returns the candidate that the fewest edits lead to, or `nil` if none is near.
  static func find(_ word: String, in candidates: [String]) -> String? {
    let letters = Array(word.utf8)
    guard letters.count <= 40 else { return nil }
    let near = candidates.map { (name: $0, edits: edits(letters, Array($0.utf8))) }.min { $0.edits < $1.edits }
    guard let near, near.edits <= max(1, min(3, letters.count / 2)) else {
      return candidates.first { word.count >= 2 && $0.hasPrefix(word) }
    }
    return near.name
  }

  /// Returns the first candidate that contains the word's letters in order, from its first letter on, or `nil` if none
  /// does. Words of fewer than three letters abbreviate nothing.
  static func abbreviated(_ word: String, in candidates: [String]) -> String? {
    guard word.utf8.count >= 3 else { return nil }
    return candidates.first { candidate in
      var rest = Array(word.utf8)[...]
      guard candidate.utf8.first == rest.first else { return false }
      for letter in candidate.utf8 where letter == rest.first { rest.removeFirst() }
      return rest.isEmpty
    }
  }

  /// Returns the number of insertions, deletions, replacements and swaps of neighbors that turn one word into the
  /// other.
  private static func edits(_ a: [UInt8], _ b: [UInt8]) -> Int {
    var beforeLast: [Int] = []
    var last = Array(0...b.count)
    for i in 0..<a.count {
      var row = [i + 1]
      for j in 0..<b.count {
        var best = min(row[j] + 1, last[j + 1] + 1, last[j] + (a[i] == b[j] ? 0 : 1))
        if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { best = min(best, beforeLast[j - 1] + 1) }
        row.append(best)
      }
      beforeLast = last
      last = row
    }
    return last[b.count]
  }
}
