import DatabaseService
import Files
import RulesEngine
import Transport

/// Handles resumable uploads of Cloud Storage clients, and of some Firebase clients: each request is a `PUT` with
/// `Content-Range` (storage-api.md, section 10).
struct CloudResumableUpload: Sendable {
  let call: StorageRequest

  init(_ call: StorageRequest) { self.call = call }

  /// The header `Content-Range: bytes a-b/total`. Either side may be `*`.
  struct ContentRange: Sendable {
    /// The position of the first byte, or `nil` if the request has no bytes.
    var start: Int?
    var count = 0
    var total: Int?

    init(_ header: String) throws(FilesError) {
      let parts = header.drop { $0 != " " }.dropFirst().split(separator: "/")
      guard header.hasPrefix("bytes "), parts.count == 2 else { throw .invalid("Malformed Content-Range: \(header)") }
      if parts[1] != "*" {
        guard let number = Int(parts[1]), number >= 0 else { throw .invalid("Malformed Content-Range: \(header)") }
        total = number
      }
      if parts[0] != "*" {
        let ends = parts[0].split(separator: "-").map { Int($0) }
        guard ends.count == 2, let first = ends[0], let last = ends[1], first >= 0, last >= first, last < total ?? .max
        else { throw .invalid("Malformed Content-Range: \(header)") }
        start = first
        count = last - first + 1
      }
    }
  }

  /// Handles a request without content: one that starts an upload, or the `DELETE` that cancels it.
  ///
  /// - Throws: ``FilesError`` if the request is malformed or its upload is not allowed.
  func handle(_ parts: [String], _ request: borrowing HTTPRequest) throws(FilesError) {
    if request.method == .delete, let id = call.parameters.value("uploadId") {
      return call.work { () throws(FilesError) in
        try call.store.cancelUpload(try call.store.openUpload(id))
      } then: {
        call.sendEmpty(499)
      }
    }
    guard request.method == .post, parts.count == 2, parts[1] == "o" else { return call.failUnknown() }
    try start(parts[0], named: call.parameters.value("name"), request)
  }

  /// Starts an upload to a bucket and responds with the upload's URL.
  ///
  /// - Parameters:
  ///   - isSigned: whether a signed URL allows the upload. The signature covers the name but not the metadata, so
  ///     the metadata must not contain another name.
  ///   - status: the status of the response.
  /// - Throws: ``FilesError`` if the request is malformed or its upload is not allowed.
  func start(
    _ bucket: String, named: String?, isSigned: Bool = false, status: Int = 200, _ request: borrowing HTTPRequest
  ) throws(FilesError) {
    let metadata = try AttributesReader(request.body)
    if isSigned, let other = metadata.name, !other.utf8.elementsEqual((named ?? "").utf8) {
      throw .invalid("The metadata contain another object name than the signed URL.")
    }
    guard let name = isSigned ? named : metadata.name ?? named else { throw .invalid("Required parameter: name") }
    let isFirebase = call.api == .firebase
    var attributes = ObjectAttributes()
    attributes.contentType = request.text("x-upload-content-type")
    metadata.apply(to: &attributes, keepsTokens: false)
    if isFirebase, attributes.metadata.downloadTokens.isEmpty {
      attributes.metadata.downloadTokens = [DownloadToken.make()]
    }
    var record = UploadRecord(name: try ObjectName(checking: bucket, name), attributes: attributes)
    record.conditions = try ObjectConditions(call.parameters)
    record.declared = metadata.declared
    record.declaredSize = try FirebaseResumableUpload.size(request.text("x-upload-content-length"))
    record.isAdmin = call.isAdmin || !isFirebase
    record.owner = call.uploadOwner(isSigned: isSigned, request)
    try attributes.check()
    if isFirebase {
      try call.authorizer.requireRules(as: call.caller)
      try FirebaseStorageHandler(call).requireEarly(record.name, attributes, sizes: record.declaredSize.map { $0...$0 })
    }
    let path = isFirebase ? "/v0/b" : "/upload/storage/v1/b"
    call.work { [record] () throws(FilesError) in
      try call.store.beginUpload(record, starter: isFirebase ? call.caller : nil)
    } then: { [record] in
      call.sendEmpty(status) { headers in
        headers.add(
          "Location",
          "\(call.origin)\(path)/\(record.name.bucket)/o?uploadType=resumable&upload_id=\(record.id)")
        headers.add("X-GUploader-UploadID", record.id)
      }
    }
  }

  /// Opens the body of a request that sends a part, or that only asks for the upload's progress.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if a header is malformed.
  func openBody(_ id: String, _ request: borrowing HTTPRequest) throws(FilesError) -> UploadBody {
    let range = try request.text("content-range").map { (text) throws(FilesError) in try ContentRange(text) }
    let hashes = try DeclaredChecksums(request, isContent: false)
    let starter = isUnauthenticated(request) ? call.store.starter(ofUpload: id) as? Caller : nil
    let plan = UploadBody.Plan(
      open: { () throws(FilesError) in
        try Self.requireNotRevoked(starter)
        let upload = try call.store.openUpload(id)
        let size = upload.incoming.size
        let start = range == nil ? 0 : range?.start
        if let start, start != size {
          call.store.endUpload(upload)
          throw .wrongOffset(expected: size, given: start)
        }
        var file = UploadBody.OpenUploadFile(incoming: upload.incoming, upload: upload)
        if let range {
          file.limit = (size + range.count, .invalid("The body is longer than Content-Range declares."))
        }
        if let size = upload.record.declaredSize, file.limit.map({ $0.bytes > size }) ?? true {
          file.limit = (size, .invalid("The upload is longer than its announced length."))
        }
        if upload.record.declaredSize == nil, !upload.record.isAdmin,
          let unknown = FirebaseStorageHandler(call).unknownLimit,
          file.limit.map({ $0.bytes > unknown.bytes }) ?? true
        {
          file.limit = unknown
        }
        return file
      },
      finish: { (file, _) throws(FilesError) in
        guard let upload = file.upload else { throw .noSuchUpload }
        let size = upload.incoming.size
        if range == nil || range?.total == size {
          let object = try finish(upload, hashes, as: starter)
          return { send(object) }
        }
        do throws(FilesError) {
          if range?.start != nil { try call.store.saveUpload(upload) }
          if let total = range?.total, size > total {
            throw .invalid("The upload is longer than the total in Content-Range.")
          }
        } catch {
          call.store.endUpload(upload)
          throw error
        }
        call.store.endUpload(upload)
        return { sendProgress(size) }
      },
      interrupt: { file in
        if let upload = file.upload { call.store.endUpload(upload) }
      },
      fail: { error in
        switch error {
        case .wrongOffset(let expected, _): sendProgress(expected)
        case .uploadOver: respondAgain(id)
        default: call.fail(error)
        }
      })
    return UploadBody(call.responder.exchange, plan)
  }

  /// Responds with the number of bytes received. Status 308 means "continue" here; without `Location`, clients do
  /// not treat it as a redirect.
  private func sendProgress(_ size: Int) {
    call.sendEmpty(308) { headers in
      if size > 0 { headers.add("Range", "bytes=0-\(size - 1)") }
    }
  }

  private func respondAgain(_ id: String) {
    call.work { () throws(FilesError) in
      let record = try call.store.upload(id)
      guard case .finished(let generation) = record.state, let object = try call.store.object(record.name),
        object.generation == generation
      else { throw .noSuchUpload }
      return object
    } then: {
      send($0)
    }
  }

  /// Throws ``FilesError/denied(_:)`` if the account that started the upload, perhaps days ago, was disabled,
  /// deleted or signed out meanwhile. The age of its token does not matter, because the later requests carry no
  /// credentials.
  private static func requireNotRevoked(_ starter: Caller?) throws(FilesError) {
    guard case .user(let auth?)? = starter, let reason = auth.revocationCheck?.revocationReason else { return }
    throw .denied("The user who started the upload may not continue it: \(reason).")
  }

  private func finish(
    _ upload: OpenUpload, _ hashes: DeclaredChecksums, as starter: Caller?
  ) throws(FilesError) -> StoredObject {
    let caller = starter ?? call.caller
    let declared: DeclaredChecksums
    do throws(FilesError) {
      // The user's account may have changed during the upload.
      try Self.requireNotRevoked(starter)
      declared = try hashes.and(upload.record.declared)
    } catch {
      try call.store.cancelUpload(upload)
      throw error
    }
    return try call.store.finishUpload(upload, declared: declared) { (before, after) throws(FilesError) in
      if upload.record.isAdmin { return }
      try call.authorizer.require(.create, upload.record.name, as: caller, before: before, after: after)
    }
  }

  private func send(_ object: StoredObject) {
    if call.api == .firebase {
      FirebaseStorageHandler(call).send(object)
    } else {
      CloudStorageHandler(call).send(object)
    }
  }

  private func isUnauthenticated(_ request: borrowing HTTPRequest) -> Bool {
    call.api == .firebase && request.header("authorization") == nil
  }
}
