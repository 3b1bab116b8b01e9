import ContentSharing
import Glibc
import Synchronization

/// Shared content in memory, whose calls can fail, lose their answers, or wait.
final class MemoryContent: SharedContent {
  /// A call, for ``before(_:)`` and ``after(_:)``.
  enum Call: Hashable, Sendable { case identity, publish, copies, fetch, remove, list }

  private struct State {
    var copies: [SharedCopy: [UInt8]] = [:]
    var counts: [Call: Int] = [:]
    var identity: UInt64?
    var before: (@Sendable (Call) -> SharedContentError?)?
    var after: (@Sendable (Call) -> SharedContentError?)?
  }

  private let state = Mutex(State())
  let place = "the test"
  let bytesMax: Int

  init(bytesMax: Int = .max) { self.bytesMax = bytesMax }

  /// Runs `action` before each call. The call fails with the error that it returns, without an effect.
  func before(_ action: (@Sendable (Call) -> SharedContentError?)?) { state.withLock { $0.before = action } }

  /// Runs `action` after each call. The call fails with the error that it returns, although it had its effect.
  func after(_ action: (@Sendable (Call) -> SharedContentError?)?) { state.withLock { $0.after = action } }

  func setIdentity(_ number: UInt64?) { state.withLock { $0.identity = number } }

  func count(_ call: Call) -> Int { state.withLock { $0.counts[call] ?? 0 } }

  var copies: [SharedCopy: [UInt8]] { state.withLock { $0.copies } }

  /// Changes the bytes of all copies.
  func change(_ body: (inout [UInt8]) -> Void) {
    state.withLock { state in
      for copy in state.copies.keys {
        var bytes = state.copies[copy] ?? []
        body(&bytes)
        state.copies[copy] = bytes
      }
    }
  }

  func removeAll() { state.withLock { $0.copies = [:] } }

  private func begin(_ call: Call) throws(SharedContentError) {
    let action = state.withLock { state in
      state.counts[call, default: 0] += 1
      return state.before
    }
    if let error = action?(call) { throw error }
  }

  private func end(_ call: Call) throws(SharedContentError) {
    if let error = state.withLock({ $0.after })?(call) { throw error }
  }

  func identity(claiming new: UInt64?) throws(SharedContentError) -> UInt64? {
    try begin(.identity)
    return state.withLock { state in
      state.identity = state.identity ?? new
      return state.identity
    }
  }

  func publish(_ copy: SharedCopy, fromFile path: String, size: Int) throws(SharedContentError) {
    try begin(.publish)
    var file = try PublishedFile(path, size: size, pieceBytes: 1000)
    var bytes: [UInt8] = []
    while let piece = try file.next() { bytes += piece }
    state.withLock { $0.copies[copy] = bytes }
    try end(.publish)
  }

  func copies(of digest: ContentDigest) throws(SharedContentError) -> [SharedCopy] {
    try begin(.copies)
    return state.withLock { $0.copies.keys.filter { $0.digest == digest } }
  }

  func fetch(
    _ copy: SharedCopy, _ take: (UnsafeRawBufferPointer) throws(SharedContentError) -> Void
  ) throws(SharedContentError) -> Bool {
    try begin(.fetch)
    guard let bytes = state.withLock({ $0.copies[copy] }) else { return false }
    for start in stride(from: 0, to: bytes.count, by: 700) {
      var failure: SharedContentError?
      bytes[start..<min(start + 700, bytes.count)].withUnsafeBytes { piece in
        do throws(SharedContentError) { try take(piece) } catch { failure = error }
      }
      if let failure { throw failure }
      if start == 0 { try end(.fetch) }
    }
    return true
  }

  func remove(_ copy: SharedCopy) throws(SharedContentError) {
    try begin(.remove)
    state.withLock { _ = $0.copies.removeValue(forKey: copy) }
    try end(.remove)
  }

  func forEachCopy(_ take: ([SharedCopy]) throws(SharedContentError) -> Void) throws(SharedContentError) {
    try begin(.list)
    try take(state.withLock { Array($0.copies.keys) })
  }

  func removeLeftovers() throws(SharedContentError) {}
}
