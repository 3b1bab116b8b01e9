package import FixtureTree
import Glibc

/// The files of an archive (zip, or tar, which may be compressed with gzip or zstd), unpacked to a temporary folder that is removed with this object.
///
/// Only regular files are unpacked, and none outside of the folder: an entry with an absolute path or with `..` is an
/// error. The sizes have limits (``ArchiveLimits``).
package final class UnpackedArchive {
  /// The temporary folder.
  package let folder: String
  /// The first wanted entry of a tar archive that was not unpacked because it is a link or a special file, if any.
  package private(set) var leftOut: String?

  /// Unpacks a file if it is an archive; otherwise returns `nil`. Only entries whose path `isWanted` accepts are
  /// unpacked. The folder is in `$TMPDIR`, or in `/var/tmp`.
  /// - Throws: `FixtureTreeError` if the archive is damaged, unsafe or too large, or a file cannot be written.
  package convenience init?(_ path: String, isWanted: (String) -> Bool) throws(FixtureTreeError) {
    let file = try ArchiveFile(path)
    let head = try file.bytes(at: 0, count: TarReader.blockBytes)
    if ZipReader.isArchive(head) {
      try self.init(file)
      try ZipReader(archive: file).forEach { (name, _, next) throws(FixtureTreeError) in
        if isWanted(name) { try write(name, next) }
      }
    } else {
      let start: [UInt8]
      do throws(FixtureTreeError) {
        start = try ByteStream(try file.source(0..<file.size).decompressed()).take(TarReader.blockBytes)
      } catch {
        // The reader of compressed documents reports the damage of other files.
        if Self.isName(path) { throw error }
        return nil
      }
      guard TarReader.isArchive(start) else { return nil }
      try self.init(file)
      let content = try file.source(0..<file.size).decompressed()
      try unpack(TarReader(file: path, stream: ByteStream(content)), isWanted)
    }
  }

  /// Returns whether a file's name is that of an archive that can be unpacked.
  package static func isName(_ path: String) -> Bool {
    [".zip", ".tar", ".tar.gz", ".tgz", ".tar.zst", ".tzst"].contains { ending in
      path.utf8.count > ending.utf8.count && path.lowercased().hasSuffix(ending)
    }
  }

  private let archive: ArchiveFile
  private var unpackedBytes = 0
  private var uncheckedBytes = 0

  private init(_ archive: ArchiveFile) throws(FixtureTreeError) {
    self.archive = archive
    let parent = getenv("TMPDIR").map { String(cString: $0) } ?? ""
    var template = Array("\(parent.isEmpty ? "/var/tmp" : parent)/hearth-import.XXXXXX".utf8CString)
    let isMade = template.withUnsafeMutableBufferPointer { $0.baseAddress.flatMap { mkdtemp($0) } != nil }
    guard isMade else {
      throw FixtureTreeError(
        file: archive.path, message: "no temporary folder can be created: \(String(cString: strerror(errno)))")
    }
    folder = String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  deinit { FolderEntries.removeAll(folder) }

  private func unpack(_ tar: TarReader, _ isWanted: (String) -> Bool) throws(FixtureTreeError) {
    try tar.forEach { (name, _, next) throws(FixtureTreeError) in
      if isWanted(name) { try write(name, next) }
    } special: { (name) throws(FixtureTreeError) in
      if leftOut == nil, isWanted(name) { leftOut = name }
    }
    // Zeros can follow the archive, and then the checksum of the compressed bytes, which the stream verifies.
    var left = ArchiveLimits.headerBytesMax
    while left > 0 {
      let piece = try tar.stream.takeSome(left)
      if piece.isEmpty { break }
      left -= piece.count
    }
  }

  private func write(_ name: String, _ next: ByteStream.Next) throws(FixtureTreeError) {
    let parts = try parts(of: name)
    var path = folder
    for part in parts.dropLast() {
      path += "/\(part)"
      guard mkdir(path, 0o700) == 0 || errno == EEXIST else { throw failure(name) }
    }
    path += "/\(parts[parts.count - 1])"
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw failure(name) }
    defer { close(descriptor) }
    while true {
      let piece = try next()
      if piece.isEmpty { return }
      try count(piece.count, descriptor)
      var offset = 0
      while offset < piece.count {
        let written = piece.withUnsafeBytes {
          Glibc.write(descriptor, $0.baseAddress.map { $0 + offset }, $0.count - offset)
        }
        if written < 0, errno != EINTR { throw failure(name) }
        offset += max(0, written)
      }
    }
  }

  private func failure(_ name: String) -> FixtureTreeError {
    FixtureTreeError(
      file: archive.path, message: "\(name) cannot be unpacked to \(folder): \(String(cString: strerror(errno)))")
  }

  /// Returns the segments of an entry's path.
  private func parts(of name: String) throws(FixtureTreeError) -> [String] {
    let parts = name.utf8.split(separator: UInt8(ascii: "/")).filter { !$0.elementsEqual(".".utf8) }
    let isSafe =
      !parts.isEmpty && name.utf8.first != UInt8(ascii: "/") && name.utf8.count <= ArchiveLimits.pathBytesMax
      && parts.allSatisfy { !$0.elementsEqual("..".utf8) && !$0.contains(0) }
    guard isSafe else {
      throw FixtureTreeError(
        file: archive.path, message: "the archive contains the path \"\(name)\", which is not safe to unpack")
    }
    return parts.map { String(Substring($0)) }
  }

  private func count(_ more: Int, _ descriptor: Int32) throws(FixtureTreeError) {
    unpackedBytes += more
    guard unpackedBytes <= ArchiveLimits.unpackedBytesMax else {
      throw FixtureTreeError(
        file: archive.path, message: "the unpacked files exceed \(ArchiveLimits.unpackedBytesMax) bytes")
    }
    guard (unpackedBytes - ArchiveLimits.anyRatioBytes) / ArchiveLimits.ratioMax <= archive.size else {
      throw FixtureTreeError(
        file: archive.path,
        message: "the archive unpacks to more than \(ArchiveLimits.ratioMax) times its size, so it may be an attack; "
          + "if you trust it, unpack it yourself and import the folder")
    }
    uncheckedBytes += more
    guard uncheckedBytes >= 16 << 20 else { return }
    uncheckedBytes = 0
    var space = statvfs()
    guard fstatvfs(descriptor, &space) == 0 else { return }
    guard Int(space.f_bavail) * Int(space.f_frsize) >= ArchiveLimits.freeBytesMin else {
      throw FixtureTreeError(
        file: archive.path,
        message: "the file system of \(folder) is nearly full; name another folder in TMPDIR, or unpack the archive "
          + "yourself")
    }
  }
}
