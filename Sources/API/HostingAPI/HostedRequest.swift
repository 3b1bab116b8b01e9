import GatewayCore
import Hosting
import Transport

/// The parts of a request that decide which representation of a file the response contains.
struct HostedRequest: Sendable {
  /// The content codings that a client accepts.
  struct Codings: OptionSet, Sendable {
    let rawValue: UInt8
    static let gzip = Codings(rawValue: 1)
    static let br = Codings(rawValue: 2)
  }

  let codings: Codings
  let query: String
  let ifNoneMatch: String?
  let ifModifiedSince: String?
  let range: String?
  let ifRange: String?

  init(_ request: borrowing HTTPRequest) {
    codings = request.header("accept-encoding").map { Self.codings($0) } ?? []
    let query = request.target.pathAndQuery.query
    self.query = query.isEmpty ? "" : String(decoding: query, as: UTF8.self)
    ifNoneMatch = request.text("if-none-match")
    ifModifiedSince = request.text("if-modified-since")
    range = request.text("range")
    ifRange = request.text("if-range")
  }

  /// Reads the value of `Accept-Encoding`. A coding with the weight zero is not accepted.
  private static func codings(_ value: UnsafeRawBufferPointer) -> Codings {
    var codings: Codings = []
    var start = 0
    while start < value.count {
      var end = start
      while end < value.count, value[end] != UInt8(ascii: ",") { end += 1 }
      let item = UnsafeRawBufferPointer(rebasing: value[start..<end])
      if names(item, "gzip") { codings.insert(.gzip) }
      if names(item, "br") { codings.insert(.br) }
      start = end + 1
    }
    return codings
  }

  /// Whether an item names the coding and its weight is not zero.
  private static func names(_ item: UnsafeRawBufferPointer, _ name: StaticString) -> Bool {
    var index = 0
    while index < item.count, item[index] == 0x20 { index += 1 }
    guard item.count - index >= name.utf8CodeUnitCount else { return false }
    for offset in 0..<name.utf8CodeUnitCount where item[index + offset] | 0x20 != name.utf8Start[offset] {
      return false
    }
    index += name.utf8CodeUnitCount
    guard index < item.count else { return true }
    let rest = item[index...].filter { $0 != 0x20 }
    guard rest.first == UInt8(ascii: ";") || rest.isEmpty else { return false }
    guard let equals = rest.firstIndex(of: UInt8(ascii: "=")) else { return true }
    return rest[(equals + 1)...].contains { $0 != UInt8(ascii: "0") && $0 != UInt8(ascii: ".") }
  }

  /// Whether the client has the representation already.
  func isCurrent(etag: String, modifiedSeconds: Int64) -> Bool {
    if let ifNoneMatch {
      return ifNoneMatch.split(separator: ",").contains { item in
        let tag = item.drop { $0 == " " }
        let strong = tag.hasPrefix("W/") ? tag.dropFirst(2) : tag
        return strong == "*" || strong.trimmed == etag
      }
    }
    guard let since = ifModifiedSince.flatMap({ HTTPDate.seconds($0) }) else { return false }
    return modifiedSeconds <= since
  }

  /// The part of a representation that the client asks for.
  func part(ofSize size: Int, etag: String, lastModified: String) -> ByteRange {
    if range == nil { return .all }
    if let ifRange, ifRange != etag, ifRange != lastModified { return .all }
    return ByteRange(range, size: size)
  }
}

extension Substring {
  /// The text without spaces at its end.
  fileprivate var trimmed: Substring {
    var text = self
    while text.last == " " { text.removeLast() }
    return text
  }
}
