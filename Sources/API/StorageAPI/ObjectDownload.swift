import DocumentModel
import Files
import FileService
import GatewayCore
import Transport
import WireFormat

/// Responds with an object's content, or with the requested range of it (storage-api.md, section 5).
struct ObjectDownload: Sendable {
  let storageRequest: StorageRequest
  /// The value of the header `Range`, or `nil` if the request has none.
  private let range: String?
  private let ifModifiedSince: String?
  private let ifRange: String?
  private let acceptsGzip: Bool
  /// Whether a browser would run the content as a part of a page.
  private let isForCode: Bool

  init(_ storageRequest: StorageRequest, _ request: borrowing HTTPRequest) {
    self.storageRequest = storageRequest
    range = request.text("range")
    ifModifiedSince = request.text("if-modified-since")
    ifRange = request.text("if-range")
    acceptsGzip = request.acceptsGzip
    isForCode = ContentSafety.isForCode(request)
  }

  /// Finds the content and sends it. Call it on the loop. `find` runs there, and if the content is not on this node, again
  /// on a worker that waits for it.
  /// - Throws: ``FilesError`` if `find` fails on the loop.
  func send(
    _ conditions: ObjectConditions, _ find: @escaping @Sendable (_ waits: Bool) throws(FilesError) -> ObjectContent
  ) throws(FilesError) {
    let found: ObjectContent
    do throws(FilesError) { found = try find(false) } catch .notCached {
      return storageRequest.work { () throws(FilesError) in
        try find(true)
      } then: {
        send($0, conditions)
      }
    }
    send(found, conditions)
  }

  /// Sends the content. Call it on the loop: metadata are read from memory, and a worker reads content that is not
  /// cached.
  func send(_ found: ObjectContent, _ conditions: ObjectConditions) {
    let object = found.object
    guard !isForCode else {
      found.close()
      return storageRequest.fail(
        StorageErrorResponse(
          status: 403, message: "Pages cannot load uploaded files as scripts, workers or style sheets.",
          reason: "forbidden"))
    }
    do throws(FilesError) {
      try conditions.check(object, isRead: true)
      if conditions.etagNotMatch.isEmpty, let since = ifModifiedSince.flatMap(HTTPDate.seconds),
        object.updated / 1_000_000 <= since
      {
        throw .notModified
      }
    } catch {
      found.close()
      return storageRequest.fail(error) { addValidators(object, &$0) }
    }
    let size = object.content.size
    // A client that does not accept gzip receives the decoded content. Ranges count stored bytes, so they do not
    // apply.
    if isGzip(object), !acceptsGzip { return streamDecoded(found) }
    switch requestedRange(object) {
    case .all: stream(found, 0..<size, status: 200)
    case .part(let part): stream(found, part, status: 206)
    case .absent:
      found.close()
      storageRequest.sendText(416, "The requested range cannot be satisfied.") { headers in
        headers.add("Content-Range", "bytes */\(size)")
        addValidators(object, &headers)
      }
    }
  }

  private func stream(_ found: ObjectContent, _ part: Range<Int>, status: Int) {
    let object = found.object
    let body = FileBody(
      descriptor: found.descriptor, offset: part.lowerBound, count: part.count,
      isInMemory: found.isInMemory, exchange: storageRequest.responder.exchange)
    storageRequest.responder.exchange.setKind(.download)
    storageRequest.responder.exchange.stream(
      status: status,
      headers: { headers in
        addHeaders(object, &headers)
        if status == 206 {
          headers.add("Content-Range", "bytes \(part.lowerBound)-\(part.upperBound - 1)/\(object.content.size)")
        }
      }, contentLength: part.count, from: body)
  }

  private func streamDecoded(_ found: ObjectContent) {
    let object = found.object
    // After the head was sent, damage can only abort the response. Check the gzip header first, to respond with an
    // error.
    storageRequest.work(always: true) { () throws(FilesError) in
      if DecodedBody.canBegin(found.descriptor, count: object.content.size) { return }
      found.close()
      throw .undecodable
    } then: {
      let body = FileBody(
        descriptor: found.descriptor, offset: 0, count: object.content.size,
        isInMemory: found.isInMemory, exchange: storageRequest.responder.exchange)
      storageRequest.responder.exchange.stream(
        status: 200, headers: { addHeaders(object, isDecoded: true, &$0) }, from: DecodedBody(body))
    }
  }

  private func isGzip(_ object: StoredObject) -> Bool {
    object.attributes.contentEncoding.map { $0.lowercased() == "gzip" } ?? false
  }

  // MARK: - Headers

  private func addHeaders(_ object: StoredObject, isDecoded: Bool = false, _ headers: inout HeaderWriter) {
    headers.add("Content-Type", object.contentType)
    headers.add("Content-Disposition", ContentDisposition.text(of: object))
    if let encoding = object.attributes.contentEncoding, encoding != "identity", !isDecoded {
      headers.add("Content-Encoding", encoding)
    }
    if isGzip(object) { headers.add("Vary", "Accept-Encoding") }
    // A cache must not send a script that was fetched as data to a page that would run it.
    if ContentSafety.isCode(object.contentType) { headers.add("Vary", "Sec-Fetch-Dest") }
    if let language = object.attributes.contentLanguage { headers.add("Content-Language", language) }
    headers.add("Cache-Control", object.attributes.cacheControl ?? "private, max-age=0")
    headers.add("Accept-Ranges", isDecoded ? "none" : "bytes")
    headers.add("X-Goog-Generation", String(object.generation))
    headers.add("X-Goog-Metageneration", String(object.metageneration))
    headers.add("X-Goog-Storage-Class", object.attributes.storageClass ?? "STANDARD")
    if !isDecoded {
      // The checksums and the length are those of the stored bytes.
      headers.add(
        "X-Goog-Hash",
        "crc32c=\(Base64.encode(object.content.crc32cBytes)),md5=\(Base64.encode(object.content.md5))")
      headers.add("X-Goog-Stored-Content-Length", String(object.content.size))
    }
    headers.add("X-Goog-Stored-Content-Encoding", object.attributes.contentEncoding ?? "identity")
    addValidators(object, &headers)
    ContentSafety.addHeaders(contentType: object.contentType, &headers)
    storageRequest.responder.writeOrigin(&headers)
  }

  private func addValidators(_ object: StoredObject, _ headers: inout HeaderWriter) {
    headers.add("ETag", etag(object))
    headers.add("Last-Modified", HTTPDate.text(object.updated / 1_000_000))
  }

  /// The value of the header `ETag`. Cloud Storage clients compare it with the metadata's, which has no quotes.
  private func etag(_ object: StoredObject) -> String {
    storageRequest.api == .cloud ? object.etag : "\"\(object.etag)\""
  }

  // MARK: - Range

  /// The requested range of an object's stored bytes.
  private func requestedRange(_ object: StoredObject) -> ByteRange {
    if let ifRange, ifRange != etag(object), ifRange != HTTPDate.text(object.updated / 1_000_000) { return .all }
    return ByteRange(range, size: object.content.size)
  }
}

/// Header fields that keep uploaded content from running in the server's origin.
enum ContentSafety {
  /// Types that a browser displays or plays but never executes.
  private static let passive: Set<String> = [
    "image/png", "image/jpeg", "image/gif", "image/webp", "image/avif", "image/bmp", "application/pdf", "text/plain",
    "application/octet-stream", "application/json",
  ]
  private static let passiveFamilies = ["audio/", "video/", "font/"]

  /// Adds the fields. A browser opens content of other types in a sandbox with its own origin.
  static func addHeaders(contentType: String, _ headers: inout HeaderWriter) {
    headers.add("X-Content-Type-Options", "nosniff")
    headers.add("Cross-Origin-Resource-Policy", "cross-origin")
    guard !isPassive(contentType) else { return }
    headers.add(
      "Content-Security-Policy",
      "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; frame-ancestors 'none'")
  }

  /// Whether a browser loads the content to run it, or to style a page with it. The content comes from users, and has the
  /// origin of the app and of other files. Browsers that send no `Sec-Fetch-Dest` are not covered.
  static func isForCode(_ request: borrowing HTTPRequest) -> Bool {
    guard let use = request.header("sec-fetch-dest") else { return false }
    return codeUses.contains { name in
      use.elementsEqual(UnsafeBufferPointer(start: name.utf8Start, count: name.utf8CodeUnitCount))
    }
  }

  private static let codeUses: [StaticString] = [
    "script", "style", "worker", "sharedworker", "serviceworker", "audioworklet", "paintworklet", "xslt",
  ]

  /// Whether browsers run content of a type as a script or apply it as a style sheet.
  static func isCode(_ contentType: String) -> Bool {
    let name = contentType.lowercased()
    return name.contains("script") || name.contains("css")
  }

  /// Whether the text is one of those types and cannot mean another: if it contains several types separated by
  /// commas, browsers use the last.
  static func isPassive(_ contentType: String) -> Bool {
    let isOne = contentType.utf8.allSatisfy { (0x20..<0x7F).contains($0) && $0 != UInt8(ascii: ",") }
    var type = contentType.prefix { $0 != ";" }
    while type.last == " " { type.removeLast() }
    let name = type.lowercased()
    // Browsers display any kind of XML as a document and run its scripts.
    if name.hasSuffix("+xml") || name.hasSuffix("/xml") { return false }
    return isOne && !name.contains(" ") && (passive.contains(name) || passiveFamilies.contains(where: name.hasPrefix))
  }
}
