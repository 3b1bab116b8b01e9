import Basics
import DocumentModel
import Glibc

/// Strings and bytes (pipelines.md, section 4.5).
extension ExpressionEvaluator {
  /// The content of a string or of bytes.
  struct TextView {
    let bytes: UnsafeRawBufferPointer
    let isString: Bool

    /// Returns `nil` for values of other types.
    init?(_ value: ExpressionValue) {
      switch value {
      case .string(let text): (bytes, isString) = (text, true)
      case .bytes(let bytes): (self.bytes, isString) = (bytes, false)
      default: return nil
      }
    }

    /// A value of the same kind.
    func value(_ bytes: UnsafeRawBufferPointer) -> ExpressionValue { isString ? .string(bytes) : .bytes(bytes) }

    func value(_ range: Range<Int>) -> ExpressionValue { value(UnsafeRawBufferPointer(rebasing: bytes[range])) }
  }

  func text(_ function: ExpressionFunction, _ arguments: Arguments) -> ExpressionValue {
    switch function {
    case .length: return length(arguments[0])
    case .concat: return concatenation(arguments)
    case .stringConcat: return arguments.isEmpty ? fail(.stringConcat, .argument) : joined(arguments, isString: true)
    case .substring: return substring(arguments)
    case .join: return join(arguments)
    case .reverse where arguments[0].types == .array: return array(.arrayReverse, arguments)
    default: break
    }
    guard let text = TextView(arguments[0]) else { return fail(function, .type, 1) }
    guard charge(text.bytes.count >> 1) else { return exhausted(.work) }
    switch function {
    case .charLength: return .integer(Int64(UnicodeText.count(text.bytes)))
    case .byteLength: return .integer(Int64(text.bytes.count))
    case .toLower, .toUpper: return changedCase(text, isUpper: function == .toUpper)
    case .trim, .ltrim, .rtrim: return trimmed(function, text, arguments)
    case .reverse, .stringReverse: return reversed(text)
    case .stringRepeat: return repeated(text, arguments[1])
    default: return split(text, arguments)
    }
  }

  /// Returns a computed text, whose bytes are copied to the arena.
  func newText(_ bytes: [UInt8], isString: Bool) -> ExpressionValue {
    guard charge(bytes.count), let copy = copy(bytes) else { return exhausted(.memory) }
    return isString ? .string(copy) : .bytes(copy)
  }

  /// Returns an array of parts of a text.
  private func parts(_ ranges: [Range<Int>], of text: TextView) -> ExpressionValue {
    guard charge(8 * ranges.count), let items = items(ranges.count) else { return exhausted(.memory) }
    for (index, range) in ranges.enumerated() { (items.baseAddress! + index).initialize(to: text.value(range)) }
    return .array(UnsafeBufferPointer(items))
  }

  // MARK: Lengths and parts

  private func length(_ value: ExpressionValue) -> ExpressionValue {
    switch value {
    case .string(let text): .integer(Int64(UnicodeText.count(text)))
    case .bytes(let bytes): .integer(Int64(bytes.count))
    case .array, .encodedArray: .integer(Int64(ExpressionItems.count(value)))
    case .vector: .integer(Int64(components(value)?.count ?? 0))
    default: .integer(Int64(ExpressionEntries.count(value)))
    }
  }

  private func substring(_ arguments: Arguments) -> ExpressionValue {
    let text = TextView(arguments[0])
    guard arguments[0].isNothing || text != nil else { return fail(.substring, .type, 1) }
    guard case .integer(let start) = arguments[1].ordinary else { return fail(.substring, .type, 2) }
    var length = Int64.max
    if arguments.count == 3 {
      guard case .integer(let given) = arguments[2].ordinary else { return fail(.substring, .type, 3) }
      guard given >= 0 else { return fail(.substring, .negativeLength) }
      length = given
    }
    guard let text else { return .null }
    guard charge(text.bytes.count) else { return exhausted(.work) }
    let count = Int64(text.isString ? UnicodeText.count(text.bytes) : text.bytes.count)
    let first = Int(start < 0 ? max(0, count + max(start, -count)) : min(start, count))
    let taken = Int(min(length, count - Int64(first)))
    guard text.isString else { return text.value(first..<first + taken) }
    let from = UnicodeText.advance(text.bytes, from: 0, by: first)
    return text.value(from..<UnicodeText.advance(text.bytes, from: from, by: taken))
  }

  private func changedCase(_ text: TextView, isUpper: Bool) -> ExpressionValue {
    scratch.removeAll(keepingCapacity: true)
    if !text.isString || text.bytes.allSatisfy({ $0 < 0x80 }) {
      for byte in text.bytes { scratch.append(UnicodeText.changed(byte, isUpper: isUpper)) }
    } else {
      guard charge(100 * text.bytes.count) else { return exhausted(.work) }
      UnicodeText.append(text.bytes, isUpper: isUpper, to: &scratch)
    }
    return newText(scratch, isString: text.isString)
  }

  private func trimmed(_ function: ExpressionFunction, _ text: TextView, _ arguments: Arguments) -> ExpressionValue {
    var set: [Unicode.Scalar]?
    if arguments.count == 2 {
      guard let given = TextView(arguments[1]), given.isString == text.isString else { return fail(function, .type) }
      set =
        given.isString
        ? Array(String(decoding: given.bytes, as: UTF8.self).unicodeScalars) : given.bytes.map { Unicode.Scalar($0) }
    }
    let bytes = text.bytes
    func isTrimmed(_ start: Int, _ end: Int) -> Bool {
      let scalar = text.isString ? UnicodeText.scalar(bytes, start, end) : Unicode.Scalar(bytes[start])
      guard let set else { return text.isString ? UnicodeText.isSpace(scalar) : UnicodeText.isSpace(bytes[start]) }
      return charge(set.count) && set.contains(scalar)
    }
    var start = 0
    var end = bytes.count
    if function != .rtrim {
      while start < end {
        let next = text.isString ? UnicodeText.next(bytes, after: start) : start + 1
        guard isTrimmed(start, next) else { break }
        start = next
      }
    }
    if function != .ltrim {
      while end > start {
        let previous = text.isString ? UnicodeText.previous(bytes, before: end) : end - 1
        guard isTrimmed(previous, end) else { break }
        end = previous
      }
    }
    return text.value(start..<end)
  }

  private func reversed(_ text: TextView) -> ExpressionValue {
    let bytes = text.bytes
    guard let memory = arena.take(bytes: bytes.count) else { return exhausted(.memory) }
    let out = UnsafeMutableRawBufferPointer(start: memory, count: bytes.count)
    var start = 0
    while start < bytes.count {
      let end = text.isString ? UnicodeText.next(bytes, after: start) : start + 1
      for index in start..<end { out[bytes.count - end + index - start] = bytes[index] }
      start = end
    }
    return text.value(UnsafeRawBufferPointer(out))
  }

  // MARK: Joining and splitting

  private func concatenation(_ arguments: Arguments) -> ExpressionValue {
    guard arguments.count > 1 else { return fail(.concat, .argument) }
    let types = arguments[0].types
    return types == .array ? concatenated(arguments) : joined(arguments, isString: types == .string)
  }

  private func joined(_ arguments: Arguments, isString: Bool) -> ExpressionValue {
    var count = 0
    for argument in arguments { count += TextView(argument)?.bytes.count ?? 0 }
    guard charge(count), let memory = arena.take(bytes: count) else { return exhausted(.memory) }
    var offset = 0
    for argument in arguments {
      guard let bytes = TextView(argument)?.bytes, let start = bytes.baseAddress else { continue }
      (memory + offset).copyMemory(from: start, byteCount: bytes.count)
      offset += bytes.count
    }
    let bytes = UnsafeRawBufferPointer(start: memory, count: count)
    return isString ? .string(bytes) : .bytes(bytes)
  }

  private func repeated(_ text: TextView, _ times: ExpressionValue) -> ExpressionValue {
    guard case .integer(let times) = times else { return fail(.stringRepeat, .type, 2) }
    guard times >= 0 else { return fail(.stringRepeat, .argument, 2) }
    let (count, overflow) = times.multipliedReportingOverflow(by: Int64(text.bytes.count))
    guard !overflow, count <= Int64(ExpressionLimits.repeatedBytesMax) else { return fail(.stringRepeat, .overflow) }
    guard charge(Int(count)), let memory = arena.take(bytes: Int(count)) else { return exhausted(.memory) }
    if let start = text.bytes.baseAddress {
      for index in 0..<(text.bytes.isEmpty ? 0 : Int(times)) {
        (memory + index * text.bytes.count).copyMemory(from: start, byteCount: text.bytes.count)
      }
    }
    return text.value(UnsafeRawBufferPointer(start: memory, count: Int(count)))
  }

  private func split(_ text: TextView, _ arguments: Arguments) -> ExpressionValue {
    var delimiter = Self.bytes(",")
    if arguments.count == 2 {
      guard let given = TextView(arguments[1]), given.isString == text.isString else { return fail(.split, .type) }
      delimiter = given.bytes
    } else if !text.isString {
      return fail(.split, .type, 1)
    }
    var ranges: [Range<Int>] = []
    var start = 0
    if delimiter.isEmpty {
      while start < text.bytes.count {
        guard charge(16) else { return exhausted(.work) }
        let end = text.isString ? UnicodeText.next(text.bytes, after: start) : start + 1
        ranges.append(start..<end)
        start = end
      }
      if ranges.isEmpty { ranges.append(0..<0) }
      return parts(ranges, of: text)
    }
    while let found = find(delimiter, in: text.bytes, from: start) {
      guard charge(16) else { return exhausted(.work) }
      ranges.append(start..<found)
      start = found + delimiter.count
    }
    ranges.append(start..<text.bytes.count)
    return parts(ranges, of: text)
  }

  /// Returns the offset of the first occurrence at or after `start`, or `nil`. Cost: in practice one
  /// pass, at most the product of both lengths, until the work is used up.
  func find(_ needle: UnsafeRawBufferPointer, in text: UnsafeRawBufferPointer, from start: Int) -> Int? {
    guard needle.count <= text.count - start else { return nil }
    guard let base = text.baseAddress, let pattern = needle.baseAddress, !needle.isEmpty else { return start }
    var place = start
    let last = text.count - needle.count
    while place <= last, let found = memchr(base + place, Int32(needle[0]), last - place + 1) {
      place = UnsafeRawPointer(found) - base
      guard charge(4 + needle.count >> 3) else { return nil }
      if memcmp(base + place, pattern, needle.count) == 0 { return place }
      place += 1
    }
    return nil
  }

  private func join(_ arguments: Arguments) -> ExpressionValue {
    let array = arguments[0]
    guard array.types == .array || array.types == .null else { return fail(.join, .type, 1) }
    let delimiter = TextView(arguments[1])
    guard delimiter != nil || arguments[1].types == .null else { return fail(.join, .type, 2) }
    var filler: TextView?
    if arguments.count == 3 {
      filler = TextView(arguments[2])
      guard filler != nil || arguments[2].types == .null else { return fail(.join, .type, 3) }
      if filler == nil { return .null }
      guard filler?.isString == delimiter?.isString || delimiter == nil else { return fail(.join, .type, 3) }
    }
    guard let delimiter, array.types == .array else { return .null }
    scratch.removeAll(keepingCapacity: true)
    var isFirst = true
    var items = ExpressionItems(array)
    while let item = items.next() {
      guard let part = TextView(item) ?? (item.isNothing ? filler : nil) else {
        if item.isNothing { continue }
        return fail(.join, .type, 1)
      }
      guard part.isString == delimiter.isString else { return fail(.join, .type, 1) }
      if !isFirst { scratch.append(raw: delimiter.bytes) }
      scratch.append(raw: part.bytes)
      isFirst = false
      guard charge(delimiter.bytes.count + part.bytes.count), scratch.count <= ExpressionLimits.rowBytesMax else {
        return exhausted(.memory)
      }
    }
    return newText(scratch, isString: delimiter.isString)
  }
}
