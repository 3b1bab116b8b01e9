package import DatabaseService
package import Files

extension StorageService {
  /// Begins to store an object whose content arrives in one piece. Rejects the upload at once if the rules deny it
  /// regardless of its content; they are evaluated again at the end, with the object that exists then.
  ///
  /// - Parameter commit: documents to commit with the object, which only administrators may do.
  /// - Throws: ``FilesError/denied(_:)``; ``FilesError/invalid(_:)`` if the attributes are not valid; ``FilesError`` if
  ///   a read fails. The result throws the other errors of
  ///   ``FileStore/put(_:_:_:declared:conditions:componentCount:removing:ending:check:)``.
  package func insertObject(
    _ draft: ObjectDraft, with commit: FileCommit? = nil, as caller: Caller
  ) throws(FilesError) -> Upload {
    let files = try files(as: caller)
    if commit != nil { _ = try files.administrator() }
    try files.authorizeEarly(draft)
    return Upload(ObjectInsertion(files: files, draft: draft, commit: commit))
  }

  /// Stores an object whose content is in memory. Waits for the disk.
  /// - Throws: the errors of ``insertObject(_:with:as:)`` and those of its result.
  package func insertObject(
    _ draft: ObjectDraft, content: [UInt8], as caller: Caller
  ) throws(FilesError) -> StoredObject {
    var draft = draft
    draft.sizes = content.count...content.count
    let upload = try insertObject(draft, as: caller)
    upload.open()
    upload.append(content)
    guard case .stored(let object, _)? = try upload.finish() else { throw .noSuchObject(draft.name) }
    return object
  }
}

/// The steps of an upload in one piece.
private struct ObjectInsertion: UploadSteps {
  let files: CallerFiles
  let draft: ObjectDraft
  let commit: FileCommit?

  func open() throws(FilesError) -> UploadFile { try files.makeIncoming(for: draft) }

  func finish(_ file: UploadFile) throws(FilesError) -> UploadResult {
    guard let commit else { return .stored(try files.put(draft, file.incoming)) }
    let (object, outcome) = try files.put(draft, file.incoming, with: commit)
    return .stored(object, outcome)
  }

  func interrupt(_ file: UploadFile) {}
}
