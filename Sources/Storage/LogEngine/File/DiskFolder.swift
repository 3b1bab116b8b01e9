import Glibc
package import KeyValue
import LMDBEngine
import Synchronization

/// A ``LogFolder`` on the disk.
package final class DiskFolder: LogFolder {
  package let path: String
  /// Whether the name of the folder is durable.
  private let isNameSynced = Atomic(false)

  /// Names a folder. Nothing is created before the first file.
  package init(path: String) { self.path = path }

  /// Returns the names of the files, in no order. A folder that does not exist has none.
  /// - Throws: ``StorageError`` if the folder cannot be read.
  package func names() throws(StorageError) -> [String] {
    guard let stream = opendir(path) else {
      if errno == ENOENT { return [] }
      throw .systemCall("opendir", path: path)
    }
    defer { closedir(stream) }
    var names: [String] = []
    while true {
      errno = 0
      guard let entry = readdir(stream) else { break }
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if name != ".", name != ".." { names.append(name) }
    }
    guard errno == 0 else { throw .systemCall("readdir", path: path) }
    return names
  }

  /// Creates a file of zeros and syncs it, in a folder that only the owner may enter.
  /// - Throws: ``StorageError`` if a call fails; the file may exist then.
  package func create(_ name: String, bytes: Int) throws(StorageError) -> any LogFile {
    guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw .systemCall("mkdir", path: path) }
    // Also if the folder exists: a process may have died between the two calls.
    if !isNameSynced.load(ordering: .relaxed) {
      try Descriptor.syncDirectory(of: path)
      isNameSynced.store(true, ordering: .relaxed)
    }
    return try DiskLogFile(creating: "\(path)/\(name)", bytes: bytes)
  }

  /// Opens an existing file to read and write it.
  /// - Throws: ``StorageError`` if the call fails.
  package func open(_ name: String) throws(StorageError) -> any LogFile {
    try DiskLogFile(opening: "\(path)/\(name)")
  }

  /// Gives a file another name.
  /// - Throws: ``StorageError`` if the call fails.
  package func rename(_ name: String, to other: String) throws(StorageError) {
    guard Glibc.rename("\(path)/\(name)", "\(path)/\(other)") == 0 else {
      throw .systemCall("rename", path: "\(path)/\(name)")
    }
  }

  /// Removes a file.
  /// - Throws: ``StorageError`` if the call fails.
  package func remove(_ name: String) throws(StorageError) {
    guard unlink("\(path)/\(name)") == 0 else { throw .systemCall("unlink", path: "\(path)/\(name)") }
  }

  /// Syncs the folder.
  /// - Throws: ``StorageError`` if the call fails.
  package func syncNames() throws(StorageError) {
    try Descriptor(path: path, flags: O_RDONLY | O_DIRECTORY).sync()
  }

  /// Returns the number after which other processes need the commits, or `nil` if none does. If the folder cannot be read,
  /// because no descriptor is free for example, they may need all. Cost: reads the folder.
  package func heldSequence() -> UInt64? {
    guard let names = try? names() else { return 0 }
    return LogHold.lowest(in: path, names)
  }
}

/// A file on the disk. Its descriptor is closed with it.
final class DiskLogFile: LogFile {
  let bytes: Int
  private let descriptor: Descriptor

  /// The most bytes of zeros written with one call.
  private static let zerosBytes = 256 << 10

  /// Opens an existing file.
  init(opening path: String) throws(StorageError) {
    descriptor = try Self.openExisting(path)
    bytes = try descriptor.length()
  }

  /// Creates a file of zeros and syncs it. The zeros are written, not only allocated: to turn allocated blocks into
  /// written ones, each sync of a record would also write to the journal of the file system.
  init(creating path: String, bytes: Int) throws(StorageError) {
    self.bytes = bytes
    descriptor = try Descriptor(path: path, flags: O_RDWR | O_CREAT | O_EXCL, mode: 0o600)
    let zeros = [UInt8](repeating: 0, count: min(bytes, Self.zerosBytes))
    var offset = 0
    while offset < bytes {
      let count = pwrite(descriptor.number, zeros, min(zeros.count, bytes - offset), off_t(offset))
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw .systemCall("pwrite", path: path) }
      offset += count
    }
    try descriptor.sync()
  }

  /// Opens a file for reading and writing, or for reading only if that is all that is permitted.
  private static func openExisting(_ path: String) throws(StorageError) -> Descriptor {
    do throws(StorageError) { return try Descriptor(path: path, flags: O_RDWR) } catch {
      guard error.isSystem(EACCES) || error.isSystem(EROFS) else { throw error }
      return try Descriptor(path: path, flags: O_RDONLY)
    }
  }

  func read(into buffer: UnsafeMutableRawBufferPointer, at offset: Int) throws(StorageError) -> Int {
    try descriptor.read(into: buffer, at: offset)
  }

  func write(
    _ first: UnsafeRawBufferPointer, _ second: UnsafeRawBufferPointer, at offset: Int
  ) throws(StorageError) {
    var written = 0
    while written < first.count + second.count {
      let head = first.dropFirst(written)
      let tail = second.dropFirst(max(0, written - first.count))
      var parts = (Self.vector(head), Self.vector(tail))
      let count = withUnsafeBytes(of: &parts) { parts in
        pwritev(descriptor.number, parts.assumingMemoryBound(to: iovec.self).baseAddress, 2, off_t(offset + written))
      }
      if count < 0, errno == EINTR { continue }
      guard count > 0 else { throw .systemCall("pwritev", path: descriptor.path) }
      written += count
    }
  }

  private static func vector(_ bytes: Slice<UnsafeRawBufferPointer>) -> iovec {
    let bytes = UnsafeRawBufferPointer(rebasing: bytes)
    return iovec(iov_base: UnsafeMutableRawPointer(mutating: bytes.baseAddress), iov_len: bytes.count)
  }

  func sync() throws(StorageError) {
    guard fdatasync(descriptor.number) == 0 else { throw .systemCall("fdatasync", path: descriptor.path) }
  }
}
