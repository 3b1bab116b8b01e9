import DocumentModel

extension OrderedCode {
  /// Whether a value's code is complete.
  package enum Extent: Equatable {
    /// The code is the whole value.
    case whole
    /// The code was cut, so equal codes do not imply equal values.
    case cut
  }

  /// Removes one value's code from the front, to reach the part of the key after it.
  ///
  /// Returns `nil` if the bytes are malformed. Cost: linear in the code.
  package static func skipValue(_ code: inout UnsafeRawBufferPointer) -> Extent? {
    guard let label = take(&code, 1)?.first else { return nil }
    switch TypeBracket(rawValue: label) {
    case .null, .nan, .minKey, .maxKey: return .whole
    case .boolean: return take(&code, 1) == nil ? nil : .whole
    case .number:
      guard let bits = take(&code, 8) else { return nil }
      return isWideCode(bits) && take(&code, 2) == nil ? nil : .whole
    case .timestamp, .bsonTimestamp: return take(&code, 8) == nil ? nil : .whole
    case .geoPoint: return take(&code, 16) == nil ? nil : .whole
    case .string, .bytes, .binary, .objectID: return skipBytes(&code)
    case .regex:
      let pattern = skipBytes(&code)
      return pattern == .whole ? skipBytes(&code) : pattern
    case .reference:
      var scratch: [UInt8] = []
      return skipList(&code) { (code: inout UnsafeRawBufferPointer) in
        scratch.removeAll(keepingCapacity: true)
        return take(segment: &code, into: &scratch) ? .whole : nil
      }
    case .array: return skipList(&code, skipValue)
    case .vector: return takeNumber(&code) == nil ? nil : skipList(&code, skipValue)
    case .map:
      return skipList(&code) { (code: inout UnsafeRawBufferPointer) in
        guard take(&code, 1)?.first == TypeBracket.string.rawValue, let key = skipBytes(&code) else { return nil }
        return key == .cut ? .cut : skipValue(&code)
      }
    case nil: return nil
    }
  }

  private static func skipList(
    _ code: inout UnsafeRawBufferPointer, _ skipElement: (inout UnsafeRawBufferPointer) -> Extent?
  ) -> Extent? {
    while let next = code.first {
      if next == endOfElements || next == truncated {
        _ = take(&code, 1)
        return next == truncated ? .cut : .whole
      }
      guard let extent = skipElement(&code) else { return nil }
      if extent == .cut { return .cut }
    }
    return nil
  }

  private static func skipBytes(_ code: inout UnsafeRawBufferPointer) -> Extent? {
    var index = 0
    while index + 1 < code.count {
      if code[index] != 0 {
        index += 1
        continue
      }
      let mark = code[index + 1]
      if mark == end || mark == truncated {
        code = UnsafeRawBufferPointer(rebasing: code[(index + 2)...])
        return mark == truncated ? .cut : .whole
      }
      index += 2
    }
    return nil
  }

  private static func isWideCode(_ code: UnsafeRawBufferPointer) -> Bool {
    let sortable = UInt64(bigEndian: code.loadUnaligned(as: UInt64.self))
    let bits = sortable & (1 << 63) == 0 ? ~sortable : sortable & ~(1 << 63)
    let magnitude = abs(Double(bitPattern: bits))
    return magnitude >= 0x1p53 && magnitude <= 0x1p63
  }

  private static func take(_ code: inout UnsafeRawBufferPointer, _ count: Int) -> UnsafeRawBufferPointer? {
    guard code.count >= count else { return nil }
    defer { code = UnsafeRawBufferPointer(rebasing: code[count...]) }
    return UnsafeRawBufferPointer(rebasing: code[..<count])
  }
}
