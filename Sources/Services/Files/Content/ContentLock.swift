import Glibc

/// Keeps content in its place while somebody copies or reads all of it: as long as one lives, no process removes content
/// of the directory, also content that no object holds any more.
///
/// It is a lock on a file beside the content: who copies shares it, who removes needs it alone, for a moment. A snapshot
/// of the metadata that is taken while it is held names nothing that goes away.
package final class ContentLock {
  private static let fileName = "content.lock"

  private let descriptor: Int32

  /// Holds the content of a directory that is there. Waits while content is just being removed.
  /// - Throws: ``FilesError/system(operation:path:code:)``.
  package init(_ directory: String) throws(FilesError) {
    let file = "\(directory)/\(Self.fileName)"
    descriptor = open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    // Where nobody can write, nobody removes anything.
    if descriptor < 0, errno == EROFS { return }
    guard descriptor >= 0 else { throw ContentDirectory.failure("open", file) }
    while flock(descriptor, LOCK_SH) != 0 {
      if errno != EINTR { throw ContentDirectory.failure("flock", file) }
    }
  }

  deinit { if descriptor >= 0 { Self.release(descriptor) } }

  /// Runs what removes content unless somebody holds it; returns whether it ran.
  static func removing(in directory: String, _ body: () -> Void) -> Bool {
    let descriptor = open("\(directory)/\(fileName)", O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { return false }
    defer { release(descriptor) }
    guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { return false }
    body()
    return true
  }

  /// Gives the lock back. Closing alone would not: a program that this process is just starting has a copy of the
  /// descriptor until it runs.
  private static func release(_ descriptor: Int32) {
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Removes the lock's file, of a directory that goes away.
  static func forget(_ directory: String) { unlink("\(directory)/\(fileName)") }
}
