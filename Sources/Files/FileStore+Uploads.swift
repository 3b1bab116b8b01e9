import KeyValueStore
import Synchronization

/// One upload that is under way. One request works on it at a time.
package final class OpenUpload: Sendable {
  /// What it is to become.
  package let record: UploadRecord
  /// What has arrived.
  package let incoming: IncomingContent

  init(record: UploadRecord, incoming: IncomingContent) {
    self.record = record
    self.incoming = incoming
  }
}

/// The uploads whose files are open: those that go on are kept so, that their checksums need not be computed again.
final class OpenUploads: Sendable {
  private struct State {
    var idle: [String: OpenUpload] = [:]
    /// The ids of `idle`, the longest unused first.
    var order: [String] = []
    var busy: Set<String> = []
  }

  private let state = Mutex(State())
  /// Files held open for uploads that nobody sends to.
  private static let idleMax = 256

  /// Takes an upload in hand; `false` where another request has it.
  func begin(_ id: String) -> (isFree: Bool, upload: OpenUpload?) {
    state.withLock { state in
      guard state.busy.insert(id).inserted else { return (false, nil) }
      state.order.removeAll { $0 == id }
      return (true, state.idle.removeValue(forKey: id))
    }
  }

  /// Puts an upload back, or forgets it with `nil`.
  func end(_ id: String, _ upload: OpenUpload?) {
    state.withLock { state in
      state.busy.remove(id)
      guard let upload else { return }
      if state.order.count >= Self.idleMax { state.idle[state.order.removeFirst()] = nil }
      state.idle[id] = upload
      state.order.append(id)
    }
  }
}

extension FileStore {
  /// Begins an upload that comes in parts, durably.
  package func beginUpload(_ record: UploadRecord) throws(FilesError) {
    try record.attributes.check()
    var record = record
    record.created = configuration.now()
    let incoming = try contents.makeIncoming(record.id)
    try change { (transaction, _, _) throws(FilesError) in
      try requireBucket(record.name.bucket, transaction)
      try transaction.write(FilesKeySpace.upload(record.id), record.encoded)
    }
    incoming.keep()
    let upload = OpenUpload(record: record, incoming: incoming)
    _ = uploads.begin(record.id)
    uploads.end(record.id, upload)
  }

  /// What is stored of an upload.
  /// - Throws: ``FilesError/noSuchUpload``.
  package func upload(_ id: String) throws(FilesError) -> UploadRecord {
    let snapshot = try self.snapshot()
    defer { snapshot.end() }
    // An id is what this server made; anything else is not looked up.
    guard id.utf8.count == 32, Hexadecimal.bytes(id) != nil, let record = try snapshot.read(FilesKeySpace.upload(id))
    else { throw .noSuchUpload }
    let upload = UploadRecord(id: id, record: record)
    guard !isOver(upload) else { throw .noSuchUpload }
    return upload
  }

  private func isOver(_ upload: UploadRecord) -> Bool {
    upload.created + Int64(UploadRecord.lifetimeSeconds) * 1_000_000 < configuration.now()
  }

  /// Takes an upload in hand, to send to it or to ask how far it is. Give it back with ``endUpload(_:)``.
  ///
  /// Cost: reads what has arrived where the server started since.
  /// - Throws: ``FilesError/noSuchUpload``; ``FilesError/uploadOver``; ``FilesError/invalid(_:)`` while another request
  ///   has it.
  package func openUpload(_ id: String) throws(FilesError) -> OpenUpload {
    let record = try upload(id)
    guard record.state == .active else { throw .uploadOver }
    let (isFree, open) = uploads.begin(id)
    guard isFree else { throw .invalid("Another request sends to this upload.") }
    if let open { return open }
    do throws(FilesError) {
      // It may have ended while nobody had it in hand.
      let record = try upload(id)
      guard record.state == .active else { throw .uploadOver }
      guard let incoming = try contents.reopenIncoming(id, size: record.received) else { throw .noSuchUpload }
      incoming.keep()
      return OpenUpload(record: record, incoming: incoming)
    } catch {
      uploads.end(id, nil)
      throw error
    }
  }

  /// Gives an upload back that goes on later.
  package func endUpload(_ upload: OpenUpload) { uploads.end(upload.record.id, upload) }

  /// Makes what has arrived durable, so that it counts after a restart.
  package func saveUpload(_ upload: OpenUpload) throws(FilesError) {
    try upload.incoming.sync()
    var record = upload.record
    record.received = upload.incoming.size
    try change { (transaction, _, _) throws(FilesError) in
      try transaction.write(FilesKeySpace.upload(record.id), record.encoded)
    }
  }

  /// Ends an upload: what has arrived becomes the object. The upload is given back. A refusal ends it too.
  package func finishUpload(
    _ upload: OpenUpload, declared: DeclaredChecksums, judge: Judge = { _, _ throws(FilesError) in }
  ) throws(FilesError) -> StoredObject {
    defer { uploads.end(upload.record.id, nil) }
    upload.incoming.discard()
    do throws(FilesError) {
      return try put(
        upload.record.name, upload.incoming, upload.record.attributes, declared: declared,
        conditions: upload.record.conditions, ending: upload.record, judge: judge)
    } catch {
      try? markCancelled(upload.record)
      throw error
    }
  }

  /// Gives an upload up.
  package func cancelUpload(_ upload: OpenUpload) throws(FilesError) {
    defer { uploads.end(upload.record.id, nil) }
    upload.incoming.discard()
    try markCancelled(upload.record)
  }

  private func markCancelled(_ record: UploadRecord) throws(FilesError) {
    var record = record
    record.state = .cancelled
    try change { (transaction, _, _) throws(FilesError) in
      try transaction.write(FilesKeySpace.upload(record.id), record.encoded)
    }
  }

  /// The ids of uploads that may go on; forgets those that are too old, and all that are over.
  func uploadsToKeep() throws(FilesError) -> Set<String> {
    try change { (transaction, _, _) throws(FilesError) in
      var keep: Set<String> = []
      var old: [[UInt8]] = []
      let wanted = FilesKeySpace.all(.uploads)
      let scan = try KeyScan(transaction)
      var isFound = try scan.seek(wanted)
      while isFound, scan.key.starts(with: wanted) {
        let id = String(decoding: scan.key.dropFirst(), as: UTF8.self)
        let record = UploadRecord(id: id, record: scan.value)
        if isOver(record) { old.append(Array(scan.key)) } else if record.state == .active { keep.insert(id) }
        isFound = try scan.next()
      }
      for key in old { try transaction.erase(key) }
      return keep
    }
  }
}
