import Callers
import ContentSharing
import DatabaseService
import DocumentModel
import Files
import RulesEngine

/// The file store as one caller may use it.
///
/// Only this file can use the store itself, and each function that reads or writes objects authorizes the caller. So a
/// read or write that is not authorized does not compile. The parts of a resumable upload need no rules: the upload's
/// ID, 128 random bits, permits sending its content, as in Google's service.
struct CallerFiles: Sendable {
  private let store: FileStore
  private let authorizer: StorageAuthorizer
  private let caller: Caller

  init(_ store: FileStore, _ authorizer: StorageAuthorizer, _ caller: Caller) {
    self.store = store
    self.authorizer = authorizer
    self.caller = caller
  }

  /// Returns the store itself, for calls that rules cannot allow.
  /// - Throws: ``FilesError/denied(_:)`` if the caller is not an administrator.
  func administrator() throws(FilesError) -> FileStore {
    guard caller.isAdmin else { throw .denied("Missing admin credentials.") }
    return store
  }

  // MARK: - Objects

  /// Returns an object, or `nil` if it does not exist.
  func object(_ name: ObjectName, generation: Int64?) throws(FilesError) -> StoredObject? {
    let object = try store.object(name, generation: generation)
    _ = try authorizer.grant(.get, name, as: caller, before: object)
    return object
  }

  /// Returns an object with its content, or `nil` if it does not exist. A download token of the object is a grant.
  /// - Throws: ``FilesError/notCached`` if the content is not on this node and `waits` is false.
  func content(
    _ name: ObjectName, generation: Int64?, token: String?, waits: Bool
  ) throws(FilesError) -> ObjectContent? {
    // Do not open the content before the caller is authorized: that takes longer if the object exists.
    let object = try store.object(name, generation: generation)
    try authorizeContent(name, object, token)
    guard let object, let found = try store.open(name, generation: generation, waits: waits) else { return nil }
    let content = ObjectContent(
      object: found.object, descriptor: found.descriptor, isInMemory: store.contents.isInMemory)
    if found.object != object {
      do throws(FilesError) { try authorizeContent(name, found.object, token) } catch {
        content.close()
        throw error
      }
    }
    return content
  }

  private func authorizeContent(_ name: ObjectName, _ object: StoredObject?, _ token: String?) throws(FilesError) {
    let tokens = object?.attributes.metadata.downloadTokens ?? []
    if let token, DownloadToken.isAmong(tokens, token) { return }
    _ = try authorizer.grant(.get, name, as: caller, before: object)
  }

  /// Returns the names on a page of a bucket's objects. The rules that allow a list may deny to get the objects, whose
  /// metadata include download tokens, so the result contains no metadata.
  func listNames(_ listing: ObjectListing) throws(FilesError) -> ObjectNamesPage {
    let prefix = listing.prefix.utf8
    let folder = prefix.last == UInt8(ascii: "/") ? prefix.dropLast() : prefix[...]
    _ = try authorizer.grant(.list, ObjectName(bucket: listing.bucket, name: String(Substring(folder))), as: caller)
    return ObjectNamesPage(try store.list(listing))
  }

  /// Stores received content as an object.
  func put(_ draft: ObjectDraft, _ incoming: IncomingContent) throws(FilesError) -> StoredObject {
    try store.put(
      draft.name, incoming, draft.attributes, declared: draft.declared, conditions: draft.conditions
    ) { (before, after) throws(FilesError) in
      _ = try authorizer.grant(.create, draft.name, as: caller, before: before, after: after)
    }
  }

  /// Stores received content as an object and commits documents: both or neither. For administrators only.
  /// - Throws: ``FilesError/commitRefused(code:message:fault:)`` if the documents cannot be committed; other
  ///   ``FilesError`` cases if the object cannot be stored.
  func put(
    _ draft: ObjectDraft, _ incoming: IncomingContent, with commit: FileCommit
  ) throws(FilesError) -> (object: StoredObject, outcome: CommitOutcome?) {
    var outcome: CommitOutcome?
    let documents = DocumentsCommit(database: FileCommitDatabase.text(of: commit.database)) {
      (number) throws(FilesError) in
      do {
        outcome = try authorizer.documents.commit(commit.writes, mark: number, in: commit.database, as: caller)
      } catch {
        let status = Status(error, database: commit.database)
        throw .commitRefused(code: status.code.rawValue, message: status.message, fault: status.fault)
      }
    }
    let object = try administrator().put(
      draft.name, incoming, draft.attributes, declared: draft.declared, conditions: draft.conditions, with: documents)
    return (object, outcome)
  }

  /// Changes the attributes of an object.
  func update(
    _ name: ObjectName, generation: Int64?, conditions: ObjectConditions,
    _ change: (inout ObjectAttributes) throws(FilesError) -> Void
  ) throws(FilesError) -> StoredObject {
    try store.update(
      name, generation: generation, conditions: conditions,
      check: { (before, after) throws(FilesError) in
        _ = try authorizer.grant(.update, name, as: caller, before: before, after: after)
      }, change)
  }

  /// Adds a download token to an object without one. The rules authorize the read of the object as it is now. If another
  /// object has replaced it, `check` must accept that one.
  func addDownloadToken(
    to object: StoredObject, check: (StoredObject?) throws(FilesError) -> Void
  ) throws(FilesError) -> StoredObject {
    try store.addDownloadToken(to: object) { (found, isReplaced) throws(FilesError) in
      _ = try authorizer.grant(.get, object.name, as: caller, before: found)
      if isReplaced { try check(found) }
    }
  }

  /// Deletes an object.
  func delete(_ name: ObjectName, generation: Int64?, conditions: ObjectConditions) throws(FilesError) {
    try store.delete(name, generation: generation, conditions: conditions) { (before, after) throws(FilesError) in
      _ = try authorizer.grant(.delete, name, as: caller, before: before, after: after)
    }
  }

  // MARK: - Uploads

  /// The limit of an upload of unknown length whose caller is subject to rules. The rules are evaluated at the end, so
  /// a denied upload can use at most this much of the disk.
  private static let unknownBytesMax = 16 << 20

  /// The lengths with which rules are evaluated if the length of an upload is unknown.
  private static let probedSizes = [0, 1, 100 << 10, 10 << 20]

  /// The limit of content of unknown length, or `nil` for administrators.
  private var unknownLimit: UploadLimit? {
    if caller.isAdmin { return nil }
    return UploadLimit(bytes: Self.unknownBytesMax, error: .lengthRequired(bytesMax: Self.unknownBytesMax))
  }

  /// The narrower of a limit and that of the shared content.
  private func narrowed(_ limit: UploadLimit?) -> UploadLimit? {
    guard let bytesMax = store.contentBytesMax, limit.map({ $0.bytes > bytesMax }) ?? true else { return limit }
    return UploadLimit(bytes: bytesMax, error: .tooLarge(bytesMax: bytesMax))
  }

  /// Authorizes an upload before its content arrives, so that the client need not send it if the rules deny it anyway.
  ///
  /// If the length is unknown or one of a range, the rules must deny the upload for every length tried. If the rules
  /// cannot decide yet because they use checksums, an upload longer than ``unknownBytesMax`` is rejected.
  func authorizeEarly(_ draft: ObjectDraft) throws(FilesError) {
    try draft.attributes.check()
    if caller.isAdmin { return }
    let sizes = draft.sizes
    let probed = sizes.map { $0.count > 1 ? [$0.lowerBound, $0.upperBound] : [$0.lowerBound] } ?? Self.probedSizes
    var refusal: FilesError?
    var denied: StoredObject?
    for size in probed {
      let content = ContentSummary(size: size, crc32c: 0, md5: [], digest: ContentDigest(bytes: []))
      let now = store.now
      let object = StoredObject(
        name: draft.name, generation: now, created: now, updated: now, content: content, attributes: draft.attributes)
      do throws(FilesError) {
        let isDecided = try authorizer.isDecidedEarly(try store.object(draft.name), object, as: caller)
        if isDecided || sizes.map({ $0.lowerBound <= Self.unknownBytesMax }) ?? true { return }
        refusal = .denied(
          "The rules use checksums, which are known only at the end. Such uploads may have at most "
            + "\(Self.unknownBytesMax) bytes.")
      } catch { (refusal, denied) = (error, object) }
    }
    guard let refusal else { return }
    if let denied { authorizer.noteEarlyDenial(try? store.object(draft.name), denied, as: caller) }
    throw refusal
  }

  /// Creates the file for the content of an object, after ``authorizeEarly(_:)``.
  func makeIncoming(for draft: ObjectDraft) throws(FilesError) -> UploadFile {
    if let size = draft.sizes?.lowerBound { try store.requireAccepted(bytes: size) }
    return UploadFile(incoming: try store.makeIncoming(), limit: narrowed(draft.sizes == nil ? unknownLimit : nil))
  }

  /// Begins a resumable upload, if the rules do not deny it already. Returns its record.
  func beginUpload(_ draft: ObjectDraft, owner: UploadOwner?, remembersCaller: Bool) throws(FilesError) -> UploadRecord
  {
    try authorizeEarly(draft)
    var record = UploadRecord(name: draft.name, attributes: draft.attributes)
    record.conditions = draft.conditions
    record.declared = draft.declared
    record.declaredSize = draft.sizes?.lowerBound
    record.isAdmin = caller.isAdmin
    record.owner = owner
    record.keyID = caller.keyID
    // The rules do not apply to the later parts of an administrator's upload, but a revocation of its token does.
    try store.beginUpload(record, initiator: remembersCaller || caller.isAdmin ? caller : nil)
    return record
  }

  /// Returns the stored record of an upload.
  func upload(_ id: String) throws(FilesError) -> UploadRecord { try store.upload(id) }

  /// Acquires an upload for one request.
  func openUpload(_ id: String) throws(FilesError) -> OpenUpload { try store.openUpload(id) }

  /// Releases an upload that continues later.
  func endUpload(_ upload: OpenUpload) { store.endUpload(upload) }

  /// Makes the received bytes of an upload durable.
  func saveUpload(_ upload: OpenUpload) throws(FilesError) { try store.saveUpload(upload) }

  /// Cancels an upload and releases it.
  func cancelUpload(_ upload: OpenUpload) throws(FilesError) { try store.cancelUpload(upload) }

  /// The limit of an upload's content: its announced length, else that of content of unknown length.
  func limit(of record: UploadRecord) -> UploadLimit? {
    if let size = record.declaredSize {
      return UploadLimit(bytes: size, error: .invalid("The upload is longer than its announced length."))
    }
    return narrowed(record.isAdmin ? nil : unknownLimit)
  }

  /// Finishes an upload: the received bytes become the object. Rules do not apply if an administrator began it.
  func finishUpload(_ upload: OpenUpload, declared: DeclaredChecksums) throws(FilesError) -> StoredObject {
    try store.finishUpload(upload, declared: declared) { (before, after) throws(FilesError) in
      if upload.record.isAdmin { return }
      _ = try authorizer.grant(.create, upload.record.name, as: caller, before: before, after: after)
    }
  }

  /// Returns the object that an upload became, for a client that repeats its last part, or `nil` if the upload is not
  /// finished or the object was replaced.
  func finishedObject(ofUpload id: String) throws(FilesError) -> StoredObject? {
    let record = try store.upload(id)
    guard case .finished(let generation) = record.state, let object = try store.object(record.name),
      object.generation == generation
    else { return nil }
    return object
  }

  /// The same store as the caller that began an upload may use it, if this caller is unauthenticated. Some clients send
  /// their credential with the first request only. Returns the same files otherwise.
  func asInitiator(ofUpload id: String) -> (files: CallerFiles, initiator: Caller?) {
    guard case .user(nil) = caller, let initiator = store.initiator(ofUpload: id) as? Caller else { return (self, nil) }
    return (CallerFiles(store, authorizer, initiator), initiator)
  }
}
