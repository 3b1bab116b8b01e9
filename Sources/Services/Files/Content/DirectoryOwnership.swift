import Glibc

/// A directory that exists as long as one process owns it: a locked directory is in use, an unlocked one is abandoned.
///
/// Process IDs would not tell. A killed server's ID can belong to another process by now, and processes in other
/// PID namespaces, which may share the file system, cannot see each other. The kernel releases the lock when the
/// process ends.
final class DirectoryOwnership: Sendable {
  /// How often ``init(_:)`` tries to lock a directory that another process takes for abandoned.
  private static let attempts = 100

  private let path: String
  private let descriptor: Int32

  /// Creates a directory and locks it.
  /// - Throws: ``FilesError/system(operation:path:code:)`` if the directory exists or cannot be created or locked.
  init(_ path: String) throws(FilesError) {
    self.path = path
    for _ in 0..<Self.attempts {
      guard mkdir(path, 0o700) == 0 else { throw ContentDirectory.failure("mkdir", path) }
      // Until it is locked, another process may lock and remove it.
      if let descriptor = Self.lock(path) {
        if Self.isSame(descriptor, path) {
          self.descriptor = descriptor
          return
        }
        Self.release(descriptor)
      }
      rmdir(path)
    }
    throw .system(operation: "flock", path: path, code: EWOULDBLOCK)
  }

  /// Removes the directory and its content, then releases it.
  deinit {
    ContentDirectory.remove(path)
    Self.release(descriptor)
  }

  /// Removes a directory and its content if no process owns it. Does nothing if it cannot be opened.
  static func removeIfAbandoned(_ path: String) {
    guard let descriptor = lock(path) else { return }
    ContentDirectory.remove(path)
    release(descriptor)
  }

  /// Locks a directory. Returns its descriptor, or `nil` if it does not exist or is locked.
  private static func lock(_ path: String) -> Int32? {
    let descriptor = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    if flock(descriptor, LOCK_EX | LOCK_NB) == 0 { return descriptor }
    close(descriptor)
    return nil
  }

  /// Unlocks a directory. Closing the descriptor is not enough; see ``ContentLock``.
  private static func release(_ descriptor: Int32) {
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Returns whether a path still leads to an open directory.
  private static func isSame(_ descriptor: Int32, _ path: String) -> Bool {
    var (open, named) = (stat(), stat())
    return fstat(descriptor, &open) == 0 && stat(path, &named) == 0 && open.st_dev == named.st_dev
      && open.st_ino == named.st_ino
  }
}
