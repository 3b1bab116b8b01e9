import DocumentModel
import Files
import Transport

/// Reads the body of a batch: `multipart/mixed`, in which each part is an HTTP request. Lines may end in LF or CR
/// LF.
struct BatchReader {
  /// One request of a batch.
  struct Part: Sendable {
    var request = RequestPart()
    /// The value of the part's `Content-ID` header field.
    var contentID: String?
  }

  /// The maximum number of requests in one batch. Most clients send 100; some send up to this number.
  static let partsMax = 1000

  private var rest: ArraySlice<UInt8>
  private let delimiter: [UInt8]

  /// Returns the requests of a batch in order.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the body is not a valid batch or has more than ``partsMax`` parts.
  static func parts(of body: UnsafeRawBufferPointer, contentType: String?) throws(FilesError) -> [Part] {
    guard let contentType, contentType.lowercased().hasPrefix("multipart/mixed"),
      let boundary = MultipartReader.boundary(contentType)
    else { throw .invalid("Bad content type. Content-Type of a batch must be multipart/mixed and name a boundary.") }
    var reader = BatchReader(rest: Array(body)[...], delimiter: Array("--\(boundary)".utf8))
    var parts: [Part] = []
    guard reader.skipToDelimiter() else { throw .invalid("The body of the batch does not contain its boundary.") }
    while let part = try reader.part() {
      guard parts.count < partsMax else { throw .invalid("A batch may have at most \(partsMax) requests.") }
      parts.append(part)
    }
    return parts
  }

  /// Returns the next line without its line break, or `nil` at the end.
  private mutating func line() -> ArraySlice<UInt8>? {
    guard !rest.isEmpty else { return nil }
    let end = rest.firstIndex(of: 0x0A) ?? rest.endIndex
    var line = rest[rest.startIndex..<end]
    rest = rest[min(end + 1, rest.endIndex)...]
    if line.last == 0x0D { line.removeLast() }
    return line
  }

  private mutating func skipToDelimiter() -> Bool {
    while let line = line() {
      if line.starts(with: delimiter) { return !line.dropFirst(delimiter.count).starts(with: "--".utf8) }
    }
    return false
  }

  /// Returns the next request, or `nil` after the last. The position is after a delimiter before and after the
  /// call.
  private mutating func part() throws(FilesError) -> Part? {
    guard !rest.isEmpty else { return nil }
    var part = Part()
    for field in fields() where Self.isName(field.name, "content-id") {
      part.contentID = String(decoding: field.value, as: UTF8.self)
    }
    guard let head = line() else { return nil }
    let words = head.split(separator: 0x20)
    guard words.count == 3 else { throw .invalid("A part of the batch is not an HTTP request.") }
    part.request.method = Self.method(String(decoding: words[0], as: UTF8.self))
    part.request.target = Self.target(words[1])
    part.request.fields = fields()
    let isLast = !readBody(into: &part.request.body)
    if isLast { rest = [] }
    return part
  }

  /// Reads header fields up to and including the empty line after them.
  private mutating func fields() -> [(name: [UInt8], value: [UInt8])] {
    var fields: [(name: [UInt8], value: [UInt8])] = []
    while let line = line(), !line.isEmpty {
      guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
      fields.append((Array(line[..<colon]), Array(line[(colon + 1)...].drop { $0 == 0x20 })))
    }
    return fields
  }

  /// Reads up to and including the next delimiter. Returns `false` if it is the closing delimiter, or missing.
  private mutating func readBody(into body: inout [UInt8]) -> Bool {
    while let line = line() {
      if line.starts(with: delimiter) { return !line.dropFirst(delimiter.count).starts(with: "--".utf8) }
      if !body.isEmpty { body.append(0x0A) }
      body += line
    }
    return false
  }

  private static func isName(_ name: [UInt8], _ lowercased: String) -> Bool {
    String(decoding: name, as: UTF8.self).lowercased() == lowercased
  }

  private static func method(_ text: String) -> HTTPMethod {
    switch text {
    case "GET": .get
    case "HEAD": .head
    case "POST": .post
    case "PUT": .put
    case "PATCH": .patch
    case "DELETE": .delete
    default: .other
    }
  }

  /// The path and query of a request target, which may be a whole URL.
  private static func target(_ text: ArraySlice<UInt8>) -> [UInt8] {
    guard let scheme = Array(text).firstRange(of: Array("://".utf8)) else { return Array(text) }
    let host = Array(text)[scheme.upperBound...]
    return Array(host.drop { $0 != UInt8(ascii: "/") })
  }
}
