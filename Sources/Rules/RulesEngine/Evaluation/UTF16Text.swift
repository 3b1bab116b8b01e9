import Basics

/// Functions for text in UTF-8 that the rules language counts in UTF-16 code units.
///
/// A lone half of a surrogate pair is encoded in three bytes, like a character.
enum UTF16Text {
  /// Appends a code unit. A low half that follows a high half becomes one character with it.
  static func append(unit: UInt32, to out: inout [UInt8]) {
    if (0xDC00...0xDFFF).contains(unit), out.count >= 3, out[out.count - 3] == 0xED, out[out.count - 2] & 0xF0 == 0xA0 {
      let high = 0xD000 | UInt32(out[out.count - 2] & 0x3F) << 6 | UInt32(out[out.count - 1] & 0x3F)
      out.removeLast(3)
      append(scalar: 0x10000 + (high - 0xD800) << 10 + (unit - 0xDC00), to: &out)
    } else {
      append(scalar: unit, to: &out)
    }
  }

  private static func append(scalar: UInt32, to out: inout [UInt8]) {
    withEncoded(scalar) { out.append(contentsOf: $0) }
  }

  /// Calls `body` with the UTF-8 bytes of a scalar, one to four.
  private static func withEncoded(_ scalar: UInt32, _ body: (Slice<UnsafeMutableBufferPointer<UInt8>>) -> Void) {
    withUnsafeTemporaryAllocation(of: UInt8.self, capacity: 4) { buffer in
      body(buffer[..<encode(scalar, to: UnsafeMutableRawBufferPointer(buffer), at: 0)])
    }
  }

  /// Writes the bytes of a scalar at `offset`. Returns the offset after them.
  static func encode(_ scalar: UInt32, to out: UnsafeMutableRawBufferPointer, at offset: Int) -> Int {
    func put(_ index: Int, _ value: UInt32) { out[offset + index] = UInt8(truncatingIfNeeded: value) }
    switch scalar {
    case ..<0x80:
      put(0, scalar)
      return offset + 1
    case ..<0x800:
      put(0, 0xC0 | scalar >> 6)
      put(1, 0x80 | scalar & 0x3F)
      return offset + 2
    case ..<0x10000:
      put(0, 0xE0 | scalar >> 12)
      put(1, 0x80 | scalar >> 6 & 0x3F)
      put(2, 0x80 | scalar & 0x3F)
      return offset + 3
    default:
      put(0, 0xF0 | scalar >> 18)
      put(1, 0x80 | scalar >> 12 & 0x3F)
      put(2, 0x80 | scalar >> 6 & 0x3F)
      put(3, 0x80 | scalar & 0x3F)
      return offset + 4
    }
  }

  /// Returns the number of code units. Cost: one pass.
  static func count(_ text: UnsafeRawBufferPointer) -> Int {
    var count = 0
    for byte in text {
      if byte & 0xC0 != 0x80 { count += 1 }
      if byte >= 0xF0 { count += 1 }
    }
    return count
  }

  /// Returns the scalar at `offset` and advances `offset`. Accepts ill-formed bytes without trapping.
  @inline(__always)
  static func scalar(_ text: UnsafeRawBufferPointer, _ offset: inout Int) -> UInt32 {
    let first = UInt32(text[offset])
    offset += 1
    if first < 0x80 { return first }
    func next() -> UInt32 {
      guard offset < text.count else { return 0 }
      defer { offset += 1 }
      return UInt32(text[offset] & 0x3F)
    }
    if first < 0xE0 { return (first & 0x1F) << 6 | next() }
    if first < 0xF0 {
      let second = next()
      return (first & 0x0F) << 12 | second << 6 | next()
    }
    let second = next()
    let third = next()
    return (first & 0x07) << 18 | second << 12 | third << 6 | next()
  }

  /// Compares by code units: -1 if `a` precedes `b`, 0 if they are equal, otherwise 1.
  static func compare(_ a: UnsafeRawBufferPointer, _ b: UnsafeRawBufferPointer) -> Int {
    var index = 0
    let common = min(a.count, b.count)
    while index < common, a[index] == b[index] { index += 1 }
    guard index < common else { return a.count == b.count ? 0 : (a.count < b.count ? -1 : 1) }
    // Bytes sort like scalars, and scalars like code units, except that surrogates sort before U+E000…U+FFFF.
    let x = a[index]
    let y = b[index]
    if x >= 0xF0, (0xEE..<0xF0).contains(y) { return -1 }
    if y >= 0xF0, (0xEE..<0xF0).contains(x) { return 1 }
    return x < y ? -1 : 1
  }

  /// Returns the code units `from..<to` as bytes: a part of `text`, or a copy in `arena` if a limit splits a pair.
  /// Returns `nil` if the arena is full.
  ///
  /// The limits must be within the text.
  static func slice(
    _ text: UnsafeRawBufferPointer, from: Int, to: Int, _ arena: inout Arena
  ) -> UnsafeRawBufferPointer? {
    var offset = 0
    var unit = 0
    func advance(to target: Int) {
      while unit < target, offset < text.count {
        let isPair = text[offset] >= 0xF0
        if isPair, unit + 2 > target { return }
        _ = scalar(text, &offset)
        unit += isPair ? 2 : 1
      }
    }
    guard from < to else { return UnsafeRawBufferPointer(rebasing: text[..<0]) }
    advance(to: from)
    let start = offset
    let cutsStart = unit < from
    advance(to: to)
    let cutsEnd = unit < to && offset < text.count
    guard cutsStart || cutsEnd else { return UnsafeRawBufferPointer(rebasing: text[start..<offset]) }
    guard let memory = arena.take(bytes: offset - start + 8) else { return nil }
    let out = UnsafeMutableRawBufferPointer(start: memory, count: offset - start + 8)
    var written = 0
    var rest = start
    if cutsStart {
      written = encode(0xDC00 + (scalar(text, &rest) - 0x10000) & 0x3FF, to: out, at: written)
    }
    if rest < offset {
      UnsafeMutableRawBufferPointer(rebasing: out[written...]).copyBytes(from: text[rest..<offset])
      written += offset - rest
    }
    if cutsEnd {
      var last = offset
      written = encode(0xD800 + (scalar(text, &last) - 0x10000) >> 10, to: out, at: written)
    }
    return UnsafeRawBufferPointer(rebasing: out[..<written])
  }
}
