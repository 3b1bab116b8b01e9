import GatewayCore
import Files
import RulesEngine
import Transport

/// Handles resumable uploads in Firebase's protocol, with the header `X-Goog-Upload-Command` (storage-api.md,
/// section 4).
struct FirebaseResumableUpload: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

  /// Clients should send parts whose length is a multiple of this number of bytes.
  private static let granularityBytes = 262_144

  /// Handles a request that carries no content of an object (its body may be metadata): `start`, `query`, `cancel` or
  /// `finalize`.
  ///
  /// - Throws: ``FilesError`` if the request is malformed or its upload is not allowed.
  func handle(
    _ commands: [String], _ target: FirebaseStorageHandler.Target, _ request: borrowing HTTPRequest
  ) throws(FilesError) {
    if commands.contains("start") { return try start(target, request) }
    let id = try id()
    if commands.contains("query") {
      storageRequest.work { () throws(FilesError) in
        try progress(id)
      } then: { progress in
        storageRequest.sendEmpty(200) { headers in
          headers.add("X-Goog-Upload-Status", progress.isFinal ? "final" : "active")
          headers.add("X-Goog-Upload-Size-Received", String(progress.received))
        }
      }
    } else if commands.contains("cancel") {
      storageRequest.work { () throws(FilesError) in
        try storageRequest.store.cancelUpload(try storageRequest.store.openUpload(id))
      } then: {
        storageRequest.sendEmpty(200) { $0.add("X-Goog-Upload-Status", "cancelled") }
      }
    } else if commands.contains("finalize") {
      let sink = try openBody(commands, request)
      sink.ended()
    } else {
      throw .invalid("Unknown X-Goog-Upload-Command: \(commands.joined(separator: ", "))")
    }
  }

  private func start(_ target: FirebaseStorageHandler.Target, _ request: borrowing HTTPRequest) throws(FilesError) {
    let metadata = try AttributesReader(request.body)
    let name = try (target.name ?? metadata.name).map { (name) throws(FilesError) in
      try ObjectName(checking: target.bucket, name)
    }
    guard let name else { throw .invalid("The request names no object.") }
    var attributes = ObjectAttributes()
    attributes.contentType = request.text("x-goog-upload-header-content-type")
    metadata.apply(to: &attributes, keepsTokens: false)
    if attributes.metadata.downloadTokens.isEmpty { attributes.metadata.downloadTokens = [DownloadToken.make()] }
    var record = UploadRecord(name: name, attributes: attributes)
    record.conditions = try ObjectConditions(storageRequest.parameters)
    record.declared = metadata.declared
    record.declaredSize = try Self.size(request.text("x-goog-upload-header-content-length"))
    record.isAdmin = storageRequest.isAdmin
    record.owner = storageRequest.uploadOwner(request)
    try attributes.check()
    try storageRequest.authorizer.requireRules(as: storageRequest.caller)
    try FirebaseStorageHandler(storageRequest).requireEarly(
      name, attributes, sizes: record.declaredSize.map { $0...$0 })
    storageRequest.work { [record] () throws(FilesError) in
      try storageRequest.store.beginUpload(record)
    } then: { [id = record.id] in
      let url =
        "\(storageRequest.origin)/v0/b/\(target.bucket)/o?name=\(PercentEncoding.encode(name.name.utf8))&upload_id=\(id)"
        + "&upload_protocol=resumable"
      storageRequest.sendEmpty(200) { headers in
        headers.add("X-Goog-Upload-Status", "active")
        headers.add("X-Goog-Upload-URL", url)
        headers.add("X-Goog-Upload-Control-URL", url)
        headers.add("X-Goog-Upload-Chunk-Granularity", String(Self.granularityBytes))
        headers.add("X-GUploader-UploadID", id)
      }
    }
  }

  /// Opens the body of an `upload` or `upload, finalize` request.
  ///
  /// - Throws: ``FilesError`` if the request names no upload or its offset is not a number.
  func openBody(_ commands: [String], _ request: borrowing HTTPRequest) throws(FilesError) -> UploadBody {
    let id = try id()
    let isLast = commands.contains("finalize")
    let offset = request.text("x-goog-upload-offset")
    // Write the bytes only at the position that the client names. Without an offset, an `upload` starts at 0.
    let position = commands.contains("upload") || offset != nil ? Int(offset ?? "0") : nil
    if offset != nil, position == nil { throw .invalid("X-Goog-Upload-Offset must be a number.") }
    let files = FirebaseStorageHandler(storageRequest)
    let plan = UploadBody.Plan(
      open: { () throws(FilesError) in
        let upload = try storageRequest.store.openUpload(id)
        if let position, position != upload.incoming.size {
          let expected = upload.incoming.size
          storageRequest.store.endUpload(upload)
          throw .wrongOffset(expected: expected, given: position)
        }
        var file = UploadBody.OpenUploadFile(incoming: upload.incoming, upload: upload)
        if let size = upload.record.declaredSize {
          file.limit = (size, .invalid("The upload is longer than its announced length."))
        } else if !upload.record.isAdmin {
          file.limit = files.unknownLimit
        }
        return file
      },
      finish: { (file, _) throws(FilesError) in
        guard let upload = file.upload else { throw .noSuchUpload }
        guard isLast else {
          do throws(FilesError) { try storageRequest.store.saveUpload(upload) } catch {
            storageRequest.store.endUpload(upload)
            throw error
          }
          let received = upload.incoming.size
          storageRequest.store.endUpload(upload)
          return {
            storageRequest.sendEmpty(200) { headers in
              headers.add("X-Goog-Upload-Status", "active")
              headers.add("X-Goog-Upload-Size-Received", String(received))
            }
          }
        }
        let name = upload.record.name
        let object = try storageRequest.store.finishUpload(upload, declared: upload.record.declared) {
          (before, after) throws(FilesError) in
          if !upload.record.isAdmin { try files.require(.create, name, before: before, after: after) }
        }
        return { files.send(object) { $0.add("X-Goog-Upload-Status", "final") } }
      },
      interrupt: { file in
        // Keep the received bytes: the client queries their number and resumes from there.
        if let upload = file.upload { storageRequest.store.endUpload(upload) }
      },
      fail: { error in
        if case .uploadOver = error { return respondWithFinishedUpload(id) }
        storageRequest.fail(error) { headers in
          // Without this header clients would repeat the request.
          if case .denied = error { headers.add("X-Goog-Upload-Status", "final") }
          if case .wrongOffset(let expected, _) = error {
            headers.add("X-Goog-Upload-Status", "active")
            headers.add("X-Goog-Upload-Size-Received", String(expected))
          }
        }
      })
    return UploadBody(storageRequest.responder.exchange, plan)
  }

  /// Responds to a part of an upload that is over: repeats the final response, or reports that the upload was
  /// canceled.
  private func respondWithFinishedUpload(_ id: String) {
    storageRequest.work { () throws(FilesError) in
      let record = try storageRequest.store.upload(id)
      guard case .finished(let generation) = record.state, let object = try storageRequest.store.object(record.name),
        object.generation == generation
      else { throw .uploadOver }
      return object
    } then: { object in
      FirebaseStorageHandler(storageRequest).send(object) { $0.add("X-Goog-Upload-Status", "final") }
    }
  }

  private func progress(_ id: String) throws(FilesError) -> (isFinal: Bool, received: Int) {
    let record = try storageRequest.store.upload(id)
    guard record.state == .active else { return (true, record.declaredSize ?? record.received) }
    let upload = try storageRequest.store.openUpload(id)
    defer { storageRequest.store.endUpload(upload) }
    return (false, upload.incoming.size)
  }

  /// The length that a header announces, or `nil` without the header.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if the header is not a number.
  static func size(_ header: String?) throws(FilesError) -> Int? {
    guard let header else { return nil }
    guard let size = Int(header), size >= 0 else { throw .invalid("The announced length is not a number: \(header)") }
    return size
  }

  private func id() throws(FilesError) -> String {
    guard let id = storageRequest.parameters.value("uploadId") else { throw .noSuchUpload }
    return id
  }
}
