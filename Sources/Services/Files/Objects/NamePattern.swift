/// A name pattern of the list parameter `matchGlob`. `*` and `?` match anything but a slash, `**` matches anything,
/// `**/` matches any number of folders, `[a-z]` and `[!a-z]` match one character, and `{a,b}` matches either text.
package struct NamePattern: Sendable {
  private enum Token: Sendable {
    case character(Unicode.Scalar)
    /// A character that is not a slash: one of these, or any other character if negated.
    case one(of: [ClosedRange<Unicode.Scalar>], isNegated: Bool)
    case withinFolder
    case anything
  }

  /// The longest pattern, in bytes. A pattern is also rejected if it expands to more than ``choicesMax``
  /// alternatives, or their total length exceeds ``placesMax``.
  package static let bytesMax = 1024
  private static let choicesMax = 64
  private static let placesMax = 4096

  private let choices: [[Token]]
  /// The total length of all alternatives.
  private let placeCount: Int

  /// Returns the most steps needed to match a name of the given length.
  package func steps(forNameOf bytes: Int) -> Int { placeCount * (bytes + 1) }

  /// Parses a pattern.
  /// - Throws: ``FilesError/invalid(_:)`` if the pattern is too long or a bracket is not closed.
  package init(_ text: String) throws(FilesError) {
    guard text.utf8.count <= Self.bytesMax else {
      throw .invalid("A name pattern may have at most \(Self.bytesMax) bytes.")
    }
    var choices: [[Token]] = []
    for plain in try Self.expand(Array(text.unicodeScalars)) { choices.append(try Self.tokens(plain)) }
    self.choices = choices
    placeCount = choices.reduce(0) { $0 + $1.count + 1 }
    guard placeCount <= Self.placesMax else {
      throw .invalid("The alternatives of a name pattern may have at most \(Self.placesMax) characters in total.")
    }
  }

  /// Returns whether a name matches. Cost: proportional to the product of both lengths.
  package func matches(_ name: some Collection<UInt8>) -> Bool {
    let characters = String(decoding: name, as: UTF8.self).unicodeScalars
    return choices.contains { Self.matches($0, characters) }
  }

  /// Returns the alternatives of a pattern, without braces.
  private static func expand(_ text: [Unicode.Scalar]) throws(FilesError) -> [[Unicode.Scalar]] {
    var open: [[Unicode.Scalar]] = [text]
    var plain: [[Unicode.Scalar]] = []
    while let text = open.popLast() {
      guard open.count + plain.count < choicesMax else {
        throw .invalid("A name pattern may have at most \(choicesMax) alternatives.")
      }
      if let start = text.firstIndex(of: "{") {
        guard let end = text[start...].firstIndex(of: "}") else { throw unclosed }
        let parts = text[(start + 1)..<end].split(separator: ",", omittingEmptySubsequences: false)
        for part in parts { open.append(Array(text[..<start] + part + text[(end + 1)...])) }
      } else {
        plain.append(text)
      }
    }
    return plain
  }

  private static let unclosed = FilesError.invalid("A bracket in the name pattern is not closed.")

  private static func tokens(_ text: [Unicode.Scalar]) throws(FilesError) -> [Token] {
    var tokens: [Token] = []
    var rest = text[...]
    while let character = rest.popFirst() {
      switch character {
      case "*" where rest.first == character:
        rest.removeFirst()
        tokens.append(.anything)
      case "*": tokens.append(.withinFolder)
      case "?": tokens.append(.one(of: [], isNegated: true))
      case "[":
        let isNegated = rest.first == "!" || rest.first == "^"
        if isNegated { rest.removeFirst() }
        guard let end = rest.firstIndex(of: "]") else { throw unclosed }
        tokens.append(.one(of: ranges(rest[..<end]), isNegated: isNegated))
        rest = rest[(end + 1)...]
      default: tokens.append(.character(character))
      }
    }
    return tokens
  }

  private static func ranges(_ text: ArraySlice<Unicode.Scalar>) -> [ClosedRange<Unicode.Scalar>] {
    var ranges: [ClosedRange<Unicode.Scalar>] = []
    var rest = text
    while let first = rest.popFirst() {
      if rest.first == "-", let last = rest.dropFirst().first {
        rest = rest.dropFirst(2)
        if first <= last { ranges.append(first...last) }
      } else {
        ranges.append(first...first)
      }
    }
    return ranges
  }

  /// Matches with the set of pattern positions that are reachable after the characters read so far.
  private static func matches(_ tokens: [Token], _ name: some Sequence<Unicode.Scalar>) -> Bool {
    let slash: Unicode.Scalar = "/"
    var places = [Bool](repeating: false, count: tokens.count + 1)
    places[0] = true
    /// Skips tokens that can match nothing. At the start of a name part, `**/` as a whole can match nothing.
    func pass(_ places: inout [Bool], isAtPartStart: Bool) {
      for index in tokens.indices where places[index] {
        switch tokens[index] {
        case .withinFolder: places[index + 1] = true
        case .anything:
          places[index + 1] = true
          if isAtPartStart, index + 1 < tokens.count, case .character(slash) = tokens[index + 1] {
            places[index + 2] = true
          }
        case .character, .one: break
        }
      }
    }
    pass(&places, isAtPartStart: true)
    for character in name {
      var next = [Bool](repeating: false, count: tokens.count + 1)
      for index in tokens.indices where places[index] {
        switch tokens[index] {
        case .character(let wanted): if character == wanted { next[index + 1] = true }
        case .one(let ranges, let isNegated):
          let isListed = ranges.contains { $0.contains(character) }
          if character != slash, isListed != isNegated { next[index + 1] = true }
        case .withinFolder: if character != slash { next[index] = true }
        case .anything: next[index] = true
        }
      }
      pass(&next, isAtPartStart: character == slash)
      places = next
      if !places.contains(true) { return false }
    }
    return places[tokens.count]
  }
}
