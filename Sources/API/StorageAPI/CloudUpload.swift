import GatewayCore
import Files
import Transport

/// Uploads in one request: `uploadType=media` and `uploadType=multipart`.
extension CloudStorageHandler {
  /// The limit of the metadata before the content, which may include documents to commit.
  private static let headBytesMax = 1 << 20

  /// Whether the body of a `POST` or `PUT` request is content.
  static func bringsContent(_ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) -> Bool {
    guard let parameters = try? QueryParameters(query) else { return false }
    if parameters.value("uploadId") != nil { return request.method == .put }
    return request.method == .post && parameters.value("uploadType") != "resumable"
  }

  /// Opens the body of an upload, or responds with an error and returns `nil` if the request is rejected at once.
  func openBody(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) -> (any BodySink)? {
    do throws(FilesError) {
      if let id = storageRequest.parameters.value("uploadId") {
        return try CloudResumableUpload(storageRequest).openBody(id, request)
      }
      let parts = try Self.parts(path)
      guard parts.count == 2, parts[1] == "o" else {
        storageRequest.failUnknown()
        return nil
      }
      return try upload(
        to: parts[0], named: storageRequest.parameters.value("name"), try ObjectConditions(storageRequest.parameters),
        request)
    } catch {
      let storageRequest = storageRequest
      return DiscardedBody.responding(request) { [error] in storageRequest.fail(error) }
    }
  }

  /// Opens the body of an upload of an object, whose name may also be in its metadata.
  ///
  /// - Parameter isSigned: whether a signed URL allows the upload. Then the body is content only: metadata in it
  ///   would have an administrator's rights, and the signature does not cover them.
  /// - Throws: ``FilesError/invalid(_:)`` if a header is malformed.
  func upload(
    to bucket: String, named: String?, isSigned: Bool = false, _ conditions: ObjectConditions,
    _ request: borrowing HTTPRequest
  ) throws(FilesError) -> any BodySink {
    let isMultipart = !isSigned && storageRequest.parameters.value("uploadType") == "multipart"
    let multipart =
      try isMultipart
      ? MultipartReader(contentType: request.header("content-type"), headBytesMax: Self.headBytesMax) : nil
    let contentType = isMultipart ? nil : request.text("content-type")
    let contentEncoding = storageRequest.parameters.value("contentEncoding")
    let checksums = try DeclaredChecksums(request, isContent: !isMultipart)
    let plan = UploadBody.Plan(
      open: { () throws(FilesError) in .init(incoming: try storageRequest.store.makeIncoming()) },
      finish: { (file, head) throws(FilesError) in
        var attributes = ObjectAttributes()
        attributes.contentType = head?.contentType ?? contentType
        attributes.contentEncoding = contentEncoding
        var declared = checksums
        var name = named
        var commit: FileCommit?
        if let head {
          let metadata = try head.metadata.withRawBytes { (bytes) throws(FilesError) in
            try AttributesReader(bytes, takesCommit: true)
          }
          commit = metadata.commit
          metadata.apply(to: &attributes, keepsTokens: false)
          declared = try declared.merged(with: metadata.declared)
          name = metadata.name ?? name
        }
        guard let name else { throw .invalid("Required parameter: name") }
        let objectName = try ObjectName(checking: bucket, name)
        guard let commit else {
          let object = try storageRequest.store.put(
            objectName, file.incoming, attributes, declared: declared, conditions: conditions)
          return { send(object) }
        }
        let (object, outcome) = try storageRequest.put(
          objectName, file.incoming, attributes, declared: declared, conditions: conditions, with: commit)
        return { send(object, outcome) }
      },
      fail: { storageRequest.fail($0) })
    let length = request.text("content-length").flatMap { Int($0) }
    return UploadBody(storageRequest.responder.exchange, multipart: multipart, bodyBytes: length, plan)
  }
}

extension DeclaredChecksums {
  /// Reads the checksums in a request's header: `X-Goog-Hash: crc32c=…,md5=…`. If the body is only content, also
  /// reads `Content-MD5` and the SHA-256 in `Content-Digest: sha-256=:…:`.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if `X-Goog-Hash` contains another kind of checksum, which the server
  ///   cannot verify.
  init(_ request: borrowing HTTPRequest, isContent: Bool) throws(FilesError) {
    self.init()
    for part in (request.text("x-goog-hash") ?? "").split(separator: ",") {
      let text = part.drop { $0 == " " }
      if text.hasPrefix("crc32c=") {
        crc32c = String(text.dropFirst("crc32c=".count))
      } else if text.hasPrefix("md5=") {
        md5 = String(text.dropFirst("md5=".count))
      } else {
        throw .invalid("X-Goog-Hash may contain only crc32c and md5, not: \(text)")
      }
    }
    guard isContent else { return }
    if let text = request.text("content-md5") { md5 = md5 ?? text }
    for part in (request.text("content-digest") ?? "").split(separator: ",") {
      let text = part.drop { $0 == " " }
      guard text.lowercased().hasPrefix("sha-256=:") else { continue }
      sha256 = String(text.dropFirst("sha-256=:".count).prefix { $0 != ":" })
    }
  }
}
