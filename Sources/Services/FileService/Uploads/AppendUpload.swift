package import DatabaseService
package import Files

/// One part of a resumable upload: where its bytes belong, and whether the upload ends with them.
package struct UploadPart: Sendable {
  /// The length of the whole content, as this part declares it.
  package enum Total: Sendable {
    /// More parts follow.
    case unknown
    /// This part is the last one.
    case here
    /// The upload ends if it has so many bytes after this part.
    case bytes(Int)
  }

  /// The upload's ID.
  package var id: String
  /// The position of the first byte, or `nil` if the part has no bytes.
  package var start: Int?
  /// The number of bytes at most, or `nil` if the part does not declare it.
  package var count: Int?
  package var total: Total
  /// The checksums of the whole content, besides those from the start of the upload.
  package var declared = DeclaredChecksums()

  /// Describes a part without checksums.
  package init(of id: String, start: Int?, count: Int? = nil, total: Total) {
    self.id = id
    self.start = start
    self.count = count
    self.total = total
  }
}

extension StorageService {
  /// Begins to receive a part of a resumable upload. The upload's ID permits that. With the last part the rules
  /// authorize the upload again, with the object that exists then.
  ///
  /// The result throws ``FilesError/wrongOffset(expected:given:)`` if the part begins elsewhere than the received bytes
  /// end; ``FilesError/uploadOver`` if the upload has ended, see ``repeatUpload(_:as:)``; ``FilesError/denied(_:)`` if
  /// the rules deny the upload, the account that began it was disabled, deleted or signed out meanwhile, or the key of
  /// the program that began it was revoked. A restart of the server forgets the account that began it, but not the key.
  /// - Throws: ``FilesError`` if the store cannot be opened.
  package func appendUpload(_ part: UploadPart, as caller: Caller) throws(FilesError) -> Upload {
    let (files, initiator) = try files(as: caller).asInitiator(ofUpload: part.id)
    return Upload(PartReception(files: files, initiator: initiator, isCurrentKey: isCurrentKey, part: part))
  }

  /// Returns the object that a finished upload became, for a client that repeats its last part.
  /// - Throws: ``FilesError/noSuchUpload``; ``FilesError/uploadOver`` if the upload was cancelled, or another object
  ///   has replaced its object.
  package func repeatUpload(_ id: String, as caller: Caller) throws(FilesError) -> StoredObject {
    guard let object = try files(as: caller).finishedObject(ofUpload: id) else { throw .uploadOver }
    return object
  }
}

/// The steps of receiving one part.
private struct PartReception: UploadSteps {
  let files: CallerFiles
  /// The caller that began the upload, if it continues as that caller.
  let initiator: Caller?
  let isCurrentKey: @Sendable (_ id: String) -> Bool
  let part: UploadPart

  func open() throws(FilesError) -> UploadFile {
    try requireNotRevoked(files.upload(part.id))
    let upload = try files.openUpload(part.id)
    let size = upload.incoming.size
    if let start = part.start, start != size {
      files.endUpload(upload)
      throw .wrongOffset(expected: size, given: start)
    }
    var limit = files.limit(of: upload.record)
    if let count = part.count, limit.map({ $0.bytes >= size + count }) ?? true {
      limit = UploadLimit(bytes: size + count, error: .invalid("The body is longer than Content-Range declares."))
    }
    return UploadFile(incoming: upload.incoming, upload: upload, limit: limit)
  }

  func finish(_ file: UploadFile) throws(FilesError) -> UploadResult {
    guard let upload = file.upload else { throw .noSuchUpload }
    let size = upload.incoming.size
    switch part.total {
    case .here: return .stored(try finish(upload))
    case .bytes(size): return .stored(try finish(upload))
    case .bytes(let total): try save(upload, upTo: total)
    case .unknown: try save(upload, upTo: .max)
    }
    return .received(size)
  }

  /// Keeps the received bytes: the client queries their number and resumes from there.
  func interrupt(_ file: UploadFile) {
    if let upload = file.upload { files.endUpload(upload) }
  }

  private func save(_ upload: OpenUpload, upTo total: Int) throws(FilesError) {
    defer { files.endUpload(upload) }
    if part.start != nil { try files.saveUpload(upload) }
    guard upload.incoming.size <= total else {
      throw .invalid("The upload is longer than the total in Content-Range.")
    }
  }

  private func finish(_ upload: OpenUpload) throws(FilesError) -> StoredObject {
    let declared: DeclaredChecksums
    do throws(FilesError) {
      // The user's account may have changed during the upload.
      try requireNotRevoked(upload.record)
      declared = try part.declared.merged(with: upload.record.declared)
    } catch {
      try files.cancelUpload(upload)
      throw error
    }
    return try files.finishUpload(upload, declared: declared)
  }

  /// Throws ``FilesError/denied(_:)`` if the account that began the upload, perhaps days ago, was disabled, deleted or
  /// signed out meanwhile, or the key of the program that began it was revoked. The age of the token does not matter,
  /// because the later requests carry no credentials.
  private func requireNotRevoked(_ upload: UploadRecord) throws(FilesError) {
    var reason = initiator?.revocationReason
    if reason == nil, let id = upload.keyID, !isCurrentKey(id) { reason = "its key was revoked" }
    guard let reason else { return }
    throw .denied("The user who started the upload may not continue it: \(reason).")
  }
}
