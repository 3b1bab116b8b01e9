import Basics
package import ContentSharing
import Glibc
import Synchronization
import WireFormat

/// A disk operation that a test can make fail.
package enum DiskCall: Sendable {
  /// Writing content.
  case write
  /// Syncing content.
  case sync
  /// Linking content to its name.
  case link
  /// Syncing the directory that contains the name.
  case syncFolder
}

/// The directory of content files.
///
///     PATH/content/{2 digits}/{62 digits}   content, named by its SHA-256: equal content is stored once
///     PATH/incoming/{id}                    content that is arriving; an upload that can be resumed keeps its own
///
/// A client never names a file here. An object refers to content only after the file and its name are durable.
/// After a crash, `content` can contain further files, whole or partial, to which no object refers.
package final class ContentDirectory: Sendable {
  package let path: String
  /// Whether the directory is on a memory file system. Then nothing is synced, and the total size is limited.
  package let isInMemory: Bool
  private let bytesMax: Int
  private let usedBytes = Atomic<Int>(0)
  /// The ownership of a directory that is removed with this object, or `nil` if it is kept.
  private let ownership: DirectoryOwnership?
  private let fault: (@Sendable (DiskCall) -> Int32)?
  /// Whether unreferenced content was kept because it was being copied.
  private let hasLeftovers = Atomic<Bool>(false)

  /// Opens a directory, creating it and its subdirectories if they do not exist.
  ///
  /// - Parameters:
  ///   - bytesMax: the most memory that the files may use. Ignored on a disk, where the file system is the limit.
  ///   - fault: for tests: called before each operation that changes the disk. If it returns a number other than 0,
  ///     the operation is skipped and fails with that `errno`.
  /// - Throws: ``FilesError/system(operation:path:code:)`` if a directory cannot be created.
  package convenience init(
    _ path: String, isInMemory: Bool = false, bytesMax: Int = .max, fault: (@Sendable (DiskCall) -> Int32)? = nil
  ) throws(FilesError) {
    try self.init(path, isInMemory, bytesMax, fault, owning: nil)
  }

  private init(
    _ path: String, _ isInMemory: Bool, _ bytesMax: Int, _ fault: (@Sendable (DiskCall) -> Int32)?,
    owning ownership: DirectoryOwnership?
  ) throws(FilesError) {
    self.path = path
    self.isInMemory = isInMemory
    self.bytesMax = bytesMax
    self.fault = fault
    self.ownership = ownership
    for directory in [path, "\(path)/content", "\(path)/incoming"] { try Self.makeDirectory(directory) }
    try sync(path)
    try sync("\(path)/..")
  }

  /// Creates a directory on a memory file system, in `root`, with a random name that begins with `prefix`. It is
  /// removed, with its content, when this object is deallocated. If the process is killed first,
  /// ``removeAbandoned(in:prefix:)`` removes it.
  /// - Parameter bytesMax: the most memory that the files may use.
  /// - Throws: ``FilesError/system(operation:path:code:)`` if a directory cannot be created.
  package static func temporary(
    in root: String, prefix: String, bytesMax: Int
  ) throws(FilesError) -> ContentDirectory {
    var generator = SystemRandomNumberGenerator()
    let path = "\(root)/\(prefix)\(UInt64.random(in: 0 ... .max, using: &generator))"
    return try ContentDirectory(path, true, bytesMax, nil, owning: DirectoryOwnership(path))
  }

  /// Removes the temporary directories of processes that were killed.
  package static func removeAbandoned(in root: String, prefix: String) {
    for name in names(in: root) where name.hasPrefix(prefix) {
      DirectoryOwnership.removeIfAbandoned("\(root)/\(name)")
    }
  }

  /// Returns whether a directory contains content. Without the metadata, the names of that content are lost.
  package static func holdsContent(_ path: String) -> Bool {
    names(in: "\(path)/content").contains { !names(in: "\(path)/content/\($0)").isEmpty }
  }

  /// Removes the directory and its content files. Other files in it remain.
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

  /// Opens content for reading. Returns `nil` if it does not exist.
  /// - Throws: ``FilesError/system(operation:path:code:)`` if the file cannot be opened.
  package func open(_ digest: ContentDigest) throws(FilesError) -> Int32? {
    let file = self.file(of: digest)
    let descriptor = Glibc.open(file, O_RDONLY | O_CLOEXEC)
    if descriptor >= 0 { return descriptor }
    guard errno == ENOENT else { throw .system(operation: "open", path: file, code: errno) }
    return nil
  }

  /// Links a complete incoming file to the name of its content, and makes both durable.
  ///
  /// The link comes before the sync: a journaling file system then writes the name and the file in one journal
  /// entry.
  func publish(_ incoming: IncomingContent, as digest: ContentDigest) throws(FilesError) {
    let folder = try makeFolder(of: digest)
    let file = self.file(of: digest)
    if !fails(.link), Glibc.link(incoming.path, file) == 0 {
      unlink(incoming.path)
    } else if errno == EEXIST || errno == EPERM || errno == EOPNOTSUPP || errno == EMLINK {
      // Objects may refer to the existing file: only content that is already on the disk may replace it.
      try incoming.sync()
      // Space is accounted only in memory.
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

  /// Links content of another directory on the same file system into this one, durably. Returns whether that
  /// succeeded.
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

  /// Removes content to which no object refers. Returns `false` if the content stays because a ``ContentLock`` is
  /// held; ``takeLeftovers()`` then returns `true`.
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

  /// Returns whether unreferenced content was kept since the last call.
  func takeLeftovers() -> Bool { hasLeftovers.exchange(false, ordering: .relaxed) }

  /// Returns the digests of the content whose digest begins with the byte `part`.
  package func digests(part: UInt8) -> [ContentDigest] {
    let folder = Hexadecimal.text([part])
    return Self.names(in: "\(path)/content/\(folder)").compactMap { ContentDigest(text: folder + $0) }
  }

  /// Returns the size of stored content, or `nil` if it does not exist.
  package func size(of digest: ContentDigest) -> Int? { Self.size(of: file(of: digest)) }

  /// Whether the mark of a content's file says that the shared content has a copy, or `nil` without a file. Only marked
  /// files may leave the cache. The mark is that nobody may write the file, so it needs no record, and a lost one costs a copy.
  func isMarkedShared(_ digest: ContentDigest) -> Bool? {
    var status = stat()
    return stat(file(of: digest), &status) == 0 ? status.st_mode & 0o200 == 0 : nil
  }

  /// Marks the file of content after a copy was shared.
  func markShared(_ digest: ContentDigest) { chmod(file(of: digest), 0o400) }

  /// Whether the directory is a cache of shared content, so content may be missing.
  package var isCache: Bool { Self.size(of: identityFile) != nil }

  /// The file with the identity of the place to which the marks belong.
  var identityFile: String { "\(path)/shared-content" }

  /// Removes the mark.
  func unmarkShared(_ digest: ContentDigest) { chmod(file(of: digest), 0o600) }

  /// Returns the path of stored content.
  package func file(of digest: ContentDigest) -> String {
    let text = digest.text
    return "\(path)/content/\(text.prefix(2))/\(text.dropFirst(2))"
  }

  // MARK: - Incoming

  /// Creates a file for content that is about to arrive.
  /// - Throws: ``FilesError/full`` or ``FilesError/system(operation:path:code:)`` if the file cannot be created.
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

  /// Opens a file of which `size` bytes have arrived, and truncates it to them. Returns `nil` if the file is
  /// missing or shorter.
  ///
  /// The file is kept, as with `keep()`. Cost: reads the whole file to compute the checksums.
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

  /// Returns whether bytes of an upload are in this directory.
  func hasIncoming(_ id: String) -> Bool { Self.size(of: "\(path)/incoming/\(id)") != nil }

  /// Removes an incoming file that is not open.
  func removeIncoming(_ id: String) {
    let file = "\(path)/incoming/\(id)"
    let size = isInMemory ? Self.size(of: file) : nil
    if unlink(file) == 0, let size { release(fileOf: size) }
  }

  /// Removes all incoming files except those with the given IDs.
  func removeIncoming(except keep: Set<String>) {
    for name in Self.names(in: "\(path)/incoming") where !keep.contains(name) { removeIncoming(name) }
  }

  // MARK: - Space

  /// Returns the memory that a file of a size uses: whole pages, and one page for the file itself.
  private static func room(of size: Int?) -> Int {
    guard let size else { return 0 }
    return ((size + 4095) / 4096 + 1) * 4096
  }

  /// Reserves space for a file that grows from `old` to `new` bytes. Pass `nil` as `old` for a new file.
  /// - Throws: ``FilesError/full`` if the limit is exceeded. Then nothing is reserved.
  func reserve(from old: Int?, to new: Int) throws(FilesError) {
    guard isInMemory else { return }
    let bytes = Self.room(of: new) - Self.room(of: old)
    let (_, now) = usedBytes.add(bytes, ordering: .relaxed)
    guard now <= bytesMax else {
      usedBytes.subtract(bytes, ordering: .relaxed)
      throw .full
    }
  }

  /// Releases the space of a file that shrank.
  func release(from old: Int, to new: Int) {
    if isInMemory { usedBytes.subtract(Self.room(of: old) - Self.room(of: new), ordering: .relaxed) }
  }

  /// Releases the space of a whole file.
  func release(fileOf size: Int) {
    if isInMemory { usedBytes.subtract(Self.room(of: size), ordering: .relaxed) }
  }

  /// The memory that the files use, in bytes. Always 0 on a disk.
  package var reservedBytes: Int { usedBytes.load(ordering: .relaxed) }

  // MARK: - The file system

  /// Returns whether a test makes an operation fail, and sets `errno` if so.
  func fails(_ call: DiskCall) -> Bool {
    guard let fault else { return false }
    let code = fault(call)
    if code != 0 { errno = code }
    return code != 0
  }

  /// Returns the error of an operation that just failed.
  static func failure(_ operation: String, _ path: String) -> FilesError {
    let code = errno
    // EFBIG: the file would exceed the limit of the file system or of the process.
    let isFull = code == ENOSPC || code == EDQUOT || code == EFBIG
    return isFull ? .full : .system(operation: operation, path: path, code: code)
  }

  func sync(_ directory: String) throws(FilesError) {
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

  /// Returns the entries of a directory, except those that begin with a dot. Returns none if it cannot be read.
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
