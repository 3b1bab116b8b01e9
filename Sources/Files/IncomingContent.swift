import Dispatch
import Glibc

/// Content on its way in: a file that grows, and the checksums of what is in it. Removed in the end unless published.
package final class IncomingContent: @unchecked Sendable {
  // Sendable: whoever has it in hand does one thing after the other, on a queue of its own, and nobody else has it.

  private struct State {
    var hasher = ContentHasher()
    var size = 0
    var unsyncedBytes = 0
    var isPublished = false
    var isKept = false
  }

  /// Bytes after which what was written starts on its way to the disk, so that the sync at the end is short.
  private static let syncBytes = 16 << 20

  let path: String
  private let descriptor: Int32
  private let directory: ContentDirectory
  private var state = State()

  init(descriptor: Int32, path: String, directory: ContentDirectory) {
    self.descriptor = descriptor
    self.path = path
    self.directory = directory
  }

  deinit {
    close(descriptor)
    if state.isPublished || state.isKept { return }
    unlink(path)
    directory.release(state.size)
  }

  /// Bytes written.
  package var size: Int { state.size }

  /// Writes the next bytes.
  /// - Throws: ``FilesError/full``, ``FilesError/system(operation:path:code:)``. What came before stays.
  package func append(_ bytes: UnsafeRawBufferPointer) throws(FilesError) {
    try directory.reserve(bytes.count)
    var written = 0
    while written < bytes.count {
      let count = pwrite(
        descriptor, bytes.baseAddress.map { $0 + written }, bytes.count - written, off_t(state.size + written))
      if count < 0 && errno == EINTR { continue }
      guard count > 0 else {
        let error = ContentDirectory.failure("write", path)
        directory.release(bytes.count)
        throw error
      }
      written += count
    }
    state.hasher.update(bytes)
    state.size += bytes.count
    state.unsyncedBytes += bytes.count
    if state.unsyncedBytes >= Self.syncBytes && !directory.isInMemory {
      state.unsyncedBytes = 0
      startSync()
    }
  }

  /// Appends bytes of a file.
  func append(contentOf source: Int32, count: Int) throws(FilesError) {
    try ContentFile.forEachPiece(of: source, path: path, count: count) { (piece) throws(FilesError) in
      try append(piece)
    }
  }

  /// Has all bytes reach the disk.
  package func sync() throws(FilesError) {
    guard !directory.isInMemory else { return }
    guard fdatasync(descriptor) == 0 else { throw ContentDirectory.failure("fdatasync", path) }
  }

  /// Syncs, and returns what is in it. Call once, after the last byte.
  package func finish() throws(FilesError) -> ContentSummary {
    try sync()
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
    state = State()
    try ContentFile.forEachPiece(of: descriptor, path: path, count: count) { (piece) throws(FilesError) in
      state.hasher.update(piece)
      state.size += piece.count
    }
  }

  /// Starts to write to the disk while more arrives. The descriptor is its own, so that this one may be closed.
  private func startSync() {
    let copy = dup(descriptor)
    guard copy >= 0 else { return }
    DispatchQueue.global(qos: .utility).async {
      fdatasync(copy)
      close(copy)
    }
  }
}
