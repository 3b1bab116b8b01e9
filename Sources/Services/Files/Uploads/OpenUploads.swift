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

/// The uploads that may go on, and of some the open file, so that its checksums need not be computed again.
///
/// Every call costs O(1).
final class OpenUploads: Sendable {
  private struct Entry {
    let owner: UploadOwner?
    /// When it was last used, in microseconds since 1970.
    var used: Int64
    /// Who began it, as their caller says.
    var starter: (any Sendable)?
    /// Its open file, while nobody has it in hand.
    var open: OpenUpload?
  }

  /// What one owner has under way.
  private struct Share {
    var count = 0
    /// Those that nobody has in hand.
    var resting = RecencyList()
  }

  private struct State {
    var entries: [String: Entry] = [:]
    var shares: [UploadOwner: Share] = [:]
    /// Those that nobody has in hand.
    var resting = RecencyList()
    /// Those of them whose file is open.
    var open = RecencyList()
    var busy: Set<String> = []

    /// Begins to count an upload.
    mutating func add(_ id: String, _ owner: UploadOwner?, now: Int64) {
      entries[id] = Entry(owner: owner, used: now)
      if let owner { shares[owner, default: Share()].count += 1 }
    }

    /// Puts an upload among those that nobody has in hand.
    mutating func rest(_ id: String) {
      resting.append(id)
      if let owner = entries[id]?.owner { shares[owner]?.resting.append(id) }
    }

    /// Takes an upload out of those that nobody has in hand; its file, where that is open.
    mutating func take(_ id: String) -> OpenUpload? {
      resting.remove(id)
      if let owner = entries[id]?.owner { shares[owner]?.resting.remove(id) }
      open.remove(id)
      defer { entries[id]?.open = nil }
      return entries[id]?.open
    }

    /// Whether an upload was last used before a time.
    func isUnused(_ id: String, since time: Int64) -> Bool { entries[id].map { $0.used < time } ?? false }
  }

  private let state = Mutex(State())
  /// Files held open for uploads that nobody sends to.
  private static let openMax = 256

  /// Learns of an upload that is stored: nobody knows when it was last used, so that counts as now.
  func know(_ id: String, _ owner: UploadOwner?, now: Int64) {
    state.withLock { state in
      state.add(id, owner, now: now)
      state.rest(id)
    }
  }

  /// How many uploads may be under way.
  struct Bounds {
    let all: Int
    let ofOwner: Int
    /// The time since when an upload must have been used for it not to be given up, in microseconds since 1970.
    let restedBefore: Int64
  }

  /// Counts an upload that begins, and takes it in hand. Where there are too many, the one that was longest without use
  /// is taken in hand too, and returned: it is to be given up. Where the owner has too many it is one of theirs.
  /// - Throws: ``FilesError/tooManyUploads``, ``FilesError/tooManyUploadsOfOwner(_:)`` where that one has not rested
  ///   for long.
  func admit(
    _ id: String, _ owner: UploadOwner?, starter: (any Sendable)?, now: Int64, _ bounds: Bounds
  ) throws(FilesError) -> (id: String, open: OpenUpload?)? {
    let admission = state.withLock { state -> Result<(id: String, open: OpenUpload?)?, FilesError> in
      var victim: String?
      if let owner, let share = state.shares[owner], share.count >= bounds.ofOwner {
        guard let oldest = share.resting.oldest, state.isUnused(oldest, since: bounds.restedBefore) else {
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
      state.entries[id]?.starter = starter
      state.busy.insert(id)
      guard let victim else { return .success(nil) }
      state.busy.insert(victim)
      return .success((victim, state.take(victim)))
    }
    return try admission.get()
  }

  /// Who began an upload.
  func starter(_ id: String) -> (any Sendable)? { state.withLock { $0.entries[id]?.starter } }

  /// Takes an upload in hand; `false` where another request has it.
  func begin(_ id: String) -> (isFree: Bool, upload: OpenUpload?) {
    state.withLock { state in
      guard state.busy.insert(id).inserted else { return (false, nil) }
      return (true, state.take(id))
    }
  }

  /// Puts an upload back that goes on; its file is closed where `upload` is `nil`.
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

  /// Forgets an upload that is over, and lets go of it.
  func end(_ id: String) {
    state.withLock { state in
      _ = state.take(id)
      state.busy.remove(id)
      guard let owner = state.entries.removeValue(forKey: id)?.owner, let share = state.shares[owner] else { return }
      if share.count > 1 { state.shares[owner]?.count -= 1 } else { state.shares[owner] = nil }
    }
  }

  /// Lets go of an upload of which nothing is known to go on.
  func release(_ id: String) {
    state.withLock { state in
      // One that is known rests as before.
      if state.busy.remove(id) != nil, state.entries[id] != nil { state.rest(id) }
    }
  }
}
