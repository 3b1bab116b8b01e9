import GatewayCore
import DatabaseService
import Files
import RulesEngine
import Transport

/// Handles resumable uploads of Cloud Storage clients, and of some Firebase clients (storage-api.md, section 10).
///
/// A `POST` starts an upload, and a `DELETE` cancels it. A `PUT` with `Content-Range` sends a part or asks for the
/// progress, and a `PUT` without `Content-Range` sends the whole content.
struct CloudResumableUpload: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

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

  /// Handles a request that carries no content of an object (its body may be metadata): the `POST` that starts an
  /// upload, or the `DELETE` that cancels it.
  ///
  /// - Throws: ``FilesError`` if the request is malformed or its upload is not allowed.
  func handle(_ parts: [String], _ request: borrowing HTTPRequest) throws(FilesError) {
    if request.method == .delete, let id = storageRequest.parameters.value("uploadId") {
      return storageRequest.work { () throws(FilesError) in
        try storageRequest.store.cancelUpload(try storageRequest.store.openUpload(id))
      } then: {
        // Cloud Storage's status for a cancelled upload.
        storageRequest.sendEmpty(499)
      }
    }
    guard request.method == .post, parts.count == 2, parts[1] == "o" else { return storageRequest.failUnknown() }
    try start(parts[0], named: storageRequest.parameters.value("name"), request)
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
    let isFirebase = storageRequest.api == .firebase
    var attributes = ObjectAttributes()
    attributes.contentType = request.text("x-upload-content-type")
    metadata.apply(to: &attributes, keepsTokens: false)
    if isFirebase, attributes.metadata.downloadTokens.isEmpty {
      attributes.metadata.downloadTokens = [DownloadToken.make()]
    }
    var record = UploadRecord(name: try ObjectName(checking: bucket, name), attributes: attributes)
    record.conditions = try ObjectConditions(storageRequest.parameters)
    record.declared = metadata.declared
    record.declaredSize = try FirebaseResumableUpload.size(request.text("x-upload-content-length"))
    record.isAdmin = storageRequest.isAdmin || !isFirebase
    record.owner = storageRequest.uploadOwner(isSigned: isSigned, request)
    try attributes.check()
    if isFirebase {
      try storageRequest.authorizer.requireRules(as: storageRequest.caller)
      try FirebaseStorageHandler(storageRequest).requireEarly(
        record.name, attributes, sizes: record.declaredSize.map { $0...$0 })
    }
    let path = isFirebase ? "/v0/b" : "/upload/storage/v1/b"
    storageRequest.work { [record] () throws(FilesError) in
      try storageRequest.store.beginUpload(record, initiator: isFirebase ? storageRequest.caller : nil)
    } then: { [record] in
      storageRequest.sendEmpty(status) { headers in
        headers.add(
          "Location",
          "\(storageRequest.origin)\(path)/\(record.name.bucket)/o?uploadType=resumable&upload_id=\(record.id)")
        headers.add("X-GUploader-UploadID", record.id)
      }
    }
  }

  /// Opens the body of a request that sends a part, or that only asks for the upload's progress.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if a header is malformed.
  func openBody(_ id: String, _ request: borrowing HTTPRequest) throws(FilesError) -> UploadBody {
    let range = try request.text("content-range").map { (text) throws(FilesError) in try ContentRange(text) }
    let checksums = try DeclaredChecksums(request, isContent: false)
    let initiator = isUnauthenticated(request) ? storageRequest.store.initiator(ofUpload: id) as? Caller : nil
    let plan = UploadBody.Plan(
      open: { () throws(FilesError) in
        try Self.requireNotRevoked(initiator)
        let upload = try storageRequest.store.openUpload(id)
        let size = upload.incoming.size
        let start = range == nil ? 0 : range?.start
        if let start, start != size {
          storageRequest.store.endUpload(upload)
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
          let unknown = FirebaseStorageHandler(storageRequest).unknownLimit,
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
          let object = try finish(upload, checksums, as: initiator)
          return { send(object) }
        }
        do throws(FilesError) {
          if range?.start != nil { try storageRequest.store.saveUpload(upload) }
          if let total = range?.total, size > total {
            throw .invalid("The upload is longer than the total in Content-Range.")
          }
        } catch {
          storageRequest.store.endUpload(upload)
          throw error
        }
        storageRequest.store.endUpload(upload)
        return { sendProgress(size) }
      },
      interrupt: { file in
        if let upload = file.upload { storageRequest.store.endUpload(upload) }
      },
      fail: { error in
        switch error {
        case .wrongOffset(let expected, _): sendProgress(expected)
        case .uploadOver: respondWithFinishedUpload(id)
        default: storageRequest.fail(error)
        }
      })
    return UploadBody(storageRequest.responder.exchange, plan)
  }

  /// Responds with the number of bytes received. Status 308 means "continue" here; without `Location`, clients do
  /// not treat it as a redirect.
  private func sendProgress(_ size: Int) {
    storageRequest.sendEmpty(308) { headers in
      if size > 0 { headers.add("Range", "bytes=0-\(size - 1)") }
    }
  }

  private func respondWithFinishedUpload(_ id: String) {
    storageRequest.work { () throws(FilesError) in
      let record = try storageRequest.store.upload(id)
      guard case .finished(let generation) = record.state, let object = try storageRequest.store.object(record.name),
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
  private static func requireNotRevoked(_ initiator: Caller?) throws(FilesError) {
    guard let reason = initiator?.revocationReason else { return }
    throw .denied("The user who started the upload may not continue it: \(reason).")
  }

  private func finish(
    _ upload: OpenUpload, _ checksums: DeclaredChecksums, as initiator: Caller?
  ) throws(FilesError) -> StoredObject {
    let caller = initiator ?? storageRequest.caller
    let declared: DeclaredChecksums
    do throws(FilesError) {
      // The user's account may have changed during the upload.
      try Self.requireNotRevoked(initiator)
      declared = try checksums.merged(with: upload.record.declared)
    } catch {
      try storageRequest.store.cancelUpload(upload)
      throw error
    }
    return try storageRequest.store.finishUpload(upload, declared: declared) { (before, after) throws(FilesError) in
      if upload.record.isAdmin { return }
      _ = try storageRequest.authorizer.grant(
        .create, upload.record.name, as: caller, before: before, after: after)
    }
  }

  private func send(_ object: StoredObject) {
    if storageRequest.api == .firebase {
      FirebaseStorageHandler(storageRequest).send(object)
    } else {
      CloudStorageHandler(storageRequest).send(object)
    }
  }

  private func isUnauthenticated(_ request: borrowing HTTPRequest) -> Bool {
    storageRequest.api == .firebase && request.header("authorization") == nil
  }
}
