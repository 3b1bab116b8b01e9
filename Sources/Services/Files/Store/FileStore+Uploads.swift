import KeyValue
import Synchronization
import WireFormat

extension FileStore {
  /// Begins an upload that comes in parts, durably.
  ///
  /// `starter` says who begins it: some clients send their credential with the first request only, and rules are asked
  /// at the last. It is kept until the upload is over or the server stops; see ``starter(ofUpload:)``.
  ///
  /// Cost: O(1) but for the commit; it writes one more record where another upload is given up for it.
  /// - Throws: ``FilesError/tooManyUploads``, ``FilesError/tooManyUploadsOfOwner(_:)`` where as many are under way as
  ///   may be, and none has rested for long.
  package func beginUpload(_ record: UploadRecord, starter: (any Sendable)? = nil) throws(FilesError) {
    try record.attributes.check()
    var record = record
    record.created = now
    let bounds = OpenUploads.Bounds(
      all: configuration.uploadsMax, ofOwner: configuration.uploadsOfOwnerMax,
      restedBefore: now - Int64(UploadRecord.restSeconds) * 1_000_000)
    let victim = try uploads.admit(record.id, record.owner, starter: starter, now: now, bounds)
    do throws(FilesError) {
      if let victim { try drop([victim]) }
      let incoming = try contents.makeIncoming(record.id)
      try change { (transaction, _, _) throws(FilesError) in
        try requireBucket(record.name.bucket, transaction)
        try transaction.write(FilesKeySpace.upload(record.id), record.encoded)
      }
      incoming.keep()
      uploads.rest(record.id, OpenUpload(record: record, incoming: incoming), now: now)
    } catch {
      uploads.end(record.id)
      throw error
    }
  }

  /// Who began an upload that may go on; `nil` where nobody said, and after a restart.
  package func starter(ofUpload id: String) -> (any Sendable)? { uploads.starter(id) }

  /// What is stored of an upload.
  /// - Throws: ``FilesError/noSuchUpload``.
  package func upload(_ id: String) throws(FilesError) -> UploadRecord {
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    // An id is what this server made; anything else is not looked up.
    guard id.utf8.count == 32, Hexadecimal.bytes(id) != nil, let record = try snapshot.read(FilesKeySpace.upload(id))
    else { throw .noSuchUpload }
    let upload = UploadRecord(id: id, record: record)
    guard !isOld(upload) else { throw .noSuchUpload }
    return upload
  }

  private func isOld(_ upload: UploadRecord) -> Bool {
    upload.created + Int64(UploadRecord.lifetimeSeconds) * 1_000_000 < now
  }

  /// Takes an upload in hand, to send to it or to ask how far it is. Give it back with ``endUpload(_:)``.
  ///
  /// Cost: reads what has arrived where the server started since.
  /// - Throws: ``FilesError/noSuchUpload``; ``FilesError/uploadOver``; ``FilesError/uploadBusy`` while another request
  ///   has it.
  package func openUpload(_ id: String) throws(FilesError) -> OpenUpload {
    let record = try upload(id)
    guard record.state == .active else { throw .uploadOver }
    let (isFree, open) = uploads.begin(id)
    guard isFree else { throw .uploadBusy }
    if let open { return open }
    do throws(FilesError) {
      // It may have ended while nobody had it in hand.
      let record = try upload(id)
      guard record.state == .active else { throw .uploadOver }
      guard let incoming = try contents.reopenIncoming(id, size: record.received) else { throw .noSuchUpload }
      return OpenUpload(record: record, incoming: incoming)
    } catch {
      uploads.release(id)
      throw error
    }
  }

  /// Gives an upload back that goes on later.
  package func endUpload(_ upload: OpenUpload) {
    guard upload.incoming.hasFailed else { return uploads.rest(upload.record.id, upload, now: now) }
    // The failure was its end.
    uploads.end(upload.record.id)
  }

  /// Makes what has arrived durable, so that it counts after a restart. After a failed sync the upload is given up:
  /// nobody knows what of it reached the disk.
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

  /// Ends an upload: what has arrived becomes the object. The upload is given back. A refusal ends it too, but for
  /// content that is not as long as was announced: then the upload may go on.
  package func finishUpload(
    _ upload: OpenUpload, declared: DeclaredChecksums, check: @escaping WriteCheck = { _, _ throws(FilesError) in }
  ) throws(FilesError) -> StoredObject {
    let size = upload.incoming.size
    if let announced = upload.record.declaredSize, announced != size {
      endUpload(upload)
      throw .invalid("The upload was announced with \(announced) bytes, and \(size) have come.")
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

  /// Gives an upload up.
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

  /// Forgets uploads that were taken in hand for it, with what has arrived of them. Where that fails they rest again.
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

  // MARK: - Old ones

  /// Forgets uploads that are too old to go on, and what was kept of those that are over. Call it now and then.
  ///
  /// Cost: a look at every upload.
  package func removeOldUploads() throws(FilesError) {
    var old = try storedUploads(isOld).map(\.id)[...]
    while !old.isEmpty {
      // Those that somebody has in hand stay until the next time.
      try drop(
        old.prefix(1000).compactMap { id in
          let (isFree, open) = uploads.begin(id)
          return isFree ? (id, open) : nil
        })
      old = old.dropFirst(1000)
    }
  }

  /// The uploads that may go on.
  func activeUploads() throws(FilesError) -> [UploadRecord] { try storedUploads { $0.state == .active } }

  /// The uploads that `isWanted` picks.
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
