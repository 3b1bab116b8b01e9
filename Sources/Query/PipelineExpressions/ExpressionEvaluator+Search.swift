import DocumentModel
import Glibc
import RegularExpressions

/// Searches within strings and bytes (pipelines.md, section 4.5).
extension ExpressionEvaluator {
  func search(_ node: ExpressionProgram.Node, _ arguments: Arguments) -> ExpressionValue {
    let function = node.function
    guard let text = TextView(arguments[0]), let pattern = TextView(arguments[1]),
      text.isString == pattern.isString
    else { return fail(function, .type) }
    guard charge(text.bytes.count + pattern.bytes.count) else { return exhausted(.work) }
    switch function {
    case .stringContains: return .boolean(find(pattern.bytes, in: text.bytes, from: 0) != nil)
    case .startsWith:
      return .boolean(text.bytes.prefix(pattern.bytes.count).elementsEqual(pattern.bytes))
    case .endsWith:
      return .boolean(text.bytes.suffix(pattern.bytes.count).elementsEqual(pattern.bytes))
    case .stringIndexOf:
      guard let place = find(pattern.bytes, in: text.bytes, from: 0) else { return .integer(-1) }
      let before = UnsafeRawBufferPointer(rebasing: text.bytes[..<place])
      return .integer(Int64(text.isString ? UnicodeText.count(before) : place))
    case .stringReplaceAll, .stringReplaceOne: return replaced(function, text, pattern, arguments[2])
    case .like: return like(text.bytes, pattern.bytes)
    default:
      guard let compiled = compiled(node, pattern.bytes) else {
        return work < 0 ? exhausted(.work) : fail(function, .invalidPattern, 2)
      }
      let result = matched(function, text, compiled)
      return work < 0 ? exhausted(.work) : result
    }
  }

  private func replaced(
    _ function: ExpressionFunction, _ text: TextView, _ pattern: TextView, _ replacement: ExpressionValue
  ) -> ExpressionValue {
    guard let replacement = TextView(replacement), replacement.isString == text.isString else {
      return fail(function, .type)
    }
    if pattern.bytes.isEmpty { return text.value(text.bytes) }
    scratch.removeAll(keepingCapacity: true)
    var start = 0
    while let found = find(pattern.bytes, in: text.bytes, from: start) {
      scratch.append(raw: UnsafeRawBufferPointer(rebasing: text.bytes[start..<found]))
      scratch.append(raw: replacement.bytes)
      start = found + pattern.bytes.count
      guard charge(16 + replacement.bytes.count), scratch.count <= ExpressionLimits.rowBytesMax else {
        return exhausted(.memory)
      }
      if function == .stringReplaceOne { break }
    }
    if start == 0 { return text.value(text.bytes) }
    scratch.append(raw: UnsafeRawBufferPointer(rebasing: text.bytes[start...]))
    return newText(scratch, isString: text.isString)
  }

  // MARK: Patterns of `like`

  /// Matches a whole text: `%` is any run, `_` one code point, and `\` makes the next code point literal.
  ///
  /// On a mismatch only the last `%` takes more, so the cost is at most the product of both lengths.
  private func like(_ text: UnsafeRawBufferPointer, _ pattern: UnsafeRawBufferPointer) -> ExpressionValue {
    var slashes = 0
    while slashes < pattern.count, pattern[pattern.count - 1 - slashes] == UInt8(ascii: "\\") { slashes += 1 }
    guard slashes.isMultiple(of: 2) else { return fail(.like, .invalidPattern, 2) }
    var (place, step) = (0, 0)
    // The step after the last `%`, and the place in the text at which the rest of the pattern was tried last.
    var (star, mark) = (-1, 0)
    while true {
      guard charge(4) else { return exhausted(.work) }
      if step < pattern.count, pattern[step] == UInt8(ascii: "%") {
        step += 1
        (star, mark) = (step, place)
        continue
      }
      if step == pattern.count, place == text.count { return .boolean(true) }
      if step < pattern.count, place < text.count, Self.advance(&step, pattern, &place, text) { continue }
      guard star >= 0, mark < text.count else { return .boolean(false) }
      mark = UnicodeText.next(text, after: mark)
      (place, step) = (mark, star)
    }
  }

  /// Matches one code point of the pattern. Advances both places if it matches.
  private static func advance(
    _ step: inout Int, _ pattern: UnsafeRawBufferPointer, _ place: inout Int, _ text: UnsafeRawBufferPointer
  ) -> Bool {
    if pattern[step] == UInt8(ascii: "_") {
      step += 1
      place = UnicodeText.next(text, after: place)
      return true
    }
    let literal = pattern[step] == UInt8(ascii: "\\") ? step + 1 : step
    guard pattern[literal] == text[place] else { return false }
    step = literal + 1
    place += 1
    return true
  }

  // MARK: Regular expressions

  /// Returns the compiled pattern: that of the program for a literal, otherwise a recent one or a new one. Returns
  /// `nil` if RE2 rejects it or the work is used up.
  private func compiled(_ node: ExpressionProgram.Node, _ text: UnsafeRawBufferPointer) -> Pattern? {
    if node.c >= 0 { return program.patterns[Int(node.c)] }
    guard charge(PatternShape.costOfCompiling(text)) else { return nil }
    return Self.patterns.pattern(text)
  }

  private func matched(
    _ function: ExpressionFunction, _ text: TextView, _ pattern: Pattern
  ) -> ExpressionValue {
    let charge: (Int) -> Bool = { self.charge($0) }
    switch function {
    case .regexMatch: return .boolean(pattern.matches(text.bytes, charge: charge))
    case .regexContains:
      var isFound = false
      pattern.forEachMatch(in: text.bytes, groups: 0, charge: charge) { _ in
        isFound = true
        return false
      }
      return .boolean(isFound)
    default: break
    }
    guard pattern.groupCount <= 1 else { return fail(function, .invalidPattern, 2) }
    let group = pattern.groupCount
    var found: [ExpressionValue] = []
    pattern.forEachMatch(in: text.bytes, groups: group, charge: charge) { bounds in
      let start = bounds[2 * group]
      found.append(start < 0 ? .null : text.value(start..<bounds[2 * group + 1]))
      return function == .regexFindAll
    }
    if function == .regexFind { return found.first ?? .null }
    guard let items = items(found.count) else { return exhausted(.memory) }
    _ = items.initialize(from: found)
    return .array(UnsafeBufferPointer(items))
  }
}
