import Basics
import Glibc

/// Shared content in a folder on a file system that all nodes mount, such as NFS or CephFS.
///
///     DIR/hearth-files-id                                 the identity, see ``SharedContent/identity(claiming:)``
///     DIR/content/{2 digits}/{62 digits}/{16 digits}      the copies of a content, by its SHA-256
///     DIR/incoming/{16 digits}                            a copy that is being written
///
/// A copy is written and synced under another name first, so a name in `content` always belongs to a whole file. The calls
/// take as long as the file system takes: a hard mount of NFS waits for its server without an end.
package final class SharedFolder: SharedContent {
  private let path: String
  private static let pieceBytes = 1 << 20

  package let bytesMax = Int.max

  /// Names a folder. Nothing is read or written yet.
  package init(_ path: String) { self.path = path }

  /// The text that names the place, as ``SharedContent/place``.
  package var place: String { path }

  // MARK: The identity

  /// As ``SharedContent/identity(claiming:)``.
  /// - Throws: ``SharedContentError``.
  package func identity(claiming new: UInt64?) throws(SharedContentError) -> UInt64? {
    let file = "\(path)/hearth-files-id"
    if let found = try storedIdentity(file) { return found }
    guard let new else { return nil }
    // Nothing else may be in a folder that has no identity yet: it may be a wrong path. Folders without files may be left of
    // an interrupted call.
    guard isUnused() else {
      throw .refused("\(path) has other files and no shared files of Hearth; name an empty folder")
    }
    // Only here: a file system that is not mounted later has no such folders, so nothing is written in its place.
    try makeFolder("\(path)/content")
    try makeFolder("\(path)/incoming")
    let text = SharedCopy(of: ContentDigest(bytes: []), number: new).numberText
    let source = "\(path)/.hearth-files-id.\(SharedCopy(of: ContentDigest(bytes: [])).numberText)"
    defer { unlink(source) }
    try write(Array("\(text)\n".utf8), toNewFile: source)
    // The link fails if another node was faster.
    if Glibc.link(source, file) != 0, errno != EEXIST {
      guard Self.hasNoLinks(errno), rename(source, file) == 0 else { throw failure("link", file) }
    }
    try sync(folder: path)
    return try storedIdentity(file)
  }

  private func storedIdentity(_ file: String) throws(SharedContentError) -> UInt64? {
    let descriptor = open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      guard errno == ENOENT else { throw failure("open", file) }
      return nil
    }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 17)
    let count = read(descriptor, &bytes, bytes.count)
    guard count >= 16, let number = SharedCopy.number(String(decoding: bytes.prefix(16), as: UTF8.self)) else {
      throw .damaged("\(file) has no identity; restore it from a backup of the folder")
    }
    return number
  }

  private func isUnused() -> Bool {
    let known: Set = ["lost+found", "content", "incoming"]
    return Self.names(in: path)?.allSatisfy { known.contains($0) } ?? true
  }

  // MARK: Copies

  /// As ``SharedContent/publish(_:fromFile:size:)``.
  /// - Throws: ``SharedContentError``.
  package func publish(_ copy: SharedCopy, fromFile source: String, size: Int) throws(SharedContentError) {
    let deadline = PublicationDeadline()
    var file = try PublishedFile(source, size: size, pieceBytes: Self.pieceBytes)
    let incoming = "\(path)/incoming/\(copy.numberText)"
    let descriptor = open(incoming, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("open", incoming) }
    var isOpen = true
    defer {
      if isOpen { close(descriptor) }
      unlink(incoming)
    }
    while let piece = try file.next() {
      try deadline.check(place)
      try write(piece, to: descriptor, incoming)
    }
    guard fsync(descriptor) == 0 else { throw failure("fsync", incoming) }
    isOpen = false
    // Network file systems report some failed writes only here.
    guard close(descriptor) == 0 else { throw failure("close", incoming) }
    try deadline.check(place)
    try name(incoming, as: copy)
  }

  /// Gives a complete file its name, durably.
  private func name(_ incoming: String, as copy: SharedCopy) throws(SharedContentError) {
    let (folder, target) = (folder(of: copy.digest), file(of: copy))
    // The removal of the last copy removes the folder.
    for _ in 0..<8 {
      try makeFolder("\(path)/content/\(copy.digest.text.prefix(2))")
      try makeFolder(folder)
      if Glibc.link(incoming, target) == 0 || Self.hasNoLinks(errno) && rename(incoming, target) == 0 {
        return try sync(folder: folder)
      }
      guard errno == ENOENT else { throw failure("link", target) }
    }
    throw failure("link", target)
  }

  /// Whether an error says that the file system has no hard links.
  private static func hasNoLinks(_ code: Int32) -> Bool { code == EPERM || code == EOPNOTSUPP || code == ENOSYS }

  /// As ``SharedContent/copies(of:)``.
  /// - Throws: ``SharedContentError``.
  package func copies(of digest: ContentDigest) throws(SharedContentError) -> [SharedCopy] {
    let folder = folder(of: digest)
    if let names = Self.names(in: folder) {
      return names.compactMap { SharedCopy(digestText: digest.text, numberText: $0) }
    }
    guard errno == ENOENT else { throw failure("opendir", folder) }
    return []
  }

  /// As ``SharedContent/fetch(_:_:)``.
  /// - Throws: ``SharedContentError``.
  package func fetch(
    _ copy: SharedCopy, _ take: (UnsafeRawBufferPointer) throws(SharedContentError) -> Void
  ) throws(SharedContentError) -> Bool {
    let file = file(of: copy)
    let descriptor = open(file, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else {
      guard errno == ENOENT else { throw failure("open", file) }
      return false
    }
    defer { close(descriptor) }
    let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: Self.pieceBytes, alignment: 16)
    defer { buffer.deallocate() }
    while true {
      let count = read(descriptor, buffer.baseAddress, buffer.count)
      if count < 0, errno == EINTR { continue }
      guard count >= 0 else { throw failure("read", file) }
      if count == 0 { return true }
      try take(UnsafeRawBufferPointer(rebasing: buffer[..<count]))
    }
  }

  /// As ``SharedContent/remove(_:)``.
  /// - Throws: ``SharedContentError``.
  package func remove(_ copy: SharedCopy) throws(SharedContentError) {
    let file = file(of: copy)
    guard unlink(file) == 0 || errno == ENOENT else { throw failure("unlink", file) }
    // It fails if there are other copies.
    rmdir(folder(of: copy.digest))
  }

  /// As ``SharedContent/forEachCopy(_:)``.
  /// - Throws: ``SharedContentError``.
  package func forEachCopy(_ take: ([SharedCopy]) throws(SharedContentError) -> Void) throws(SharedContentError) {
    for part in UInt8.min...UInt8.max {
      let start = Hexadecimal.text([part])
      guard let rests = Self.names(in: "\(path)/content/\(start)") else {
        guard errno == ENOENT else { throw failure("opendir", "\(path)/content/\(start)") }
        continue
      }
      for batch in stride(from: 0, to: rests.count, by: 1000) {
        var copies: [SharedCopy] = []
        for rest in rests[batch..<min(batch + 1000, rests.count)] {
          if let digest = ContentDigest(text: start + rest) { copies += try self.copies(of: digest) }
        }
        try take(copies)
      }
    }
  }

  /// As ``SharedContent/removeLeftovers()``.
  /// - Throws: ``SharedContentError``.
  package func removeLeftovers() throws(SharedContentError) {
    var now = timespec()
    clock_gettime(CLOCK_REALTIME, &now)
    for name in Self.names(in: "\(path)/incoming") ?? [] {
      var status = stat()
      let file = "\(path)/incoming/\(name)"
      // The clock of the file system may be another one, but not by a day.
      if stat(file, &status) == 0, status.st_mtim.tv_sec + SharedContentLimits.leftoverSeconds < now.tv_sec {
        unlink(file)
      }
    }
  }

  // MARK: The file system

  private func folder(of digest: ContentDigest) -> String {
    let text = digest.text
    return "\(path)/content/\(text.prefix(2))/\(text.dropFirst(2))"
  }

  private func file(of copy: SharedCopy) -> String { "\(folder(of: copy.digest))/\(copy.numberText)" }

  /// Makes a folder if it does not exist, durably.
  private func makeFolder(_ folder: String) throws(SharedContentError) {
    if mkdir(folder, 0o700) == 0 {
      let parent = folder.lastIndex(of: "/").map { String(folder[..<$0]) } ?? path
      return try sync(folder: parent)
    }
    guard errno == EEXIST || errno == ENOENT else { throw failure("mkdir", folder) }
  }

  private func sync(folder: String) throws(SharedContentError) {
    let descriptor = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC)
    guard descriptor >= 0 else { throw failure("open", folder) }
    defer { close(descriptor) }
    // Some network file systems have no sync of folders, because their servers sync them.
    guard fsync(descriptor) == 0 || errno == EINVAL || errno == ENOTSUP else { throw failure("fsync", folder) }
  }

  private func write(_ bytes: [UInt8], to descriptor: Int32, _ file: String) throws(SharedContentError) {
    var code: Int32 = 0
    bytes.withUnsafeBytes { bytes in
      var done = 0
      while done < bytes.count {
        let count = Glibc.write(descriptor, bytes.baseAddress.map { $0 + done }, bytes.count - done)
        if count < 0, errno == EINTR { continue }
        guard count > 0 else {
          code = count < 0 ? errno : EIO
          return
        }
        done += count
      }
    }
    errno = code
    guard code == 0 else { throw failure("write", file) }
  }

  private func write(_ bytes: [UInt8], toNewFile file: String) throws(SharedContentError) {
    let descriptor = open(file, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure("open", file) }
    defer { close(descriptor) }
    try write(bytes, to: descriptor, file)
    guard fsync(descriptor) == 0 else { throw failure("fsync", file) }
  }

  /// Returns the error of a call that just failed.
  private func failure(_ call: String, _ file: String) -> SharedContentError {
    let code = errno
    let text = "\(call) \(file): \(String(cString: strerror(code)))"
    return switch code {
    case ENOSPC, EDQUOT, EFBIG: .full(text)
    case EACCES, EPERM, EROFS, ENOTDIR, ENOENT: .refused(text)
    default: .unavailable(text)
    }
  }

  /// Returns the entries of a folder, except those that begin with a dot. Returns `nil` and sets `errno` if it cannot be
  /// read.
  private static func names(in folder: String) -> [String]? {
    guard let stream = opendir(folder) else { return nil }
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
