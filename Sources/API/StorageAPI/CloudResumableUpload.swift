import DatabaseService
import Files
import FileService
import GatewayCore
import Transport

/// Handles resumable uploads of Cloud Storage clients, and of some Firebase clients (storage-api.md, section 10).
///
/// A `POST` starts an upload, and a `DELETE` cancels it. A `PUT` with `Content-Range` sends a part or asks for the
/// progress, and a `PUT` without `Content-Range` sends the whole content.
struct CloudResumableUpload: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

  private var service: StorageService { storageRequest.service }
  private var caller: Caller { storageRequest.caller }

  /// The header `Content-Range: bytes a-b/total`. Either side of the slash may be `*`.
  ///
  /// Node's client sends everything from `a` on in one request, with `bytes a-*/total`, and with `bytes a-*/*` if it does
  /// not know the total. Then the end of the body is the end of the content.
  struct ContentRange: Sendable {
    /// The position of the first byte, or `nil` if the request has no bytes.
    var start: Int?
    /// The number of bytes, or `nil` if the header does not limit them.
    var count: Int? = 0
    var total: Int?

    /// The length of the whole content, as the header declares it.
    var declaredTotal: UploadPart.Total { total.map { .bytes($0) } ?? (count == nil ? .here : .unknown) }

    init(_ header: String) throws(FilesError) {
      let parts = header.drop { $0 != " " }.dropFirst().split(separator: "/")
      guard header.hasPrefix("bytes "), parts.count == 2 else { throw .invalid("Malformed Content-Range: \(header)") }
      if parts[1] != "*" {
        guard let number = Int(parts[1]), number >= 0 else { throw .invalid("Malformed Content-Range: \(header)") }
        total = number
      }
      if parts[0] != "*" {
        let ends = parts[0].split(separator: "-", maxSplits: 1)
        guard ends.count == 2, let first = Int(ends[0]), first >= 0, first <= total ?? .max else {
          throw .invalid("Malformed Content-Range: \(header)")
        }
        start = first
        if ends[1] == "*" {
          count = total.map { $0 - first }
          return
        }
        // An empty part ends before its beginning: Node's client sends `bytes 0--1/0` for an empty file.
        guard let last = Int(ends[1]), last >= first - 1, last < total ?? .max else {
          throw .invalid("Malformed Content-Range: \(header)")
        }
        count = last - first + 1
      }
    }
  }

  /// Cancels an upload.
  ///
  /// - Throws: ``FilesError/noSuchUpload`` if the request names none.
  func cancel() throws(FilesError) {
    let id = try id()
    storageRequest.work { () throws(FilesError) in
      try service.cancelUpload(id, as: caller)
    } then: {
      // Cloud Storage's status for a cancelled upload.
      storageRequest.sendEmpty(499)
    }
  }

  /// Starts an upload to a bucket and responds with the upload's URL.
  ///
  /// - Parameters:
  ///   - isSigned: whether a signed URL allows the upload. The signature covers the name and the header, but not the
  ///     metadata in the body. So the metadata must not contain another name, only their checksums count, and the
  ///     content type is that of the request.
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
    if isSigned {
      attributes.contentType = request.text("content-type")
    } else {
      attributes.contentType = request.text("x-upload-content-type")
      metadata.apply(to: &attributes, keepsTokens: false)
    }
    if isFirebase { attributes.metadata.addTokenIfMissing() }
    var draft = ObjectDraft(try ObjectName(checking: bucket, name), attributes)
    draft.conditions = try ObjectConditions(storageRequest.parameters)
    draft.declared = metadata.declared
    draft.sizes = try FirebaseResumableUpload.size(request.text("x-upload-content-length")).map { $0...$0 }
    let path = isFirebase ? "/v0/b" : "/upload/storage/v1/b"
    // A signed URL has the rights of an administrator but not the quota.
    let owner = isSigned ? .address(request.clientNetwork) : UploadOwner.of(caller, at: request.clientNetwork)
    storageRequest.work { [draft] () throws(FilesError) in
      try service.beginUpload(draft, owner: owner, remembersCaller: isFirebase, as: caller)
    } then: { [bucket = draft.name.bucket] id in
      storageRequest.sendEmpty(status) { headers in
        headers.add(
          "Location",
          "\(storageRequest.origin)\(path)/\(bucket)/o?uploadType=resumable&upload_id=\(id)")
        headers.add("X-GUploader-UploadID", id)
      }
    }
  }

  /// Opens the body of a request that sends a part, or that only asks for the upload's progress.
  ///
  /// - Throws: ``FilesError/invalid(_:)`` if a header is malformed.
  func openBody(_ request: borrowing HTTPRequest) throws(FilesError) -> UploadBody {
    let id = try id()
    let range = try request.text("content-range").map { (text) throws(FilesError) in try ContentRange(text) }
    var part =
      if let range {
        UploadPart(of: id, start: range.start, count: range.count, total: range.declaredTotal)
      } else {
        UploadPart(of: id, start: 0, total: .here)
      }
    part.declared = try DeclaredChecksums(request, isContent: false)
    return UploadBody(storageRequest.responder.exchange, try service.appendUpload(part, as: caller)) { result in
      switch result {
      case .success(.stored(let object, _)): storageRequest.send(object)
      case .success(.received(let count)), .failure(.wrongOffset(let count, _)): sendProgress(count)
      case .failure(.uploadOver): respondWithFinishedUpload(id)
      case .failure(let error): storageRequest.fail(error)
      }
    }
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
      do throws(FilesError) { return try service.repeatUpload(id, as: caller) } catch .uploadOver {
        throw .noSuchUpload
      }
    } then: {
      storageRequest.send($0)
    }
  }

  private func id() throws(FilesError) -> String {
    guard let id = storageRequest.parameters.value("uploadId") else { throw .noSuchUpload }
    return id
  }
}
