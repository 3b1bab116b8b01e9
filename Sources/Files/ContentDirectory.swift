import Glibc
import Synchronization

/// The files that hold content, apart from their names.
///
///     PATH/content/{2 digits}/{62 digits}   content, named by its SHA-256: equal content is stored once
///     PATH/incoming/{id}                    content that is arriving; an upload that can be resumed keeps its own
///
/// Nothing here is named by a client. A file appears under `content` by one rename, after its bytes reached the disk.
package final class ContentDirectory: Sendable {
  /// The directory.
  package let path: String
  /// Whether it lies on a file system in memory: then nothing is synced, and the whole has a bound.
  package let isInMemory: Bool
  private let bytesMax: Int
  private let usedBytes = Atomic<Int>(0)
  private let isTemporary = Atomic<Bool>(false)
  /// Whether content was left that nobody holds, because it was being copied.
  private let hasLeftovers = Atomic<Bool>(false)

  /// Opens a directory, making it and its parts where they are missing.
  ///
  /// - Parameter bytesMax: how many bytes content may take in memory; on a disk it is the file system that ends.
  /// - Throws: ``FilesError/system(operation:path:code:)``.
  package init(_ path: String, isInMemory: Bool = false, bytesMax: Int = .max) throws(FilesError) {
    self.path = path
    self.isInMemory = isInMemory
    self.bytesMax = bytesMax
    for directory in [path, "\(path)/content", "\(path)/incoming"] { try Self.makeDirectory(directory) }
  }

  deinit {
    if isTemporary.load(ordering: .relaxed) { Self.remove(path) }
  }

  /// Has the directory removed with all that is in it when nobody uses it any more.
  package func removesItself() { isTemporary.store(true, ordering: .relaxed) }

  /// Removes such a directory with all that is in it, and nothing else that may lie there.
  package static func remove(_ path: String) {
    for name in names(in: "\(path)/incoming") { unlink("\(path)/incoming/\(name)") }
    for folder in names(in: "\(path)/content") {
      for name in names(in: "\(path)/content/\(folder)") { unlink("\(path)/content/\(folder)/\(name)") }
      rmdir("\(path)/content/\(folder)")
    }
    ContentHold.forget(path)
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

  /// Gives an incoming file, which is whole and synced, the name of its content, durably.
  func publish(_ incoming: IncomingContent, as digest: ContentDigest) throws(FilesError) {
    let folder = try makeFolder(of: digest)
    let file = self.file(of: digest)
    // Only memory is counted.
    let replaced = isInMemory ? Self.size(of: file) : nil
    guard rename(incoming.path, file) == 0 else { throw Self.failure("rename", file) }
    if let replaced { release(replaced) }
    incoming.wasPublished()
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

  /// Removes content that no object holds, and returns whether it did: while somebody has a ``ContentHold`` it stays, and
  /// ``takeLeftovers()`` says so.
  @discardableResult
  func remove(_ digest: ContentDigest) -> Bool {
    let file = self.file(of: digest)
    guard !isInMemory else {
      let size = Self.size(of: file)
      if unlink(file) == 0, let size { release(size) }
      return true
    }
    let isRemoved = ContentHold.removing(in: path) { unlink(file) }
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
    let file = "\(path)/incoming/\(id)"
    let descriptor = Glibc.open(file, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw Self.failure("open", file) }
    return IncomingContent(descriptor: descriptor, path: file, directory: self)
  }

  /// Opens a file of content that has arrived up to `size` bytes, and cuts off what is beyond.
  ///
  /// Cost: reads all of it, for the checksums.
  func reopenIncoming(_ id: String, size: Int) throws(FilesError) -> IncomingContent? {
    let file = "\(path)/incoming/\(id)"
    let descriptor = Glibc.open(file, O_RDWR | O_CLOEXEC)
    guard descriptor >= 0 else {
      guard errno == ENOENT else { throw Self.failure("open", file) }
      return nil
    }
    let incoming = IncomingContent(descriptor: descriptor, path: file, directory: self)
    guard let length = Self.size(of: file), length >= size, ftruncate(descriptor, off_t(size)) == 0 else { return nil }
    try incoming.readAgain(size)
    return incoming
  }

  /// Removes incoming files whose id is not among those to keep.
  func removeIncoming(except keep: Set<String>) -> Int {
    var count = 0
    for name in Self.names(in: "\(path)/incoming") where !keep.contains(name) {
      if unlink("\(path)/incoming/\(name)") == 0 { count += 1 }
    }
    return count
  }

  // MARK: - Room

  /// Takes room for bytes that are about to be written.
  func reserve(_ bytes: Int) throws(FilesError) {
    guard isInMemory else { return }
    let (_, now) = usedBytes.add(bytes, ordering: .relaxed)
    guard now <= bytesMax else {
      usedBytes.subtract(bytes, ordering: .relaxed)
      throw .full
    }
  }

  /// Gives room back.
  func release(_ bytes: Int) {
    if isInMemory { usedBytes.subtract(bytes, ordering: .relaxed) }
  }

  // MARK: - The file system

  /// The error of a call that just failed.
  static func failure(_ operation: String, _ path: String) -> FilesError {
    let code = errno
    return code == ENOSPC || code == EDQUOT ? .full : .system(operation: operation, path: path, code: code)
  }

  private func sync(_ directory: String) throws(FilesError) {
    guard !isInMemory else { return }
    let descriptor = Glibc.open(directory, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw Self.failure("open", directory) }
    defer { close(descriptor) }
    guard fsync(descriptor) == 0 else { throw Self.failure("fsync", directory) }
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
