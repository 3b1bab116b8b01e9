import Glibc
package import KeyValue
import LMDBEngine

/// A request to a log that it keeps its commits after a number, for a process that reads the log from outside.
///
/// It is a locked file in the folder of the log. The process that appends looks for such files before it removes
/// segments. If a process that holds commits dies, the kernel releases its lock, and the file is removed.
///
/// Segments stay as long as they are held, so the log grows meanwhile, as a data file does while a snapshot is open.
package final class LogHold {
  private static let prefix = "hold-"
  /// The prefix of a file that has no lock or no number yet.
  private static let unfinishedPrefix = ".hold-"
  /// The number of the first commit that is not needed, twice. If the two differ, it is being written.
  private static let bytes = 16

  private let descriptor: Int32
  private let path: String

  /// Holds the commits after a number. Returns `nil` if the log has no folder or nobody can write to it: then no process
  /// removes commits. Returns `nil` if the disk is full, too: then the reader must notice that commits were removed.
  /// - Throws: ``StorageError`` if the file cannot be created.
  package init?(_ folder: String, after sequence: UInt64 = 0) throws(StorageError) {
    while true {
      let name = String(UInt64.random(in: .min ... .max), radix: 36)
      let unfinished = "\(folder)/\(Self.unfinishedPrefix)\(name)"
      // The server, which may run as another user, must be able to open it.
      let descriptor = open(unfinished, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o644)
      if descriptor < 0 {
        // Without room for a file, commits can be removed while they are read. The reader notices that and tries again.
        if [ENOENT, EROFS, ENOSPC, EDQUOT].contains(errno) { return nil }
        throw .systemCall("open", path: unfinished)
      }
      let path = "\(folder)/\(Self.prefix)\(name)"
      var status = stat()
      if geteuid() == 0, stat(folder, &status) == 0 { _ = fchown(descriptor, status.st_uid, status.st_gid) }
      do throws(StorageError) {
        guard flock(descriptor, LOCK_EX | LOCK_NB) == 0 else { throw .systemCall("flock", path: unfinished) }
        try Self.write(sequence, to: descriptor, unfinished)
        guard rename(unfinished, path) == 0 else { throw .systemCall("rename", path: unfinished) }
      } catch {
        close(descriptor)
        unlink(unfinished)
        // The process that appends has just taken it for the file of a dead process.
        if [ENOENT, EWOULDBLOCK].contains(where: { error.isSystem($0) }) { continue }
        throw error
      }
      self.descriptor = descriptor
      self.path = path
      return
    }
  }

  deinit {
    unlink(path)
    // Closing is not enough: a child process that is just being started has a copy of the descriptor.
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Releases the commits up to a number.
  /// - Throws: ``StorageError`` if the file cannot be written.
  package func advance(to sequence: UInt64) throws(StorageError) { try Self.write(sequence, to: descriptor, path) }

  /// Writes the number. A file without one, on a full disk, holds all commits.
  private static func write(_ sequence: UInt64, to descriptor: Int32, _ path: String) throws(StorageError) {
    var numbers = (sequence.littleEndian, sequence.littleEndian)
    guard pwrite(descriptor, &numbers, bytes, 0) == bytes || [ENOSPC, EDQUOT].contains(errno) else {
      throw .systemCall("pwrite", path: path)
    }
  }

  /// Returns the number after which commits are held in a folder, or `nil` if none are. Removes the files of dead
  /// processes.
  static func lowest(in folder: String, _ names: [String]) -> UInt64? {
    var lowest: UInt64?
    for name in names where name.hasPrefix(prefix) || name.hasPrefix(unfinishedPrefix) {
      let path = "\(folder)/\(name)"
      let descriptor = open(path, O_RDONLY | O_CLOEXEC)
      if descriptor < 0 {
        // A file that cannot be opened may be that of a living process.
        if errno != ENOENT { lowest = 0 }
        continue
      }
      defer { close(descriptor) }
      if flock(descriptor, LOCK_SH | LOCK_NB) == 0 {
        unlink(path)
        flock(descriptor, LOCK_UN)
        continue
      }
      var numbers: (UInt64, UInt64) = (0, 0)
      let isWhole = pread(descriptor, &numbers, bytes, 0) == bytes && numbers.0 == numbers.1
      lowest = min(lowest ?? .max, isWhole ? UInt64(littleEndian: numbers.0) : 0)
    }
    return lowest
  }
}

extension StorageError {
  /// Whether a system call failed with an `errno`.
  func isSystem(_ number: Int32) -> Bool {
    if case .system(_, _, let code) = self { code == number } else { false }
  }
}
