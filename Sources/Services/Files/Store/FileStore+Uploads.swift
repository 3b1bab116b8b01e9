import Basics
import KeyValue
import Synchronization
import WireFormat

extension FileStore {
  /// Begins a resumable upload, durably.
  ///
  /// `initiator` identifies the caller: some clients send their credential with the first request only, and the rules
  /// are evaluated at the last one. It is kept until the upload ends or the server stops; see
  /// ``initiator(ofUpload:)``.
  ///
  /// Cost: O(1) besides the commit. If another upload is dropped to make room, one more record is written.
  /// - Throws: ``FilesError/tooManyUploads`` or ``FilesError/tooManyUploadsOfOwner(_:)`` if a limit is reached and
  ///   no upload has been idle for long enough; ``FilesError`` if the write fails.
  package func beginUpload(_ record: UploadRecord, initiator: (any Sendable)? = nil) throws(FilesError) {
    try record.attributes.check()
    if let size = record.declaredSize { try requireAccepted(bytes: size) }
    var record = record
    record.created = now
    let bounds = OpenUploads.Limits(
      all: configuration.uploadsMax, ofOwner: configuration.uploadsOfOwnerMax,
      restedBefore: now - Int64(UploadRecord.restSeconds) * 1_000_000)
    let victim = try uploads.admit(record.id, record.owner, initiator: initiator, now: now, bounds)
    do throws(FilesError) {
      if let victim { try drop([victim]) }
      let incoming = try contents.makeIncoming(record.id)
      try change { (transaction, _, _) throws(FilesError) in
        try requireBucket(record.name.bucket, transaction)
        // Refuses what cannot become an object before its bytes arrive. The end of the upload decides.
        if let size = record.declaredSize {
          try requireRoom(forBytes: size, insteadOf: transaction.object(record.name), transaction)
        }
        try transaction.write(FilesKeySpace.upload(record.id), record.encoded)
      }
      incoming.keep()
      uploads.rest(record.id, OpenUpload(record: record, incoming: incoming), now: now)
    } catch {
      uploads.end(record.id)
      throw error
    }
  }

  /// Returns the `initiator` of an active upload, or `nil` if none was given or the server restarted.
  package func initiator(ofUpload id: String) -> (any Sendable)? { uploads.initiator(id) }

  /// Returns the stored record of an upload.
  /// - Throws: ``FilesError/noSuchUpload`` if it does not exist or is too old; ``FilesError/storage(_:)`` if the
  ///   read fails.
  package func upload(_ id: String) throws(FilesError) -> UploadRecord {
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    // The server generates the IDs. A text of another form is not looked up.
    guard id.utf8.count == 32, Hexadecimal.bytes(id) != nil, let record = try snapshot.read(FilesKeySpace.upload(id))
    else { throw .noSuchUpload }
    let upload = UploadRecord(id: id, record: record)
    guard !isOld(upload) else { throw .noSuchUpload }
    return upload
  }

  private func isOld(_ upload: UploadRecord) -> Bool {
    upload.created + Int64(UploadRecord.lifetimeSeconds) * 1_000_000 < now
  }

  /// Acquires an upload for one request, to append to it or to read its progress. Release it with
  /// ``endUpload(_:)``.
  ///
  /// Cost: if the server restarted since the last request, reads the bytes received so far.
  /// - Throws: ``FilesError/noSuchUpload``; ``FilesError/uploadOver``; ``FilesError/uploadBusy`` while another
  ///   request has acquired it; ``FilesError/uploadLost`` if its bytes are on another node; ``FilesError`` if its file
  ///   cannot be read.
  package func openUpload(_ id: String) throws(FilesError) -> OpenUpload {
    let record = try upload(id)
    guard record.state == .active else { throw .uploadOver }
    let (isFree, open) = uploads.begin(id)
    guard isFree else { throw .uploadBusy }
    if let open { return open }
    do throws(FilesError) {
      // It may have ended between the first lookup and its acquisition.
      let record = try upload(id)
      guard record.state == .active else { throw .uploadOver }
      guard let incoming = try contents.reopenIncoming(id, size: record.received) else {
        throw cache == nil ? .noSuchUpload : .uploadLost
      }
      return OpenUpload(record: record, incoming: incoming)
    } catch {
      uploads.release(id)
      throw error
    }
  }

  /// Releases an upload that continues later.
  package func endUpload(_ upload: OpenUpload) {
    guard upload.incoming.hasFailed else { return uploads.rest(upload.record.id, upload, now: now) }
    // A failed sync ends the upload.
    uploads.end(upload.record.id)
  }

  /// Makes the received bytes durable, so that they survive a restart. If the sync fails, the upload is cancelled,
  /// because it is unknown which bytes reached the disk.
  /// - Throws: ``FilesError`` if the sync or the write fails.
  package func saveUpload(_ upload: OpenUpload) throws(FilesError) {
    do throws(FilesError) { try upload.incoming.sync() } catch {
      upload.incoming.discard()
      try? markCancelled(upload.record)
      throw error
    }
    var record = upload.record
    record.received = upload.incoming.size
    try change { (transaction, _, _) throws(FilesError) in
      try transaction.write(FilesKeySpace.upload(record.id), record.encoded)
    }
  }

  /// Finishes an upload: the received bytes become the object, and the upload is released. A refusal ends the
  /// upload too. Only if the content does not have the declared length can the upload continue.
  /// - Throws: ``FilesError/invalid(_:)`` if the length differs from the declared one; otherwise as
  ///   ``put(_:_:_:declared:conditions:componentCount:removing:ending:check:)``.
  package func finishUpload(
    _ upload: OpenUpload, declared: DeclaredChecksums, check: @escaping WriteCheck = { _, _ throws(FilesError) in }
  ) throws(FilesError) -> StoredObject {
    let size = upload.incoming.size
    if let announced = upload.record.declaredSize, announced != size {
      endUpload(upload)
      throw .invalid("The upload was declared with \(announced) bytes, but \(size) bytes were received.")
    }
    defer { uploads.end(upload.record.id) }
    upload.incoming.discard()
    do throws(FilesError) {
      return try put(
        upload.record.name, upload.incoming, upload.record.attributes, declared: declared,
        conditions: upload.record.conditions, ending: upload.record, check: check)
    } catch {
      try? markCancelled(upload.record)
      throw error
    }
  }

  /// Cancels an upload and releases it.
  /// - Throws: ``FilesError`` if the write fails.
  package func cancelUpload(_ upload: OpenUpload) throws(FilesError) {
    defer { uploads.end(upload.record.id) }
    upload.incoming.discard()
    try markCancelled(upload.record)
  }

  private func markCancelled(_ record: UploadRecord) throws(FilesError) {
    let ended = record.ended(.cancelled, received: 0)
    try change { (transaction, _, _) throws(FilesError) in
      try transaction.write(FilesKeySpace.upload(record.id), ended.encoded)
    }
  }

  /// Removes acquired uploads with their received bytes. If that fails, they are released.
  private func drop(_ taken: [(id: String, open: OpenUpload?)]) throws(FilesError) {
    do throws(FilesError) {
      try change { (transaction, _, _) throws(FilesError) in
        for (id, _) in taken { try transaction.erase(FilesKeySpace.upload(id)) }
      }
    } catch {
      for (id, open) in taken { uploads.rest(id, open, now: now) }
      throw error
    }
    for (id, open) in taken {
      open?.incoming.discard()
      if open == nil { contents.removeIncoming(id) }
      uploads.end(id)
    }
  }

  // MARK: - Expiry

  /// Removes the expired uploads and the records of those that ended. Call it periodically.
  ///
  /// Cost: reads the record of every upload.
  /// - Throws: ``FilesError`` if the store fails.
  package func removeOldUploads() throws(FilesError) {
    var old = try storedUploads(isOld).map(\.id)[...]
    while !old.isEmpty {
      // Acquired uploads stay until the next call.
      try drop(
        old.prefix(1000).compactMap { id in
          let (isFree, open) = uploads.begin(id)
          return isFree ? (id, open) : nil
        })
      old = old.dropFirst(1000)
    }
  }

  /// Returns the uploads that can be resumed.
  func activeUploads() throws(FilesError) -> [UploadRecord] { try storedUploads { $0.state == .active } }

  /// Returns the uploads for which `isWanted` is true.
  private func storedUploads(_ isWanted: (UploadRecord) -> Bool) throws(FilesError) -> [UploadRecord] {
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    var found: [UploadRecord] = []
    let wanted = FilesKeySpace.all(.uploads)
    let scan = try MetadataCursor(snapshot)
    var isFound = try scan.seek(wanted)
    while isFound, scan.key.starts(with: wanted) {
      let id = String(decoding: scan.key.dropFirst(), as: UTF8.self)
      let upload = UploadRecord(id: id, record: scan.value)
      if isWanted(upload) { found.append(upload) }
      isFound = try scan.next()
    }
    return found
  }
}
