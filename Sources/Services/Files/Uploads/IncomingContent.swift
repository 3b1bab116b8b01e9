import Basics
import Glibc
import Synchronization

/// Incoming content: a growing file and the checksums of its bytes. The file is removed at the end unless it is
/// published.
package final class IncomingContent: @unchecked Sendable {
  // Sendable: one request at a time owns the object, and uses it from one queue.

  private struct State {
    var hasher = ContentHasher()
    var size = 0
    var unsyncedBytes = 0
    var failure: FilesError?
    var isPublished = false
    var isKept = false
  }

  /// The error of a background sync. The kernel reports it only once, so the final sync would not see it.
  private final class SyncFailure: Sendable {
    let code = Atomic<Int32>(0)
  }

  /// The number of bytes after which a background sync starts, so that the final sync is short.
  private static let syncBytes = 16 << 20

  let path: String
  private let descriptor: Int32
  private let directory: ContentDirectory
  private let syncFailure = SyncFailure()
  private var state = State()

  /// Takes ownership of the descriptor of an empty file, for which the directory has reserved space.
  init(descriptor: Int32, path: String, directory: ContentDirectory) {
    self.descriptor = descriptor
    self.path = path
    self.directory = directory
  }

  deinit {
    close(descriptor)
    if state.isPublished || state.isKept { return }
    unlink(path)
    directory.release(fileOf: state.size)
  }

  /// The number of bytes written.
  package var size: Int { state.size }

  /// Whether a sync has failed. Then the content cannot be used any longer.
  var hasFailed: Bool { state.failure != nil }

  /// Appends bytes.
  /// - Throws: ``FilesError/full`` or ``FilesError/system(operation:path:code:)`` if the write fails. Earlier bytes
  ///   remain.
  package func append(_ bytes: UnsafeRawBufferPointer) throws(FilesError) {
    try store(bytes)
    state.hasher.update(bytes)
  }

  /// Appends bytes, and computes the checksums of a large array with two threads.
  /// - Throws: ``FilesError/full`` or ``FilesError/system(operation:path:code:)`` if the write fails. Earlier bytes
  ///   remain.
  package func append(_ bytes: [UInt8]) throws(FilesError) {
    var failure: FilesError?
    bytes.withUnsafeBytes { bytes in
      do throws(FilesError) { try store(bytes) } catch { failure = error }
    }
    if let failure { throw failure }
    state.hasher.update(bytes)
  }

  private func store(_ bytes: UnsafeRawBufferPointer) throws(FilesError) {
    if let failure = state.failure { throw failure }
    try directory.reserve(from: state.size, to: state.size + bytes.count)
    if let failure = write(bytes) {
      // Remove the partly written bytes and release their space.
      ftruncate(descriptor, off_t(state.size))
      directory.release(from: state.size + bytes.count, to: state.size)
      throw failure
    }
    state.size += bytes.count
    state.unsyncedBytes += bytes.count
    if state.unsyncedBytes >= Self.syncBytes && !directory.isInMemory {
      state.unsyncedBytes = 0
      startSync()
    }
  }

  private func write(_ bytes: UnsafeRawBufferPointer) -> FilesError? {
    var written = 0
    while written < bytes.count {
      let count =
        directory.fails(.write)
        ? -1
        : pwrite(
          descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written, off_t(state.size + written))
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else { return ContentDirectory.failure("write", path) }
      written += count
    }
    return nil
  }

  /// Appends the first `count` bytes of a file.
  func append(contentOf source: Int32, count: Int) throws(FilesError) {
    try ContentFile.forEachPiece(of: source, path: path, count: count) { (piece) throws(FilesError) in
      try append(piece)
    }
  }

  /// Syncs the file. A journaling file system then also writes its name.
  ///
  /// A failed sync is never retried, because it is unknown which bytes it left out.
  /// - Throws: ``FilesError/full`` or ``FilesError/system(operation:path:code:)`` if this or an earlier sync
  ///   failed.
  package func sync() throws(FilesError) {
    guard !directory.isInMemory else { return }
    if let failure = state.failure { throw failure }
    var code = directory.fails(.sync) || fdatasync(descriptor) != 0 ? errno : 0
    if code == 0 { code = syncFailure.code.load(ordering: .acquiring) }
    guard code == 0 else {
      errno = code
      let failure = ContentDirectory.failure("fdatasync", path)
      state.failure = failure
      throw failure
    }
  }

  /// Returns the checksums and the length of the content. Call it once, after the last byte.
  /// - Throws: ``FilesError`` if a sync has failed or the checksums cannot be computed.
  package func finish() throws(FilesError) -> ContentSummary {
    if let failure = state.failure { throw failure }
    return try state.hasher.finish()
  }

  /// Keeps the file after this object is deallocated, because its upload can be resumed.
  func keep() { state.isKept = true }

  /// Undoes ``keep()``: the file is removed when this object is deallocated.
  func discard() { state.isKept = false }

  /// Marks the file as content that the shared content has; see ``ContentDirectory/markShared(_:)``.
  func markShared() { fchmod(descriptor, 0o400) }

  /// Opens the file for a reader. Works also after the file lost its name.
  func openAgain() throws(FilesError) -> Int32 { try ContentFile.openAgain(descriptor) }

  /// Called after the file was linked to the name of its content.
  func wasPublished() { state.isPublished = true }

  /// Computes the checksums of the first `count` bytes of the file.
  func readAgain(_ count: Int) throws(FilesError) {
    try ContentFile.forEachPiece(of: descriptor, path: path, count: count) { (piece) throws(FilesError) in
      state.hasher.update(piece)
      state.size += piece.count
    }
  }

  private static let syncs = BoundedWorkers(
    "file-syncs", threads: WorkerLimits.fileSyncsThreadsMax, unfinishedMax: WorkerLimits.fileSyncsUnfinishedMax)

  /// Starts a sync while more bytes arrive, unless too many wait already. It uses a duplicate descriptor, so the
  /// original may be closed meanwhile.
  private func startSync() {
    let copy = dup(descriptor)
    guard copy >= 0 else { return }
    let isTaken = Self.syncs.run { [syncFailure] in
      if fdatasync(copy) != 0 { syncFailure.code.store(errno, ordering: .releasing) }
      close(copy)
    }
    if !isTaken { close(copy) }
  }
}
