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
final class OpenUploads: Sendable {
  private struct State {
    /// When each upload was last used, in microseconds since 1970.
    var used: [String: Int64] = [:]
    var idle: [String: OpenUpload] = [:]
    /// The ids of `idle`, the longest unused first.
    var order: [String] = []
    var busy: Set<String> = []
    /// Who began uploads, as their caller says.
    var starters: [String: any Sendable] = [:]
  }

  private let state = Mutex(State())
  /// Files held open for uploads that nobody sends to.
  private static let idleMax = 256

  /// Learns of uploads that are stored: nobody knows when they were last used, so it counts as now.
  func know(_ ids: [String], now: Int64) {
    state.withLock { state in
      for id in ids { state.used[id] = now }
    }
  }

  /// Remembers who began an upload, until it is over.
  func note(_ id: String, _ starter: any Sendable) { state.withLock { $0.starters[id] = starter } }

  /// Who began an upload.
  func starter(_ id: String) -> (any Sendable)? { state.withLock { $0.starters[id] } }

  /// How many uploads may go on.
  var count: Int { state.withLock { $0.used.count } }

  /// The upload that was longest without use, if that was before a time and nobody has it in hand. Cost: a look at all.
  func longestUnused(before time: Int64) -> String? {
    state.withLock { state in
      state.used.filter { $0.value < time && !state.busy.contains($0.key) }.min { $0.value < $1.value }?.key
    }
  }

  /// Takes an upload in hand; `false` where another request has it.
  func begin(_ id: String) -> (isFree: Bool, upload: OpenUpload?) {
    state.withLock { state in
      guard state.busy.insert(id).inserted else { return (false, nil) }
      guard let upload = state.idle.removeValue(forKey: id) else { return (true, nil) }
      state.order.removeAll { $0 == id }
      return (true, upload)
    }
  }

  /// Puts an upload back that goes on; its file is closed where `upload` is `nil`.
  func rest(_ id: String, _ upload: OpenUpload?, now: Int64) {
    state.withLock { state in
      state.busy.remove(id)
      state.used[id] = now
      guard let upload else { return }
      if state.order.count >= Self.idleMax { state.idle[state.order.removeFirst()] = nil }
      state.idle[id] = upload
      state.order.append(id)
    }
  }

  /// Forgets an upload that is over, and lets go of it.
  func end(_ id: String) {
    state.withLock { state in
      state.busy.remove(id)
      state.used[id] = nil
      state.starters[id] = nil
      if state.idle.removeValue(forKey: id) != nil { state.order.removeAll { $0 == id } }
    }
  }

  /// Lets go of an upload of which nothing is known to go on.
  func release(_ id: String) { state.withLock { _ = $0.busy.remove(id) } }
}
