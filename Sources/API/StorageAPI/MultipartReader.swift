import Files
import Glibc

/// Reads `multipart/related` as it arrives: a part with metadata in JSON, then a part with content of any length,
/// which it passes on in pieces.
struct MultipartReader {
  private enum State { case start, metadata, content, ending, ended }

  private static let headEnd = Array("\r\n\r\n".utf8)

  private let delimiter: [UInt8]
  private let headBytesMax: Int
  private var state = State.start
  private var held: [UInt8]
  /// The position up to which `held` was searched, so that a head in many small pieces is searched only once.
  private var scanned = 0
  /// The position in `held` of the delimiter whose part's head is still incomplete.
  private var delimiterStart: Int?
  /// The text of the first part.
  private(set) var metadata: [UInt8] = []
  /// The content type in the second part's head.
  private(set) var contentType: String?

  /// Creates a reader for one request.
  ///
  /// - Parameters:
  ///   - contentType: the value of the request's `Content-Type`, which names the boundary.
  ///   - headBytesMax: the limit of everything before the content: two heads and the metadata.
  /// - Throws: ``FilesError/invalid(_:)`` if the content type names no boundary.
  init(contentType: UnsafeRawBufferPointer?, headBytesMax: Int = 64 << 10) throws(FilesError) {
    guard let contentType, let boundary = Self.boundary(String(decoding: contentType, as: UTF8.self)) else {
      throw .invalid("Bad content type. Content-Type must be multipart/related and name a boundary.")
    }
    delimiter = Array("\r\n--\(boundary)".utf8)
    self.headBytesMax = headBytesMax
    // The first delimiter may be at the very beginning of the body, without a line break before it.
    held = [0x0D, 0x0A]
  }

  /// The boundary in a content type, or `nil` if it has none or one longer than 256 bytes.
  static func boundary(_ contentType: String) -> String? {
    for parameter in contentType.split(separator: ";").dropFirst() {
      let trimmed = parameter.drop { $0 == " " || $0 == "\t" }
      guard trimmed.lowercased().hasPrefix("boundary=") else { continue }
      var value = trimmed.dropFirst("boundary=".count)
      while value.last == " " { value.removeLast() }
      if let quote = value.first, quote == "\"" || quote == "'", value.count >= 2, value.last == quote {
        value = value.dropFirst().dropLast()
      }
      return value.isEmpty || value.utf8.count > 256 ? nil : String(value)
    }
    return nil
  }

  /// Whether both parts have arrived completely.
  var isWhole: Bool { state == .ended }

  /// Whether everything before the content has arrived.
  var hasHead: Bool { state == .content || state == .ending || state == .ended }

  /// The number of bytes that the reader keeps in memory.
  var heldBytes: Int { held.count + metadata.count }

  /// The number of bytes read so far, until the content begins; then the number of bytes before the content.
  private var headBytes = 0

  /// The possible lengths of the content in a body of `count` bytes: a line break may follow the last boundary or
  /// not.
  func contentBytes(ofBody count: Int?) -> ClosedRange<Int>? {
    guard let count, hasHead else { return nil }
    let most = max(0, count - headBytes - delimiter.count - 2)
    return max(0, most - 2)...most
  }

  /// Reads the next bytes of the body, and calls `content` with those that belong to the content.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the body is malformed.
  mutating func read(
    _ bytes: UnsafeRawBufferPointer, _ content: (UnsafeRawBufferPointer) -> Void
  ) throws(FilesError) {
    if state == .content {
      try readContent(bytes, content)
    } else if state != .ended {
      headBytes += bytes.count
      held.append(contentsOf: bytes)
      try readHead(content)
    }
  }

  /// Reads the part of the body before the content.
  private mutating func readHead(_ content: (UnsafeRawBufferPointer) -> Void) throws(FilesError) {
    if state == .start {
      guard let (_, headEnd) = findPart() else { return try checkHeld() }
      guard Self.contentType(inHead: held[..<headEnd]) != nil else { throw Self.missingType }
      held.removeFirst(headEnd + Self.headEnd.count)
      // The delimiter after an empty part follows the part's head immediately, without a line break of its own.
      held.insert(contentsOf: [0x0D, 0x0A], at: 0)
      scanned = 0
      delimiterStart = nil
      state = .metadata
    }
    if state == .metadata {
      guard let (end, headEnd) = findPart() else {
        if let delimiterStart, held[(delimiterStart + delimiter.count)...].starts(with: "--".utf8) {
          throw Self.badCount
        }
        return try checkHeld()
      }
      guard let type = Self.contentType(inHead: held[(end + delimiter.count)..<headEnd]) else { throw Self.missingType }
      metadata = Array(held[2..<max(2, end)])
      contentType = type
      let rest = Array(held[(headEnd + 4)...])
      headBytes -= rest.count
      // The delimiter after empty content may follow immediately, as above.
      held = [0x0D, 0x0A]
      state = .content
      isFirstPiece = true
      try rest.withRawBytes { (rest) throws(FilesError) in try readContent(rest, content) }
      return
    }
    if state == .ending { try readEnding() }
  }

  /// Whether `held` begins with the two bytes that this reader put before the content.
  private var isFirstPiece = false

  private mutating func readContent(
    _ bytes: UnsafeRawBufferPointer, _ content: (UnsafeRawBufferPointer) -> Void
  ) throws(FilesError) {
    // `held` is shorter than a delimiter, so joining costs little if the pieces are large.
    var joined = held
    joined.append(contentsOf: bytes)
    let own = isFirstPiece ? 2 : 0
    if let end = find(delimiter, in: joined, from: 0) {
      joined.withUnsafeBytes { content(UnsafeRawBufferPointer(rebasing: $0[min(own, end)..<end])) }
      held = Array(joined[(end + delimiter.count)...])
      state = .ending
      return try readEnding()
    }
    let safe = max(0, joined.count - delimiter.count)
    guard safe > own || !isFirstPiece else {
      held = joined
      return
    }
    joined.withUnsafeBytes { content(UnsafeRawBufferPointer(rebasing: $0[own..<max(own, safe)])) }
    isFirstPiece = false
    held = Array(joined[max(own, safe)...])
  }

  private mutating func readEnding() throws(FilesError) {
    guard held.count >= 2 else { return }
    guard held.starts(with: "--".utf8) else { throw Self.badCount }
    state = .ended
    held = []
  }

  /// Returns the position of the next delimiter in `held` and the end of the head after it, or `nil` until both
  /// have arrived.
  private mutating func findPart() -> (delimiterStart: Int, headEnd: Int)? {
    if delimiterStart == nil, let start = findNext(delimiter) {
      delimiterStart = start
      scanned = start + delimiter.count
    }
    guard let delimiterStart, let end = findNext(Self.headEnd) else { return nil }
    return (delimiterStart, end)
  }

  /// Returns the first position of `needle` in the part of `held` that was not searched yet.
  private mutating func findNext(_ needle: [UInt8]) -> Int? {
    let found = find(needle, in: held, from: scanned)
    // The end of `held` may be the beginning of `needle`.
    if found == nil { scanned = max(scanned, held.count - needle.count + 1) }
    return found
  }

  private func checkHeld() throws(FilesError) {
    guard held.count <= headBytesMax else {
      throw .invalid("The metadata exceed \(headBytesMax) bytes, or the boundary is missing.")
    }
  }

  private static let badCount = FilesError.invalid("Bad content type. Unexpected number of parts in request body")
  private static let missingType = FilesError.invalid(
    "Failed to parse multipart request body part. Missing content type.")

  /// The content type in a part's head, or `nil` if it has none.
  private static func contentType(inHead head: ArraySlice<UInt8>) -> String? {
    for line in head.split(separator: 0x0A) {
      let text = String(decoding: line, as: UTF8.self)
      guard let colon = text.firstIndex(of: ":"), text[..<colon].lowercased() == "content-type" else { continue }
      return String(text[text.index(after: colon)...].drop { $0 == " " }.filter { $0 != "\r" && $0 != "\r\n" })
    }
    return nil
  }

  /// Returns the first position of `needle` at or after `start`. Fast if the first byte of `needle` is rare in
  /// `bytes`.
  private func find(_ needle: [UInt8], in bytes: [UInt8], from start: Int) -> Int? {
    bytes.withUnsafeBytes { bytes in
      needle.withUnsafeBytes { needle in
        guard let base = bytes.baseAddress, let wanted = needle.baseAddress else { return nil }
        var position = start
        while position + needle.count <= bytes.count {
          let room = bytes.count - needle.count - position + 1
          guard let found = memchr(base + position, Int32(needle[0]), room) else { return nil }
          if memcmp(found, wanted, needle.count) == 0 { return UnsafeRawPointer(found) - base }
          position = UnsafeRawPointer(found) - base + 1
        }
        return nil
      }
    }
  }
}

extension [UInt8] {
  /// Calls a closure with the bytes and keeps the type of its error.
  ///
  /// - Throws: the closure's error.
  func withRawBytes<R>(_ body: (UnsafeRawBufferPointer) throws(FilesError) -> R) throws(FilesError) -> R {
    var outcome: Result<R, FilesError> = .failure(.invalid(""))
    withUnsafeBytes { bytes in
      do throws(FilesError) { outcome = .success(try body(bytes)) } catch { outcome = .failure(error) }
    }
    return try outcome.get()
  }
}
