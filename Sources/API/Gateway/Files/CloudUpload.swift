import Files
import Transport

/// Uploads in one request: `uploadType=media` and `uploadType=multipart`.
extension CloudFiles {
  /// What may come before content in two parts: documents that are committed with it, too.
  private static let headBytesMax = 1 << 20

  /// Whether the body of a `POST` or `PUT` is content.
  static func bringsContent(_ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) -> Bool {
    guard let parameters = try? QueryParameters(query) else { return false }
    if parameters.value("uploadId") != nil { return request.method == .put }
    return request.method == .post && parameters.value("uploadType") != "resumable"
  }

  /// What takes the content; answers and returns `nil` where the request is refused at once.
  func openBody(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) -> (any BodySink)? {
    do throws(FilesError) {
      if let id = call.parameters.value("uploadId") { return try CloudResumableUpload(call).openBody(id, request) }
      let parts = try Self.parts(path)
      guard parts.count == 2, parts[1] == "o" else {
        call.failUnknown()
        return nil
      }
      return try upload(
        to: parts[0], named: call.parameters.value("name"), try ObjectConditions(call.parameters), request)
    } catch {
      let call = call
      return DiscardedBody.answering(request) { [error] in call.fail(error) }
    }
  }

  /// What takes the content of an object whose name may also stand in its metadata. Where a URL was signed for the
  /// name, the body is content and nothing else: its metadata would be an administrator's, and nobody signed them.
  func upload(
    to bucket: String, named: String?, isSigned: Bool = false, _ conditions: ObjectConditions,
    _ request: borrowing HTTPRequest
  ) throws(FilesError) -> any BodySink {
    let isMultipart = !isSigned && call.parameters.value("uploadType") == "multipart"
    let multipart = try isMultipart
      ? MultipartReader(contentType: request.header("content-type"), headBytesMax: Self.headBytesMax) : nil
    let contentType = isMultipart ? nil : request.text("content-type")
    let contentEncoding = call.parameters.value("contentEncoding")
    let hashes = try DeclaredChecksums(request, isContent: !isMultipart)
    let plan = UploadBody.Plan(
      open: { () throws(FilesError) in .init(incoming: try call.store.makeIncoming()) },
      finish: { (file, head) throws(FilesError) in
        var attributes = ObjectAttributes()
        attributes.contentType = head?.contentType ?? contentType
        attributes.contentEncoding = contentEncoding
        var declared = hashes
        var name = named
        var commit: FileCommit?
        if let head {
          let metadata = try head.metadata.withRawBytes { (bytes) throws(FilesError) in
            try AttributesReader(bytes, takesCommit: true)
          }
          commit = metadata.commit
          metadata.apply(to: &attributes, keepsTokens: false)
          declared = try declared.and(metadata.declared)
          name = metadata.name ?? name
        }
        guard let name else { throw .invalid("Required parameter: name") }
        let objectName = try ObjectName(checking: bucket, name)
        guard let commit else {
          let object = try call.store.put(
            objectName, file.incoming, attributes, declared: declared, conditions: conditions)
          return { send(object) }
        }
        let (object, outcome) = try call.put(
          objectName, file.incoming, attributes, declared: declared, conditions: conditions, with: commit)
        return { send(object, outcome) }
      },
      fail: { call.fail($0) })
    let length = request.text("content-length").flatMap { Int($0) }
    return UploadBody(call.responder.exchange, multipart: multipart, bodyBytes: length, plan)
  }
}

extension DeclaredChecksums {
  /// The checksums in a request's header: `X-Goog-Hash: crc32c=…,md5=…`, and of a body that is the content and nothing
  /// else, `Content-MD5` and the SHA-256 of `Content-Digest: sha-256=:…:`.
  /// - Throws: ``FilesError/invalid(_:)`` for an `X-Goog-Hash` of another kind: what cannot be checked is not ignored.
  init(_ request: borrowing HTTPRequest, isContent: Bool) throws(FilesError) {
    self.init()
    for part in (request.text("x-goog-hash") ?? "").split(separator: ",") {
      let text = part.drop { $0 == " " }
      if text.hasPrefix("crc32c=") {
        crc32c = String(text.dropFirst("crc32c=".count))
      } else if text.hasPrefix("md5=") {
        md5 = String(text.dropFirst("md5=".count))
      } else {
        throw .invalid("X-Goog-Hash names a checksum that is neither crc32c nor md5: \(text)")
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
