package import Transport

/// The part of a content that a request asks for with `Range` (RFC 9110, section 14).
package enum ByteRange: Equatable, Sendable {
  case all
  case part(Range<Int>)
  /// The content has no byte of the range.
  case absent

  /// Reads the value of the header field, or `nil` if the request has none. Other forms, such as several ranges, mean
  /// all of the content, as HTTP allows.
  package init(_ value: String?, size: Int) {
    self = .all
    guard let value, value.hasPrefix("bytes=") else { return }
    let ends = value.dropFirst("bytes=".count).split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2 else { return }
    let texts = ends.map { $0.filter { $0 != " " } }
    // A number that does not fit means the largest.
    func number(_ text: String) -> Int? {
      guard !text.isEmpty, text.utf8.allSatisfy({ $0 &- 0x30 < 10 }) else { return nil }
      return Int(text) ?? .max
    }
    switch (number(texts[0]), number(texts[1])) {
    case (nil, let count?) where texts[0].isEmpty:
      self = count == 0 || size == 0 ? .absent : .part(max(0, size - count)..<size)
    case (let first?, nil) where texts[1].isEmpty:
      self = first < size ? .part(first..<size) : .absent
    case (let first?, let last?):
      if last < first { return }
      self = first < size ? .part(first..<(min(last, size - 1) + 1)) : .absent
    default: break
    }
  }
}

extension HTTPRequest {
  /// The value of a header field as text.
  package borrowing func text(_ lowercasedName: StaticString) -> String? {
    header(lowercasedName).map { String(decoding: $0, as: UTF8.self) }
  }
}
