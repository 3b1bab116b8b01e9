import DatabaseService
import Synchronization

/// Who began the uploads that are under way: some clients send their credential with the first request only, and rules
/// are asked at the last. Forgotten when the server stops; such a client starts over then.
final class UploadStarters: Sendable {
  private struct State {
    var callers: [String: Caller] = [:]
    /// The ids, the oldest first.
    var order: [String] = []
  }

  /// Beyond this many the oldest are forgotten.
  private static let countMax = 4096

  private let state = Mutex(State())

  /// Remembers who begins an upload.
  func note(_ id: String, _ caller: Caller) {
    state.withLock { state in
      if state.order.count >= Self.countMax { state.callers[state.order.removeFirst()] = nil }
      state.order.append(id)
      state.callers[id] = caller
    }
  }

  /// Who began an upload.
  func caller(_ id: String) -> Caller? { state.withLock { $0.callers[id] } }

  /// Forgets an upload that is over.
  func forget(_ id: String) {
    state.withLock { state in
      guard state.callers.removeValue(forKey: id) != nil else { return }
      state.order.removeAll { $0 == id }
    }
  }
}
