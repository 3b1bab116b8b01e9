import Glibc
import Synchronization
import WireFormat

/// A call that changes a disk, and may fail.
package enum DiskCall: Sendable {
  /// Bytes of content are written.
  case write
  /// They are synced.
  case sync
  /// Content gets its name.
  case link
  /// The folder of the name is synced.
  case syncFolder
}

/// The files that hold content, apart from their names.
///
///     PATH/content/{2 digits}/{62 digits}   content, named by its SHA-256: equal content is stored once
///     PATH/incoming/{id}                    content that is arriving; an upload that can be resumed keeps its own
///
/// Nothing here is named by a client. An object names content only after its file and its name have reached the disk;
/// what a crash leaves under `content` before that is whole or not, and no object's.
package final class ContentDirectory: Sendable {
  /// The directory.
  package let path: String
  /// Whether it lies on a file system in memory: then nothing is synced, and the whole has a bound.
  package let isInMemory: Bool
  private let bytesMax: Int
  private let usedBytes = Atomic<Int>(0)
  private let isTemporary = Atomic<Bool>(false)
  private let fault: (@Sendable (DiskCall) -> Int32)?
  /// Whether content was left that nobody holds, because it was being copied.
  private let hasLeftovers = Atomic<Bool>(false)

  /// Opens a directory, making it and its parts where they are missing.
  ///
  /// - Parameters:
  ///   - bytesMax: how much memory files may take; on a disk it is the file system that ends.
  ///   - fault: for tests: asked before each call that changes the disk; a number other than 0 is the `errno` with
  ///     which the call fails, and it is not made.
  /// - Throws: ``FilesError/system(operation:path:code:)``.
  package init(
    _ path: String, isInMemory: Bool = false, bytesMax: Int = .max, fault: (@Sendable (DiskCall) -> Int32)? = nil
  ) throws(FilesError) {
    self.path = path
    self.isInMemory = isInMemory
    self.bytesMax = bytesMax
    self.fault = fault
    for directory in [path, "\(path)/content", "\(path)/incoming"] { try Self.makeDirectory(directory) }
  }

  deinit {
    if isTemporary.load(ordering: .relaxed) { Self.remove(path) }
  }

  /// Has the directory removed with all that is in it when nobody uses it any more.
  package func removesItself() { isTemporary.store(true, ordering: .relaxed) }

  /// Whether a directory holds content, or did: without the metadata nobody knows what it is called.
  package static func holdsContent(_ path: String) -> Bool {
    names(in: "\(path)/content").contains { !names(in: "\(path)/content/\($0)").isEmpty }
  }

  /// Removes such a directory with all that is in it, and nothing else that may lie there.
  package static func remove(_ path: String) {
    for name in names(in: "\(path)/incoming") { unlink("\(path)/incoming/\(name)") }
    for folder in names(in: "\(path)/content") {
      for name in names(in: "\(path)/content/\(folder)") { unlink("\(path)/content/\(folder)/\(name)") }
      rmdir("\(path)/content/\(folder)")
    }
    ContentLock.forget(path)
    for directory in ["\(path)/incoming", "\(path)/content", path] { rmdir(directory) }
  }

  // MARK: - Content

  /// Opens content for reading; `nil` where there is none.
  package func open(_ digest: ContentDigest) throws(FilesError) -> Int32? {
    let file = self.file(of: digest)
    let descriptor = Glibc.open(file, O_RDONLY | O_CLOEXEC)
    if descriptor >= 0 { return descriptor }
    guard errno == ENOENT else { throw .system(operation: "open", path: file, code: errno) }
    return nil
  }

  /// Gives an incoming file, which is whole, the name of its content, and has both reach the disk.
  ///
  /// The name comes first: where the file system keeps a journal, one entry of it then takes name and file together.
  func publish(_ incoming: IncomingContent, as digest: ContentDigest) throws(FilesError) {
    let folder = try makeFolder(of: digest)
    let file = self.file(of: digest)
    if !fails(.link), Glibc.link(incoming.path, file) == 0 {
      unlink(incoming.path)
    } else if errno == EEXIST || errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK {
      // Objects may hold what is there: only what is on the disk already may replace it.
      try incoming.sync()
      // Only memory is counted.
      let replaced = isInMemory ? Self.size(of: file) : nil
      guard rename(incoming.path, file) == 0 else { throw Self.failure("rename", file) }
      if let replaced { release(fileOf: replaced) }
    } else {
      throw Self.failure("link", file)
    }
    incoming.wasPublished()
    try incoming.sync()
    try sync(folder)
  }

  /// Gives content of another directory of the same file system a name here too, durably; returns whether it could.
  func link(_ digest: ContentDigest, from other: ContentDirectory) throws(FilesError) -> Bool {
    let folder = try makeFolder(of: digest)
    guard Glibc.link(other.file(of: digest), file(of: digest)) == 0 else { return false }
    try sync(folder)
    return true
  }

  private func makeFolder(of digest: ContentDigest) throws(FilesError) -> String {
    let folder = "\(path)/content/\(digest.text.prefix(2))"
    if mkdir(folder, 0o700) == 0 {
      try sync("\(path)/content")
    } else if errno != EEXIST {
      throw Self.failure("mkdir", folder)
    }
    return folder
  }

  /// Removes content that no object holds, and returns whether it did: while somebody has a ``ContentLock`` it stays, and
  /// ``takeLeftovers()`` says so.
  @discardableResult
  func remove(_ digest: ContentDigest) -> Bool {
    let file = self.file(of: digest)
    guard !isInMemory else {
      let size = Self.size(of: file)
      if unlink(file) == 0, let size { release(fileOf: size) }
      return true
    }
    let isRemoved = ContentLock.removing(in: path) { unlink(file) }
    if !isRemoved { hasLeftovers.store(true, ordering: .relaxed) }
    return isRemoved
  }

  /// Whether content was left that nobody holds, since the last call.
  func takeLeftovers() -> Bool { hasLeftovers.exchange(false, ordering: .relaxed) }

  /// The digests of a part of the content: `part` is 0 to 255, the first byte of each.
  package func digests(part: UInt8) -> [ContentDigest] {
    let folder = Hexadecimal.text([part])
    return Self.names(in: "\(path)/content/\(folder)").compactMap { ContentDigest(text: folder + $0) }
  }

  /// The size of stored content; `nil` where there is none.
  package func size(of digest: ContentDigest) -> Int? { Self.size(of: file(of: digest)) }

  /// Where content lies.
  package func file(of digest: ContentDigest) -> String {
    let text = digest.text
    return "\(path)/content/\(text.prefix(2))/\(text.dropFirst(2))"
  }

  // MARK: - Incoming

  /// Makes a file for content that is about to arrive.
  package func makeIncoming(_ id: String) throws(FilesError) -> IncomingContent {
    try reserve(from: nil, to: 0)
    let file = "\(path)/incoming/\(id)"
    let descriptor = Glibc.open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      let error = Self.failure("open", file)
      release(fileOf: 0)
      throw error
    }
    return IncomingContent(descriptor: descriptor, path: file, directory: self)
  }

  /// Opens a file of content that has arrived up to `size` bytes, and cuts off what is beyond; `nil` where it has not.
  ///
  /// The file stays where it is, as with `keep()`. Cost: reads all of it, for the checksums.
  func reopenIncoming(_ id: String, size: Int) throws(FilesError) -> IncomingContent? {
    let file = "\(path)/incoming/\(id)"
    let descriptor = Glibc.open(file, O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else {
      guard errno == ENOENT else { throw Self.failure("open", file) }
      return nil
    }
    let incoming = IncomingContent(descriptor: descriptor, path: file, directory: self)
    incoming.keep()
    guard let length = Self.size(of: file), length >= size, ftruncate(descriptor, off_t(size)) == 0 else { return nil }
    release(from: length, to: size)
    try incoming.readAgain(size)
    return incoming
  }

  /// Removes an incoming file that nobody has open.
  func removeIncoming(_ id: String) {
    let file = "\(path)/incoming/\(id)"
    let size = isInMemory ? Self.size(of: file) : nil
    if unlink(file) == 0, let size { release(fileOf: size) }
  }

  /// Removes incoming files whose id is not among those to keep.
  func removeIncoming(except keep: Set<String>) {
    for name in Self.names(in: "\(path)/incoming") where !keep.contains(name) { removeIncoming(name) }
  }

  // MARK: - Room

  /// What a file of a size takes of memory: whole pages, and one for the file itself.
  private static func room(of size: Int?) -> Int {
    guard let size else { return 0 }
    return ((size + 4095) / 4096 + 1) * 4096
  }

  /// Takes room for a file that grows; `nil` stands for no file.
  /// - Throws: ``FilesError/full``, and nothing is taken.
  func reserve(from old: Int?, to new: Int) throws(FilesError) {
    guard isInMemory else { return }
    let bytes = Self.room(of: new) - Self.room(of: old)
    let (_, now) = usedBytes.add(bytes, ordering: .relaxed)
    guard now <= bytesMax else {
      usedBytes.subtract(bytes, ordering: .relaxed)
      throw .full
    }
  }

  /// Gives room back: a file became smaller.
  func release(from old: Int, to new: Int) {
    if isInMemory { usedBytes.subtract(Self.room(of: old) - Self.room(of: new), ordering: .relaxed) }
  }

  /// Gives the room of a whole file back.
  func release(fileOf size: Int) {
    if isInMemory { usedBytes.subtract(Self.room(of: size), ordering: .relaxed) }
  }

  /// How much memory files take now; 0 on a disk, where nobody counts.
  package var reservedBytes: Int { usedBytes.load(ordering: .relaxed) }

  // MARK: - The file system

  /// Whether a test has a call fail; `errno` says why.
  func fails(_ call: DiskCall) -> Bool {
    guard let fault else { return false }
    let code = fault(call)
    if code != 0 { errno = code }
    return code != 0
  }

  /// The error of a call that just failed.
  static func failure(_ operation: String, _ path: String) -> FilesError {
    let code = errno
    // The last: a file that is longer than the file system, or the limit of the process, allows.
    let isFull = code == ENOSPC || code == EDQUOT || code == EFBIG
    return isFull ? .full : .system(operation: operation, path: path, code: code)
  }

  private func sync(_ directory: String) throws(FilesError) {
    guard !isInMemory else { return }
    let descriptor = Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure("open", directory) }
    defer { close(descriptor) }
    guard !fails(.syncFolder), fsync(descriptor) == 0 else { throw Self.failure("fsync", directory) }
  }

  private static func makeDirectory(_ path: String) throws(FilesError) {
    if mkdir(path, 0o700) != 0, errno != EEXIST { throw failure("mkdir", path) }
  }

  private static func size(of file: String) -> Int? {
    var status = stat()
    return stat(file, &status) == 0 ? Int(status.st_size) : nil
  }

  /// The entries of a directory, but those that begin with a dot; none where it cannot be read.
  package static func names(in directory: String) -> [String] {
    guard let stream = opendir(directory) else { return [] }
    defer { closedir(stream) }
    var names: [String] = []
    while let entry = readdir(stream) {
      let name = withUnsafeBytes(of: &entry.pointee.d_name) { bytes in
        String(decoding: bytes.prefix { $0 != 0 }, as: UTF8.self)
      }
      if !name.hasPrefix(".") { names.append(name) }
    }
    return names
  }
}
