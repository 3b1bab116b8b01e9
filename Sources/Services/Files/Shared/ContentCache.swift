import Basics
package import ContentSharing
import Dispatch
import Glibc
import Synchronization

/// The content directory of a node as a cache of the shared content.
///
/// - A reader holds a shared file lock on the file that it reads. The removal from the cache needs the exclusive one.
/// - One thread fetches a content, the others that want it wait. A fetched file gets its name after its digest was checked.
/// - Files without the mark of ``ContentDirectory/markShared(_:)`` never leave the cache.
/// - The time of the last use is that of the file's last change. It survives a restart and needs no memory.
final class ContentCache: Sendable {
  /// The state of the cache, and the findings about the place.
  private struct State {
    var isIdentified = false
    /// The fetches under way.
    var fetches: [ContentDigest: ContentFetch] = [:]
    /// The threads that fetch.
    var threads = 0
    /// The bytes of the cached files, or `nil` if they were not counted yet. Only the next count is exact.
    var bytes: Int?
    /// Contents of which a copy was missing or damaged. The next upload makes another copy.
    var suspects: Set<ContentDigest> = []
    /// The copies to which no object referred, with the boot time at which a sweep saw that first.
    var retired: [SharedCopy: Int64] = [:]
  }

  /// The most threads that may fetch, so that others remain for requests that need no shared content.
  static let threadsMax = WorkerLimits.filesThreadsMax / 2
  /// The longest wait for the fetch of another thread, in seconds.
  private static let waitSeconds = 120
  /// The most copies of a content that a fetch tries.
  private static let copiesTriedMax = 8
  private static let suspectsMax = 10_000
  /// The most copies that wait for their removal. Others are noted by a later sweep.
  static let retiredMax = 100_000

  let shared: any SharedContent
  let bytesMax: Int
  private let contents: ContentDirectory
  private let state = Mutex(State())
  /// The time after which a use is recorded again, in seconds.
  let useSeconds: Int
  let trims = BoundedWorkers("files-cache", threads: 1, unfinishedMax: 2)

  init(_ shared: any SharedContent, _ contents: ContentDirectory, bytesMax: Int) {
    self.shared = shared
    self.contents = contents
    self.bytesMax = bytesMax
    // A small cache changes often.
    useSeconds = bytesMax < 1 << 30 ? 0 : 60
  }

  // MARK: Reading

  /// Opens content of a size that is in the cache, with a lock that keeps it there until the descriptor is closed. Returns
  /// `nil` if it is not in the cache. A file of another size is damaged, and is removed.
  func open(_ content: ContentSummary) throws(FilesError) -> Int32? {
    guard let descriptor = try contents.open(content.digest) else { return nil }
    var status = stat()
    // If the lock is taken, the file is just being removed.
    if flock(descriptor, LOCK_SH | LOCK_NB) == 0, fstat(descriptor, &status) == 0, status.st_nlink > 0 {
      if Int(status.st_size) == content.size {
        recordUse(descriptor, status.st_mtim)
        return descriptor
      }
      contents.remove(content.digest)
    }
    close(descriptor)
    return nil
  }

  private func recordUse(_ descriptor: Int32, _ last: timespec) {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    if now.tv_sec - last.tv_sec >= useSeconds { futimens(descriptor, nil) }
  }

  /// Returns content that is in the cache, or fetches it. Returns `nil` if no copy of it is intact.
  func fetch(_ content: ContentSummary) throws(FilesError) -> Int32? {
    if let descriptor = try open(content) { return descriptor }
    let (fetch, isNew) = state.withLock { state in
      if let fetch = state.fetches[content.digest] { return (fetch, false) }
      let fetch = ContentFetch()
      state.fetches[content.digest] = fetch
      return (fetch, true)
    }
    if isNew {
      var outcome: Result<Int32?, FilesError>
      do throws(FilesError) {
        try enter()
        defer { state.withLock { $0.threads -= 1 } }
        // Another fetch may have ended between the two looks.
        outcome = .success(try open(content))
        if case .success(nil) = outcome { outcome = .success(try load(content)) }
      } catch { outcome = .failure(error) }
      state.withLock { $0.fetches[content.digest] = nil }
      fetch.end(outcome)
    }
    return try fetch.descriptor(seconds: Self.waitSeconds)
  }

  private func enter() throws(FilesError) {
    let isFree = state.withLock { state in
      guard state.threads < Self.threadsMax else { return false }
      state.threads += 1
      return true
    }
    guard isFree else { throw .sharedContent("too many requests wait for the shared content") }
  }

  private func load(_ content: ContentSummary) throws(FilesError) -> Int32? {
    let copies: [SharedCopy]
    do throws(SharedContentError) { copies = try shared.copies(of: content.digest) } catch { throw FilesError(error) }
    for copy in copies.prefix(Self.copiesTriedMax) {
      let incoming = try contents.makeIncoming("fetch-\(FileStore.randomID())")
      guard try receive(copy, content, incoming) else { continue }
      // The file may leave the cache at once, so the reader gets it before it has its name.
      let descriptor = try incoming.openAgain()
      flock(descriptor, LOCK_SH | LOCK_NB)
      incoming.markShared()
      do throws(FilesError) { try contents.publish(incoming, as: content.digest) } catch {
        close(descriptor)
        throw error
      }
      added(content.size)
      return descriptor
    }
    suspect(content.digest)
    return nil
  }

  /// Receives a copy. Returns whether it is whole and intact.
  private func receive(
    _ copy: SharedCopy, _ content: ContentSummary, _ incoming: IncomingContent
  ) throws(FilesError) -> Bool {
    var local: FilesError?
    do throws(SharedContentError) {
      let exists = try shared.fetch(copy) { (piece) throws(SharedContentError) in
        guard incoming.size + piece.count <= content.size else { throw .damaged("longer than its object") }
        do throws(FilesError) { try incoming.append(piece) } catch {
          local = error
          throw .full("the cache cannot be written")
        }
      }
      // The copy of an object that was just deleted may be gone.
      guard exists else { return false }
    } catch {
      if let local { throw local }
      guard case .damaged = error else { throw FilesError(error) }
      suspect(content.digest)
      return false
    }
    if try incoming.finish().digest == content.digest { return true }
    suspect(content.digest)
    return false
  }

  // MARK: Findings about content

  private func suspect(_ digest: ContentDigest) {
    state.withLock { if $0.suspects.count < Self.suspectsMax { $0.suspects.insert(digest) } }
  }

  /// Whether a copy of a content was missing or damaged.
  func isSuspect(_ digest: ContentDigest) -> Bool { state.withLock { $0.suspects.contains(digest) } }

  /// Stores a new copy. Returns the boot time at which that began, in seconds.
  func publish(_ content: ContentSummary, fromFile path: String) throws(FilesError) -> Int64 {
    let begun = SecondsSinceBoot.now
    do throws(SharedContentError) {
      try shared.publish(SharedCopy(of: content.digest), fromFile: path, size: content.size)
    } catch { throw FilesError(error) }
    state.withLock { _ = $0.suspects.remove(content.digest) }
    return begun
  }

  /// Whether the place was found to be the right one. See ``FileStore/requireSharedIdentity(_:)``.
  var isIdentified: Bool { state.withLock { $0.isIdentified } }

  /// Notes that the place is the right one.
  func identified() { state.withLock { $0.isIdentified = true } }

  /// Notes a new file in the cache.
  func added(_ size: Int) { state.withLock { $0.bytes? += size } }

  /// Sets the bytes of the cached files.
  func counted(_ bytes: Int) { state.withLock { $0.bytes = bytes } }

  /// Whether the cache is too large, or was not counted yet.
  var needsTrim: Bool { state.withLock { $0.bytes.map { $0 > bytesMax } ?? true } }

  /// Passes the copies without objects to a closure that may change them.
  func withRetired<R>(_ body: (inout [SharedCopy: Int64]) -> R) -> R { state.withLock { body(&$0.retired) } }
}

/// The fetch of one content, for the thread that fetches and those that wait.
final class ContentFetch: Sendable {
  private let outcome = Mutex<Result<Int32?, FilesError>?>(nil)
  private let ended = DispatchGroup()

  init() { ended.enter() }

  deinit {
    // Until here, the lock of this descriptor keeps the file in the cache.
    if case .success(let descriptor?) = outcome.withLock({ $0 }) { close(descriptor) }
  }

  /// Ends the fetch. Takes over the descriptor.
  func end(_ result: Result<Int32?, FilesError>) {
    outcome.withLock { $0 = result }
    ended.leave()
  }

  /// Waits for the end of the fetch, and returns a descriptor of its own for the caller.
  func descriptor(seconds: Int) throws(FilesError) -> Int32? {
    guard ended.wait(timeout: .now() + .seconds(seconds)) == .success, let outcome = outcome.withLock({ $0 }) else {
      throw .sharedContent("the fetch of a content takes too long")
    }
    guard let first = try outcome.get() else { return nil }
    let descriptor = try ContentFile.openAgain(first)
    flock(descriptor, LOCK_SH | LOCK_NB)
    return descriptor
  }
}

extension FilesError {
  /// Converts a failure of the shared content.
  package init(_ error: SharedContentError) {
    switch error {
    case .tooLarge(let bytesMax): self = .tooLarge(bytesMax: bytesMax)
    case .local(let operation, let path, let code): self = .system(operation: operation, path: path, code: code)
    case .full: self = .full
    case .unavailable, .refused, .damaged, .otherPlace: self = .sharedContent("\(error)")
    }
  }
}
