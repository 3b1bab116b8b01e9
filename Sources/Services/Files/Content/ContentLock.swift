import Glibc

/// Protects content while it is copied or read as a whole: while any lock is held, no process removes content of
/// the directory, even unreferenced content.
///
/// It is a file lock. Readers share it, and a removal needs it exclusively for a moment. A snapshot of the metadata
/// taken while the lock is held refers only to content that stays.
package final class ContentLock {
  private static let fileName = "content.lock"

  private let descriptor: Int32

  /// Locks the content of an existing directory. Waits for a removal in progress.
  /// - Throws: ``FilesError/system(operation:path:code:)`` if the lock file cannot be opened or locked.
  package init(_ directory: String) throws(FilesError) {
    let file = "\(directory)/\(Self.fileName)"
    descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    // No process can remove content from a read-only file system.
    if descriptor < 0, errno == EROFS { return }
    guard descriptor >= 0 else { throw ContentDirectory.failure("open", file) }
    while flock(descriptor, LOCK_SH) != 0 {
      if errno != EINTR { throw ContentDirectory.failure("flock", file) }
    }
  }

  deinit { if descriptor >= 0 { Self.release(descriptor) } }

  /// Runs `body`, which removes content, unless a lock is held. Returns whether it ran.
  static func removing(in directory: String, _ body: () -> Void) -> Bool {
    let descriptor = open("\(directory)/\(fileName)", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return false }
    defer { release(descriptor) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
    body()
    return true
  }

  /// Releases the lock. Closing the descriptor is not enough: a child process that is just being started has a copy
  /// of it until it executes its program.
  private static func release(_ descriptor: Int32) {
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Removes the lock file of a directory that is being removed.
  static func forget(_ directory: String) { unlink("\(directory)/\(fileName)") }
}
