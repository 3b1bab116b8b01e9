import Dispatch
import Glibc
package import KeyValue
import LMDBEngine
import Synchronization

/// A compact copy of a data file on its way through a pipe, so that it needs no room on the disk.
///
/// LMDB keeps the pages of the copied state until the copy ends, so the data file grows meanwhile by what is written.
package final class PipedCopy: Sendable {
  /// The end of the pipe to read from, or -1 after it was closed.
  private let source: Mutex<Int32>
  private let writing = DispatchQueue(label: "hearth.copy")
  private let outcome = Outcome()
  private static let pieceBytes = 256 << 10

  private final class Outcome: Sendable {
    let failure = Mutex<StorageError?>(nil)
  }

  /// Begins a copy, and waits until its state is chosen: later writes to the store are not in it.
  /// - Throws: ``StorageError/system(operation:path:code:)`` if no pipe can be made.
  package init(of store: any MarkedStore) throws(StorageError) {
    var ends: [Int32] = [-1, -1]
    guard pipe(&ends) == 0 else { throw .systemCall("pipe", path: store.path) }
    for end in ends { _ = fcntl(end, F_SETFD, FD_CLOEXEC) }
    let target = ends[1]
    source = Mutex(ends[0])
    writing.async { [outcome] in
      do throws(StorageError) { try store.copy(to: target) } catch { outcome.failure.withLock { $0 = error } }
      close(target)
    }
    // The first bytes come after the beginning of LMDB's transaction; after a failure, the pipe ends.
    var descriptor = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
    while poll(&descriptor, 1, -1) < 0, errno == EINTR {}
  }

  deinit { end() }

  /// Passes the bytes to `take`, in pieces of at most 256 KiB, until it returns `false`. Call it once.
  /// - Throws: ``StorageError/rolledBack`` if `take` returned `false`; another ``StorageError`` if the copy failed.
  package func read(_ take: (UnsafeRawBufferPointer) -> Bool) throws(StorageError) {
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceBytes, alignment: 8)
    defer { buffer.deallocate() }
    let descriptor = source.withLock { $0 }
    var isWanted = true
    while isWanted {
      let count = Glibc.read(descriptor, buffer.baseAddress, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { break }
      isWanted = take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
    end()
    guard isWanted else { throw .rolledBack }
    if let failure = outcome.failure.withLock({ $0 }) { throw failure }
  }

  /// Ends the copy. LMDB notices that nobody reads any more.
  private func end() {
    let descriptor = source.withLock { source in
      defer { source = -1 }
      return source
    }
    guard descriptor >= 0 else { return }
    close(descriptor)
    writing.sync {}
  }
}

extension LoggedStore {
  /// Begins a copy of the data file, with the position up to which it has every commit of its own. Commits that are only in
  /// memory are not in it, so the log must have those after the position.
  ///
  /// `position` is a position up to which the store has each of its commits, as in ``advance(to:)``. Waits for the flush
  /// that runs, and delays writers for some milliseconds.
  /// - Throws: ``StorageError`` if the data file cannot be read or written.
  package func beginCopy(
    advancing position: () -> LogPosition
  ) throws(StorageError) -> (copy: PipedCopy, mark: LogPosition) {
    try tables.beginCopy(advancing: position)
  }
}

extension LoggedTables {
  /// Begins a copy as ``LoggedStore/beginCopy(advancing:)``.
  func beginCopy(
    advancing position: () -> LogPosition
  ) throws(StorageError) -> (copy: PipedCopy, mark: LogPosition) {
    try advance(to: position)
    if !settings.flushesInline { flusher.sync {} }
    return try withWriter { () throws(StorageError) in
      try requireOpen()
      var result: Result<(copy: PipedCopy, mark: LogPosition), StorageError>?
      // A flush in the middle would leave commits after the mark in the copy.
      let begin = { [self] in
        do throws(StorageError) {
          guard let mark = try base.logOrigin() else {
            throw .corruption(path: base.path, detail: "it has no position in the log")
          }
          result = .success((try PipedCopy(of: base), mark.position))
        } catch { result = .failure(error) }
      }
      if settings.flushesInline { begin() } else { flusher.sync(execute: begin) }
      guard let result else { throw .rolledBack }
      return try result.get()
    }
  }
}
