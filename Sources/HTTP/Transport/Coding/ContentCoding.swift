/// The content coding of a request's body.
enum ContentCoding {
  case identity, gzip

  /// Reads the value of a `Content-Encoding` field.
  /// - Throws: ``Refusal`` if the coding is not supported.
  init(_ value: UnsafeRawBufferPointer) throws(Refusal) {
    if value.isEmpty || Self.equal(value, "identity") {
      self = .identity
    } else if Self.equal(value, "gzip") || Self.equal(value, "x-gzip") {
      self = .gzip
    } else {
      throw .unknownCoding
    }
  }

  /// Whether the value of an `Accept-Encoding` field lists `gzip` with a weight other than zero.
  static func offersGzip(_ value: UnsafeRawBufferPointer) -> Bool {
    for item in value.split(separator: 0x2c) {
      let element = item.drop { $0 == 0x20 || $0 == 0x09 }
      guard element.count >= 4, let start = UnsafeRawBufferPointer(rebasing: element).baseAddress,
        equalIgnoringCase(start, "gzip")
      else { continue }
      let rest = element.dropFirst(4).filter { $0 != 0x20 && $0 != 0x09 }
      if rest.isEmpty { return true }
      guard rest[0] == 0x3b else { continue }
      // After ";q=" comes a weight. Zero, however it is written, refuses the coding.
      return rest.dropFirst(3).contains { $0 != 0x30 && $0 != 0x2e }
    }
    return false
  }

  private static func equal(_ value: UnsafeRawBufferPointer, _ lowercased: StaticString) -> Bool {
    guard value.count == lowercased.utf8CodeUnitCount, let start = value.baseAddress else { return false }
    return equalIgnoringCase(start, lowercased)
  }
}

extension HTTPRequest {
  /// Whether the client accepts a response with gzip coding.
  package var acceptsGzip: Bool { header("accept-encoding").map { ContentCoding.offersGzip($0) } ?? false }
}
