import Dispatch
import Glibc
import Synchronization

/// Content on its way in: a file that grows, and the checksums of what is in it. Removed in the end unless published.
package final class IncomingContent: @unchecked Sendable {
  // Sendable: whoever has it in hand does one thing after the other, on a queue of its own, and nobody else has it.

  private struct State {
    var hasher = ContentHasher()
    var size = 0
    var unsyncedBytes = 0
    var failure: FilesError?
    var isPublished = false
    var isKept = false
  }

  /// The error of a sync that ran beside: the kernel tells it once, so that the sync at the end would not see it.
  private final class SyncFailure: Sendable {
    let code = Atomic<Int32>(0)
  }

  /// Bytes after which what was written starts on its way to the disk, so that the sync at the end is short.
  private static let syncBytes = 16 << 20

  let path: String
  private let descriptor: Int32
  private let directory: ContentDirectory
  private let syncFailure = SyncFailure()
  private var state = State()

  /// Takes over a descriptor of a file of no bytes, for which the directory has reserved room.
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

  /// Bytes written.
  package var size: Int { state.size }

  /// Whether a sync failed, after which nothing more can be done with it.
  var hasFailed: Bool { state.failure != nil }

  /// Writes the next bytes.
  /// - Throws: ``FilesError/full``, ``FilesError/system(operation:path:code:)``. What came before stays.
  package func append(_ bytes: UnsafeRawBufferPointer) throws(FilesError) {
    try store(bytes)
    state.hasher.update(bytes)
  }

  /// Writes the next bytes, as above, with two threads where they are many.
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
      // What was half written gives its room back.
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

  /// Appends bytes of a file.
  func append(contentOf source: Int32, count: Int) throws(FilesError) {
    try ContentFile.forEachPiece(of: source, path: path, count: count) { (piece) throws(FilesError) in
      try append(piece)
    }
  }

  /// Has all bytes reach the disk, and the file's names with them where the file system keeps one journal.
  ///
  /// A sync that failed is never tried again: nobody knows what it left out.
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

  /// What is in it. Call once, after the last byte.
  package func finish() throws(FilesError) -> ContentSummary {
    if let failure = state.failure { throw failure }
    return try state.hasher.finish()
  }

  /// Leaves the file where it is when nobody uses it any more: its upload may be resumed.
  func keep() { state.isKept = true }

  /// Lets the file be removed when nobody uses it any more.
  func discard() { state.isKept = false }

  /// The file has got the name of its content.
  func wasPublished() { state.isPublished = true }

  /// Computes the checksums of what is in the file.
  func readAgain(_ count: Int) throws(FilesError) {
    try ContentFile.forEachPiece(of: descriptor, path: path, count: count) { (piece) throws(FilesError) in
      state.hasher.update(piece)
      state.size += piece.count
    }
  }

  /// Starts to write to the disk while more arrives. The descriptor is its own, so that this one may be closed.
  private func startSync() {
    let copy = dup(descriptor)
    guard copy >= 0 else { return }
    DispatchQueue.global(qos: .utility).async { [syncFailure] in
      if fdatasync(copy) != 0 { syncFailure.code.store(errno, ordering: .releasing) }
      close(copy)
    }
  }
}
