import Basics
import RegularExpressions
import WireFormat

/// Strings, bytes and paths.
extension Evaluator {
  /// Evaluates `string(value)`.
  func string(_ value: RuleValue) -> RuleValue {
    switch value {
    case .failure, .string: return value
    case .null: return .string(RuleBytes.of("null"))
    case .bool(let flag): return .string(flag ? RuleBytes.of("true") : RuleBytes.of("false"))
    case .int(let number): return text(Array(String(number).utf8))
    case .float(let number):
      var out: [UInt8] = []
      FloatText.append(number, to: &out)
      return text(out)
    case .path(let segments):
      if segments.isEmpty { return .string(RuleBytes.of("/")) }
      guard charge(segments.count * 32) else { return stopFailure }
      return concatenated(
        segments.flatMap { segment in [RuleBytes.of("/"), segment.text] })
    default:
      return failure(
        .arguments, text: RuleBytes.of("string"), items: CollectionOfOne(value),
        group: Int32(Builtins.group("string", isMethod: false) ?? 0))
    }
  }

  /// Evaluates `path(text)`. The segments are URL-decoded; `{name}` and `{name=**}` are captures.
  func path(_ text: UnsafeRawBufferPointer) -> RuleValue {
    guard charge(4 * text.count) else { return stopFailure }
    if text.isEmpty { return failure(.emptyPath) }
    let bytes = Array(text)
    let body = bytes.first == UInt8(ascii: "/") ? bytes.dropFirst() : bytes[...]
    var segments: [PathSegment] = []
    for whole in body.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false) {
      guard charge(200 + 4 * whole.count) else { return stopFailure }
      let piece = Self.trimmed(whole)
      if piece.isEmpty { return failure(.pathTemplate, text: text) }
      if piece.first == UInt8(ascii: "{") {
        guard piece.last == UInt8(ascii: "}") else { return failure(.pathTemplate, text: text) }
        var inner = piece.dropFirst().dropLast()
        let isGlob = inner.suffix(3).elementsEqual("=**".utf8)
        if isGlob || inner.suffix(2).elementsEqual("=*".utf8) { inner = inner.dropLast(isGlob ? 3 : 2) }
        inner = Self.trimmed(inner)
        guard let first = inner.first, Lexer.startsWord(first),
          inner.allSatisfy({ Lexer.startsWord($0) || Lexer.isDigit($0) })
        else { return failure(.pathTemplate, text: text) }
        guard let name = copied(Array(inner)), charge(4 * segments.count) else { return stopFailure }
        guard !segments.contains(where: { $0.kind != .simple && RuleBytes.equal($0.name, name) }) else {
          return failure(.pathTemplate, text: text)
        }
        segments.append(PathSegment(isGlob ? .globCapture : .capture, name: name, text: RuleBytes.of("")))
      } else {
        guard Self.isDecodable(piece) else { return failure(.pathDecoding, text: text) }
        guard let decoded = copied(Literal.decodedSegment(piece)) else { return stopFailure }
        segments.append(PathSegment(decoded))
      }
    }
    return path(segments)
  }

  private static func trimmed(_ bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8> {
    var part = bytes.drop { $0 <= 0x20 }
    while let last = part.last, last <= 0x20 { part.removeLast() }
    return part
  }

  private static func isDecodable(_ piece: ArraySlice<UInt8>) -> Bool {
    var rest = piece
    while let percent = rest.firstIndex(of: UInt8(ascii: "%")) {
      guard percent + 2 < rest.endIndex, Hexadecimal.digit(rest[percent + 1]) != nil,
        Hexadecimal.digit(rest[percent + 2]) != nil
      else { return false }
      rest = rest[(percent + 3)...]
    }
    return true
  }

  private func path(_ segments: [PathSegment]) -> RuleValue {
    guard let copy = arena.take(PathSegment.self, segments.count) else { return outOfMemory() }
    let buffer = UnsafeMutableBufferPointer(start: copy, count: segments.count)
    _ = buffer.initialize(from: segments)
    return .path(UnsafeBufferPointer(buffer))
  }

  /// Evaluates `path.bind(map)`. Like the engine, it leaves out captures that the map does not name.
  func bind(_ template: RuleValue, _ map: RuleValue) -> RuleValue {
    guard case .path(let segments) = template, let entries = entries(map) else { return stopFailure }
    guard charge(8 * segments.count * (entries.count + 1)) else { return stopFailure }
    for entry in entries
    where !segments.contains(where: { $0.kind != .simple && RuleBytes.equal($0.name, entry.key) }) {
      return failure(.unknownVariables, text: entry.key)
    }
    var bound: [PathSegment] = []
    for segment in segments {
      guard segment.kind != .simple, let value = entries.first(where: { RuleBytes.equal($0.key, segment.name) })?.value
      else {
        if segment.isBound { bound.append(segment) }
        continue
      }
      switch segment.kind {
      case .capture:
        let text = string(value)
        guard case .string(let bytes) = text else { return text }
        if bytes.isEmpty { return failure(.emptyBinding, text: segment.name) }
        bound.append(PathSegment(.boundCapture, name: segment.name, text: bytes))
      case .globCapture:
        guard case .path(let parts) = value else { return failure(.type, text: "path", value) }
        if let unbound = parts.first(where: { !$0.isBound }) {
          return failure(.unboundVariable, text: unbound.name)
        }
        for (place, part) in parts.enumerated() {
          bound.append(PathSegment(.boundGlob, name: segment.name, text: part.text, startsGlob: place == 0))
        }
      default: return failure(.unknownVariables, text: segment.name)
      }
    }
    return path(bound)
  }

  // MARK: Methods of strings and bytes

  /// Calls a method of a string or bytes, or `join`.
  func callText(_ builtin: Builtin, _ node: Program.Node, _ values: UnsafeBufferPointer<RuleValue>) -> RuleValue {
    if builtin == .join { return join(values[0], values[1]) }
    let text: UnsafeRawBufferPointer
    switch values[0] {
    case .string(let bytes), .bytes(let bytes): text = bytes
    default: return failure(.damaged)
    }
    guard charge(self.cost(builtin) * text.count) else { return stopFailure }
    switch builtin {
    case .stringSize: return .int(Int64(UTF16Text.count(text)))
    case .bytesSize: return .int(Int64(text.count))
    case .toUTF8: return .bytes(text)
    case .lower: return self.text(text.map { (0x41...0x5A).contains($0) ? $0 + 0x20 : $0 })
    case .upper: return self.text(text.map { (0x61...0x7A).contains($0) ? $0 - 0x20 : $0 })
    case .trim:
      var part = text[...]
      while let first = part.first, first <= 0x20 { part = part.dropFirst() }
      while let last = part.last, last <= 0x20 { part = part.dropLast() }
      return .string(UnsafeRawBufferPointer(rebasing: part))
    case .toBase64:
      var out: [UInt8] = []
      Base64.append(text, .url, to: &out)
      return self.text(out)
    case .toHexString:
      let digits = Array("0123456789ABCDEF".utf8)
      var out: [UInt8] = []
      out.reserveCapacity(2 * text.count)
      for byte in text {
        out.append(digits[Int(byte >> 4)])
        out.append(digits[Int(byte & 15)])
      }
      return self.text(out)
    default:
      guard case .string(let expression) = values[1] else { return failure(.damaged) }
      guard let pattern = pattern(node, expression) else {
        return stopped == nil ? failure(.pattern, text: expression) : stopFailure
      }
      switch builtin {
      case .matches:
        let isMatch = pattern.matches(text) { charge($0) }
        return stopped == nil ? .bool(isMatch) : stopFailure
      case .split: return split(text, pattern)
      default: return replace(text, pattern, values[2])
      }
    }
  }

  /// The steps for each byte of the text that a method reads.
  private func cost(_ builtin: Builtin) -> Int {
    switch builtin {
    case .toUTF8, .bytesSize, .matches: 0
    case .stringSize, .split, .replace: 1
    case .trim: 2
    case .lower, .upper: 3
    default: 6
    }
  }

  /// Returns a compiled pattern: that of the program for a literal, otherwise that of ``PatternCache``. Returns `nil`
  /// if the pattern is invalid or the budget of work is used up.
  private func pattern(_ node: Program.Node, _ text: UnsafeRawBufferPointer) -> Pattern? {
    if node.pattern >= 0, let program { return program.regularExpressions[Int(node.pattern)] }
    // The charge does not depend on the contents of the cache.
    guard charge(PatternShape.costOfCompiling(text)) else { return nil }
    return Self.patterns.pattern(text)
  }

  private func join(_ list: RuleValue, _ separator: RuleValue) -> RuleValue {
    if case .partialKeys = list { return failure(.unknownByQuery) }
    guard let items = items(list), case .string(let separator) = separator else { return stopFailure }
    var parts: [UnsafeRawBufferPointer] = []
    for (place, item) in items.enumerated() {
      guard charge(32) else { return stopFailure }
      let text = string(item)
      guard case .string(let bytes) = text else { return text }
      if place > 0 { parts.append(separator) }
      parts.append(bytes)
    }
    return concatenated(parts)
  }

  /// Splits a string at the matches. Drops trailing empty strings, but keeps at least one string.
  private func split(_ text: UnsafeRawBufferPointer, _ pattern: Pattern) -> RuleValue {
    var pieces: [RuleValue] = []
    var last = 0
    var kept = 0
    pattern.forEachMatch(in: text, groups: 0, charge: { charge($0) }) { bounds in
      pieces.append(.string(UnsafeRawBufferPointer(rebasing: text[last..<bounds[0]])))
      if bounds[0] > last { kept = pieces.count }
      last = bounds[1]
      return true
    }
    if stopped != nil { return stopFailure }
    if last < text.count {
      pieces.append(.string(UnsafeRawBufferPointer(rebasing: text[last...])))
      kept = pieces.count
    }
    if kept == 0 {
      pieces = [.string(RuleBytes.of(""))]
      kept = 1
    }
    guard stopped == nil, let copy = arena.take(RuleValue.self, kept) else { return outOfMemory() }
    let list = UnsafeMutableBufferPointer(start: copy, count: kept)
    _ = list.initialize(from: pieces.prefix(kept))
    return .list(UnsafeBufferPointer(list))
  }

  private func replace(_ text: UnsafeRawBufferPointer, _ pattern: Pattern, _ replacement: RuleValue) -> RuleValue {
    guard case .string(let template) = replacement else { return failure(.damaged) }
    var out: [UInt8] = []
    var last = 0
    var isValid = true
    pattern.forEachMatch(in: text, groups: pattern.groupCount, charge: { charge($0) }) { bounds in
      out.append(contentsOf: text[last..<bounds[0]])
      last = bounds[1]
      isValid = append(template, pattern, text, bounds, to: &out)
      return isValid && stopped == nil && out.count <= Self.memoryBytesMax
    }
    guard stopped == nil, out.count <= Self.memoryBytesMax else { return outOfMemory() }
    guard isValid else { return failure(.replacement, text: template) }
    out.append(contentsOf: text[last...])
    return self.text(out)
  }

  /// Appends a replacement: `$1` and `${name}` are groups, and a backslash quotes the next character. Returns
  /// whether the groups exist. Stops once a budget is used up.
  private func append(
    _ template: UnsafeRawBufferPointer, _ pattern: Pattern, _ text: UnsafeRawBufferPointer,
    _ bounds: UnsafeBufferPointer<Int>, to out: inout [UInt8]
  ) -> Bool {
    func appendGroup(_ number: Int) {
      guard bounds[2 * number] >= 0 else { return }
      let group = text[bounds[2 * number]..<bounds[2 * number + 1]]
      if charge(16 + group.count >> 2) { out.append(contentsOf: group) }
    }
    var index = 0
    while index < template.count, charge(4), out.count <= Self.memoryBytesMax {
      let byte = template[index]
      let next = index + 1 < template.count ? template[index + 1] : 0
      if byte == UInt8(ascii: "\\"), index + 1 < template.count {
        out.append(next)
        index += 2
      } else if byte == UInt8(ascii: "$"), Lexer.isDigit(next) {
        var number = Int(next - 0x30)
        guard number <= pattern.groupCount else { return false }
        index += 2
        // Further digits belong to the number if such a group exists.
        while index < template.count, Lexer.isDigit(template[index]),
          case let longer = number * 10 + Int(template[index] - 0x30), longer <= pattern.groupCount
        {
          number = longer
          index += 1
        }
        appendGroup(number)
      } else if byte == UInt8(ascii: "$"), next == UInt8(ascii: "{") {
        guard let end = template[(index + 2)...].firstIndex(of: UInt8(ascii: "}")),
          let number = pattern.group(named: UnsafeRawBufferPointer(rebasing: template[(index + 2)..<end]))
        else { return false }
        appendGroup(number)
        index = end + 1
      } else {
        out.append(byte)
        index += 1
      }
    }
    return true
  }
}
