import Files
import RulesEngine
import Transport

/// Uploads in one request: the body is the content, or metadata and content in two parts.
extension FirebaseFiles {
  /// Whether the body of a `POST` or `PUT` is content.
  static func bringsContent(_ query: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) -> Bool {
    if request.header("x-http-method-override") != nil { return false }
    if let command = request.header("x-goog-upload-command") {
      let commands = commands(command)
      return commands.contains("upload") && !commands.contains("start")
    }
    if request.header("x-goog-upload-protocol").map({ $0.elementsEqual("resumable".utf8) }) ?? false { return false }
    guard let parameters = try? QueryParameters(query) else { return true }
    if parameters.value("uploadId") != nil { return request.method == .put }
    if parameters.value("uploadType") == "resumable" { return false }
    return parameters.value("createToken") == nil && parameters.value("deleteToken") == nil
  }

  /// What takes the content; answers and returns `nil` where the request is refused at once.
  func openBody(_ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest) -> (any BodySink)? {
    do throws(FilesError) {
      guard let target = try Target(path, call.parameters) else {
        call.failUnknown()
        return nil
      }
      if let command = request.header("x-goog-upload-command") {
        return try FirebaseResumableUpload(call).openBody(Self.commands(command), request)
      }
      if let id = call.parameters.value("uploadId") { return try CloudResumableUpload(call).openBody(id, request) }
      let isMultipart =
        request.header("x-goog-upload-protocol").map { $0.elementsEqual("multipart".utf8) } ?? false
        || call.parameters.value("uploadType") == "multipart"
      return try upload(target, isMultipart: isMultipart, request)
    } catch {
      let call = call
      return DiscardedBody.answering(request) { [error] in call.fail(error) }
    }
  }

  /// Refuses content that rules refuse already by what is known of it.
  func requireEarly(_ name: ObjectName, _ attributes: ObjectAttributes, size: Int) throws(FilesError) {
    let content = ContentSummary(
      size: size, crc32c: 0, md5: [], digest: ContentDigest(bytes: []))
    let now = call.store.now
    let object = StoredObject(
      name: name, generation: now, created: now, updated: now, content: content, attributes: attributes)
    try call.judge.requireEarly(object, as: call.caller, store: call.store)
  }

  private func upload(
    _ target: Target, isMultipart: Bool, _ request: borrowing HTTPRequest
  ) throws(FilesError) -> any BodySink {
    let conditions = try ObjectConditions(call.parameters)
    // In two parts the name may stand in the metadata.
    let named = try target.name == nil && isMultipart ? nil : target.object()
    let bucket = target.bucket
    let contentType = isMultipart ? nil : request.text("content-type")
    let contentEncoding = isMultipart ? nil : request.text("content-encoding")
    try call.judge.requireRules(as: call.caller)
    if let named, let size = request.text("content-length").flatMap({ Int($0) }) {
      var attributes = ObjectAttributes()
      attributes.contentType = contentType
      attributes.contentEncoding = contentEncoding
      if !isMultipart { try requireEarly(named, attributes, size: size) }
    }
    let multipart = try isMultipart ? MultipartReader(contentType: request.header("content-type")) : nil
    let plan = UploadBody.Plan(
      open: { () throws(FilesError) in .new(try call.store.makeIncoming()) },
      finish: { (file, head) throws(FilesError) in
        var attributes = ObjectAttributes()
        attributes.contentType = head?.contentType ?? contentType
        attributes.contentEncoding = contentEncoding
        var name = named
        var declared = DeclaredChecksums()
        if let head {
          let metadata = try head.metadata.withRawBytes { (bytes) throws(FilesError) in try AttributesReader(bytes) }
          metadata.apply(to: &attributes, keepsTokens: false)
          declared = metadata.declared
          if name == nil, let text = metadata.name { name = try ObjectName(checking: bucket, text) }
        }
        guard let name else { throw .invalid("The request names no object.") }
        if attributes.metadata.downloadTokens.isEmpty { attributes.metadata.downloadTokens = [DownloadToken.make()] }
        let object = try call.store.put(
          name, file.incoming, attributes, declared: declared, conditions: conditions
        ) { (before, after) throws(FilesError) in try require(.create, name, before: before, after: after) }
        return { send(object) }
      },
      fail: { call.fail($0) })
    return UploadBody(call.reply.exchange, multipart: multipart, plan)
  }
}
