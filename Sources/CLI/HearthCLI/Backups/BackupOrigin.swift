import Basics
import Glibc
import HearthServer
import KeyValue
import PostgresEngine

/// The data directory that backups are made of: its identity, and the right to make one.
///
/// Only one process at a time makes backups of a directory. The kernel's lock of the directory itself ends with the
/// process, and creates no file.
final class BackupOrigin {
  /// The file of a data directory that contains its identity. Backups do not contain it, so a restored directory gets
  /// another identity.
  static let fileName = DataDirectory.backupIdentityName
  /// The number of hexadecimal digits of an identity.
  static let digits = 8
  /// The number of waits of a tenth of a second for another backup of the directory.
  private static let waits = 30

  /// The identity, or a random one if it cannot be stored in the directory.
  let id: String
  /// Whether later backups of the directory have the same identity.
  let isLasting: Bool
  private let descriptor: Int32

  /// Locks a directory for a backup, and reads its identity. The first backup stores one. If another backup runs, waits
  /// up to three seconds for its end.
  /// - Throws: ``CommandFailure`` if another process makes a backup of the directory, or the identity is damaged.
  init(of directory: String) throws {
    descriptor = open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw StorageError.system(operation: "open", path: directory, code: errno) }
    var isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0
    for _ in 0..<Self.waits where !isLocked {
      usleep(100_000)
      isLocked = flock(descriptor, LOCK_EX | LOCK_NB) == 0
    }
    guard isLocked else {
      close(descriptor)
      throw CommandFailure(
        ExitCode.busy,
        "another process is making a backup of \(directory); run the command again when that backup is complete")
    }
    let random = String(UInt32.random(in: .min ... .max), radix: 16)
    let fresh = String(repeating: "0", count: Self.digits - random.count) + random
    do {
      let isFormerCopy = try Self.isFormerCopy(directory)
      let stored = try isFormerCopy ? nil : Self.read(directory)
      isLasting = try stored != nil || Self.store(fresh, in: directory)
      id = stored ?? fresh
      if isFormerCopy { unlink("\(directory)/\(CopyFile.name)") }
    } catch {
      Self.release(descriptor)
      throw error
    }
  }

  deinit { Self.release(descriptor) }

  /// Unlocks first, because a child process that is being started has a copy of the descriptor.
  private static func release(_ descriptor: Int32) {
    flock(descriptor, LOCK_UN)
    close(descriptor)
  }

  /// Returns whether a text is an identity.
  static func isID(_ text: some StringProtocol) -> Bool {
    Hexadecimal.bytes(text)?.count == digits / 2
  }

  /// Returns the machine and the path of a data directory, for people.
  static func text(of directory: String) -> String {
    var name = [CChar](repeating: 0, count: 256)
    let host = gethostname(&name, name.count - 1) == 0 ? name.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) } : []
    let path = realpath(directory, nil)
    defer { free(path) }
    return TerminalText.line(
      "\(String(decoding: host, as: UTF8.self)):\(path.map { String(cString: $0) } ?? directory)")
  }

  /// Returns the stored identity of a directory, or `nil` if it has none yet.
  /// - Throws: ``CommandFailure`` if the identity is damaged.
  static func read(_ directory: String) throws -> String? {
    let file = "\(directory)/\(fileName)"
    guard let bytes = try ConfigurationFile.bytes(of: file) else { return nil }
    let text = String(decoding: bytes.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
    guard isID(text) else {
      throw CommandFailure.data("\(file) is damaged; remove it, and the next backup creates it again")
    }
    return text
  }

  /// Whether a directory was a copy of a cluster, and a server alone has written to it since. Its backups are not those of the
  /// cluster any more.
  private static func isFormerCopy(_ directory: String) throws -> Bool {
    guard let copy = try CopyFile(directory: directory) else { return false }
    return try DataDirectory.foreignFile(in: directory, secret: copy.secret) != nil
  }

  /// Gives a directory an identity, unless it has one.
  /// - Throws: ``CommandFailure`` if its identity is damaged; `StorageError` if it cannot be stored.
  static func identify(_ directory: String, as id: String) throws {
    if try read(directory) == nil { _ = try store(id, in: directory) }
  }

  /// Stores an identity. Returns whether the directory can be written.
  private static func store(_ id: String, in directory: String) throws -> Bool {
    let file = "\(directory)/\(fileName)"
    let descriptor = open("\(file).new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      guard [EROFS, EACCES, EPERM].contains(errno) else {
        throw StorageError.system(operation: "open", path: file, code: errno)
      }
      return false
    }
    defer { close(descriptor) }
    // A server that runs as the owner must be able to read what root wrote.
    var status = stat()
    if geteuid() == 0, stat(directory, &status) == 0 { fchown(descriptor, status.st_uid, status.st_gid) }
    let text = Array("\(id)\n".utf8)
    guard write(descriptor, text, text.count) == text.count, fsync(descriptor) == 0, rename("\(file).new", file) == 0
    else { throw StorageError.system(operation: "write", path: file, code: errno) }
    try LocalPath.sync(folder: directory)
    return true
  }
}
