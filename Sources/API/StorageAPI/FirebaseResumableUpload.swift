import DatabaseService
import Files
import FileService
import GatewayCore
import Transport

/// Handles resumable uploads in Firebase's protocol, with the header `X-Goog-Upload-Command` (storage-api.md,
/// section 4).
struct FirebaseResumableUpload: Sendable {
  let storageRequest: StorageRequest

  init(_ storageRequest: StorageRequest) { self.storageRequest = storageRequest }

  private var service: StorageService { storageRequest.service }
  private var caller: Caller { storageRequest.caller }

  /// Clients should send parts whose length is a multiple of this number of bytes.
  private static let granularityBytes = 262_144

  /// Handles a request that carries no content of an object (its body may be metadata): `start`, `query`, `cancel` or
  /// `finalize`.
  ///
  /// - Throws: ``FilesError`` if the request is malformed or its upload is not allowed.
  func handle(
    _ target: FirebaseStorageHandler.Target, _ request: borrowing HTTPRequest
  ) throws(FilesError) {
    let commands = FirebaseStorageHandler.commands(request)
    if commands.contains("start") { return try start(target, request) }
    let id = try id()
    if commands.contains("query") {
      storageRequest.work { () throws(FilesError) in
        try service.queryUpload(id, as: caller)
      } then: { progress in
        storageRequest.sendEmpty(200) { headers in
          headers.add("X-Goog-Upload-Status", progress.isFinal ? "final" : "active")
          headers.add("X-Goog-Upload-Size-Received", String(progress.received))
        }
      }
    } else if commands.contains("cancel") {
      storageRequest.work { () throws(FilesError) in
        try service.cancelUpload(id, as: caller)
      } then: {
        storageRequest.sendEmpty(200) { $0.add("X-Goog-Upload-Status", "cancelled") }
      }
    } else if commands.contains("finalize") {
      try openBody(request).ended()
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
    attributes.metadata.addTokenIfMissing()
    var draft = ObjectDraft(name, attributes)
    draft.conditions = try ObjectConditions(storageRequest.parameters)
    draft.declared = metadata.declared
    draft.sizes = try Self.size(request.text("x-goog-upload-header-content-length")).map { $0...$0 }
    let owner = UploadOwner.of(caller, at: request.clientNetwork)
    storageRequest.work { [draft] () throws(FilesError) in
      try service.beginUpload(draft, owner: owner, as: caller)
    } then: { id in
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
  func openBody(_ request: borrowing HTTPRequest) throws(FilesError) -> UploadBody {
    let commands = FirebaseStorageHandler.commands(request)
    let id = try id()
    let isLast = commands.contains("finalize")
    let offset = request.text("x-goog-upload-offset")
    // Write the bytes only at the position that the client names. Without an offset, an `upload` starts at 0.
    let position = commands.contains("upload") || offset != nil ? Int(offset ?? "0") : nil
    if offset != nil, position == nil { throw .invalid("X-Goog-Upload-Offset must be a number.") }
    let part = UploadPart(of: id, start: position, total: isLast ? .here : .unknown)
    return UploadBody(storageRequest.responder.exchange, try service.appendUpload(part, as: caller)) { result in
      switch result {
      case .success(.stored(let object, _)): storageRequest.send(object) { $0.add("X-Goog-Upload-Status", "final") }
      case .success(.received(let count)): storageRequest.sendEmpty(200) { Self.addActive(count, &$0) }
      case .failure(.uploadOver): respondWithFinishedUpload(id)
      case .failure(let error):
        storageRequest.fail(error) { headers in
          // Without this header clients would repeat the request.
          if case .denied = error { headers.add("X-Goog-Upload-Status", "final") }
          if case .wrongOffset(let expected, _) = error { Self.addActive(expected, &headers) }
        }
      }
    }
  }

  private static func addActive(_ received: Int, _ headers: inout HeaderWriter) {
    headers.add("X-Goog-Upload-Status", "active")
    headers.add("X-Goog-Upload-Size-Received", String(received))
  }

  /// Responds to a part of an upload that is over: repeats the final response, or reports that the upload was
  /// canceled.
  private func respondWithFinishedUpload(_ id: String) {
    storageRequest.work { () throws(FilesError) in
      try service.repeatUpload(id, as: caller)
    } then: { object in
      storageRequest.send(object) { $0.add("X-Goog-Upload-Status", "final") }
    }
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
