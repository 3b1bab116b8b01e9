/// A pattern of names, as lists take it in `matchGlob`: `*` and `?` stand for what holds no slash, `**` for anything,
/// `**/` for any number of folders, `[a-z]` and `[!a-z]` for one character, `{a,b}` for either.
package struct NamePattern: Sendable {
  private enum Token: Sendable {
    case character(Unicode.Scalar)
    /// A character that is no slash: one of these, or none of them.
    case one(of: [ClosedRange<Unicode.Scalar>], isNegated: Bool)
    case withinFolder
    case anything
  }

  /// Longer patterns are refused, and so are those that stand for more than ``choicesMax`` others, or for others that
  /// are longer than ``placesMax`` together.
  package static let bytesMax = 1024
  private static let choicesMax = 64
  private static let placesMax = 4096

  private let choices: [[Token]]
  /// The lengths of all that it stands for.
  private let placeCount: Int

  /// Steps that comparing with a name of so many bytes takes at most.
  package func steps(forNameOf bytes: Int) -> Int { placeCount * (bytes + 1) }

  /// Reads a pattern.
  /// - Throws: ``FilesError/invalid(_:)`` where it is too long or a bracket stays open.
  package init(_ text: String) throws(FilesError) {
    guard text.utf8.count <= Self.bytesMax else {
      throw .invalid("A pattern of names has at most \(Self.bytesMax) bytes.")
    }
    var choices: [[Token]] = []
    for plain in try Self.expand(Array(text.unicodeScalars)) { choices.append(try Self.tokens(plain)) }
    self.choices = choices
    placeCount = choices.reduce(0) { $0 + $1.count + 1 }
    guard placeCount <= Self.placesMax else {
      throw .invalid("A pattern of names stands for others of at most \(Self.placesMax) characters in all.")
    }
  }

  /// Whether a name is one of the pattern's. Cost: the product of the lengths of both.
  package func matches(_ name: some Collection<UInt8>) -> Bool {
    let characters = String(decoding: name, as: UTF8.self).unicodeScalars
    return choices.contains { Self.matches($0, characters) }
  }

  /// The patterns without braces and `**/` that a pattern stands for.
  private static func expand(_ text: [Unicode.Scalar]) throws(FilesError) -> [[Unicode.Scalar]] {
    var open: [[Unicode.Scalar]] = [text]
    var plain: [[Unicode.Scalar]] = []
    while let text = open.popLast() {
      guard open.count + plain.count < choicesMax else {
        throw .invalid("A pattern of names stands for at most \(choicesMax) others.")
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

  private static let unclosed = FilesError.invalid("A bracket of the pattern of names is not closed.")

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

  /// Keeps the set of places in the pattern that the name read so far leads to.
  private static func matches(_ tokens: [Token], _ name: some Sequence<Unicode.Scalar>) -> Bool {
    let slash: Unicode.Scalar = "/"
    var places = [Bool](repeating: false, count: tokens.count + 1)
    places[0] = true
    /// Tokens that may stand for nothing are passed; `**/` at the beginning of a part may stand for nothing as a whole.
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
