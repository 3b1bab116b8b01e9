import Synchronization

/// An active upload. One request works on it at a time.
package final class OpenUpload: Sendable {
  /// The stored record.
  package let record: UploadRecord
  /// The received bytes.
  package let incoming: IncomingContent

  init(record: UploadRecord, incoming: IncomingContent) {
    self.record = record
    self.incoming = incoming
  }
}

/// The active uploads: enforces the limits, grants each upload to one request at a time, and keeps the files of
/// some idle uploads open, so their checksums need not be computed again.
///
/// Every call costs O(1).
final class OpenUploads: Sendable {
  private struct Entry {
    let owner: UploadOwner?
    /// The time of the last use, in microseconds since 1970.
    var used: Int64
    /// The caller that began the upload, as given to `admit`.
    var initiator: (any Sendable)?
    /// The open upload, while it is idle.
    var open: OpenUpload?
  }

  /// The active uploads of one owner.
  private struct OwnerUploads {
    var count = 0
    /// The idle ones.
    var resting = RecencyList()
  }

  private struct State {
    var entries: [String: Entry] = [:]
    var owners: [UploadOwner: OwnerUploads] = [:]
    /// The idle uploads, which no request has acquired.
    var resting = RecencyList()
    /// The idle uploads whose file is open.
    var open = RecencyList()
    var busy: Set<String> = []

    /// Adds an upload.
    mutating func add(_ id: String, _ owner: UploadOwner?, now: Int64) {
      entries[id] = Entry(owner: owner, used: now)
      if let owner { owners[owner, default: OwnerUploads()].count += 1 }
    }

    /// Marks an upload as idle.
    mutating func rest(_ id: String) {
      resting.append(id)
      if let owner = entries[id]?.owner { owners[owner]?.resting.append(id) }
    }

    /// Marks an upload as not idle. Returns the open upload, or `nil` if its file is not open.
    mutating func take(_ id: String) -> OpenUpload? {
      resting.remove(id)
      if let owner = entries[id]?.owner { owners[owner]?.resting.remove(id) }
      open.remove(id)
      defer { entries[id]?.open = nil }
      return entries[id]?.open
    }

    /// Returns whether an upload was last used before a time.
    func isUnused(_ id: String, since time: Int64) -> Bool { entries[id].map { $0.used < time } ?? false }
  }

  private let state = Mutex(State())
  /// The most files kept open for idle uploads.
  private static let openMax = 256

  /// Adds a stored upload after a restart. The time of its last use is unknown, so `now` is assumed.
  func know(_ id: String, _ owner: UploadOwner?, now: Int64) {
    state.withLock { state in
      state.add(id, owner, now: now)
      state.rest(id)
    }
  }

  /// The limits of concurrent uploads.
  struct Limits {
    let all: Int
    let ofOwner: Int
    /// An upload may be dropped only if it was last used before this time, in microseconds since 1970.
    let restedBefore: Int64
  }

  /// Adds a new upload and acquires it. If a limit is reached, also acquires the upload that has been idle the
  /// longest, and returns it, to be dropped. At the owner's limit, that is an upload of the same owner.
  /// - Throws: ``FilesError/tooManyUploads`` or ``FilesError/tooManyUploadsOfOwner(_:)`` if a limit is reached and
  ///   no upload has been idle for long enough.
  func admit(
    _ id: String, _ owner: UploadOwner?, initiator: (any Sendable)?, now: Int64, _ bounds: Limits
  ) throws(FilesError) -> (id: String, open: OpenUpload?)? {
    let admission = state.withLock { state -> Result<(id: String, open: OpenUpload?)?, FilesError> in
      var victim: String?
      if let owner, let owned = state.owners[owner], owned.count >= bounds.ofOwner {
        guard let oldest = owned.resting.oldest, state.isUnused(oldest, since: bounds.restedBefore) else {
          return .failure(.tooManyUploadsOfOwner(bounds.ofOwner))
        }
        victim = oldest
      } else if state.entries.count >= bounds.all {
        guard let oldest = state.resting.oldest, state.isUnused(oldest, since: bounds.restedBefore) else {
          return .failure(.tooManyUploads)
        }
        victim = oldest
      }
      state.add(id, owner, now: now)
      state.entries[id]?.initiator = initiator
      state.busy.insert(id)
      guard let victim else { return .success(nil) }
      state.busy.insert(victim)
      return .success((victim, state.take(victim)))
    }
    return try admission.get()
  }

  /// Returns the initiator of an upload, or `nil` if none was given.
  func initiator(_ id: String) -> (any Sendable)? { state.withLock { $0.entries[id]?.initiator } }

  /// Acquires an upload. `isFree` is `false` if another request has acquired it.
  func begin(_ id: String) -> (isFree: Bool, upload: OpenUpload?) {
    state.withLock { state in
      guard state.busy.insert(id).inserted else { return (false, nil) }
      return (true, state.take(id))
    }
  }

  /// Releases an upload that continues later. If `upload` is `nil`, its file is closed.
  func rest(_ id: String, _ upload: OpenUpload?, now: Int64) {
    state.withLock { state in
      guard state.busy.remove(id) != nil, state.entries[id] != nil else { return }
      state.entries[id]?.used = now
      state.rest(id)
      guard let upload else { return }
      if state.open.count >= Self.openMax, let oldest = state.open.oldest {
        state.open.remove(oldest)
        state.entries[oldest]?.open = nil
      }
      state.entries[id]?.open = upload
      state.open.append(id)
    }
  }

  /// Removes an upload that has ended, and releases it.
  func end(_ id: String) {
    state.withLock { state in
      _ = state.take(id)
      state.busy.remove(id)
      guard let owner = state.entries.removeValue(forKey: id)?.owner, let owned = state.owners[owner] else { return }
      if owned.count > 1 { state.owners[owner]?.count -= 1 } else { state.owners[owner] = nil }
    }
  }

  /// Releases an upload without recording a use.
  func release(_ id: String) {
    state.withLock { state in
      // An active upload becomes idle again.
      if state.busy.remove(id) != nil, state.entries[id] != nil { state.rest(id) }
    }
  }
}
