import Basics
import Compression
import Digests
import DocumentModel
import Files
import Glibc
import KeyValue

/// The backups in a bucket:
///
///     manifests/{name}.json        the files of a backup, see ``BackupManifest``
///     data/{name}/{file}.{piece}   the databases, the accounts and the metadata of files, compressed
///     content/{sha256}.{piece}     the content of files, which backups share
///
/// A backup uploads only content that the bucket lacks. Memory: two pieces.
struct BackupBucket: BackupPlace {
  private let store: any BucketStore
  private let now: () -> Timestamp
  /// The size of an object, in bytes. Stores limit the size of a request.
  private let pieceBytes: Int

  /// The default of ``pieceBytes``.
  static let standardPieceBytes = 16 << 20
  /// The age after which an object that no backup names is removed, in microseconds. A backup that is being made has no
  /// manifest yet.
  private static let abandonedMicroseconds: Int64 = 24 * 3600 * 1_000_000

  var text: String { store.text }

  init(_ store: any BucketStore, pieceBytes: Int = standardPieceBytes, now: @escaping () -> Timestamp) {
    (self.store, self.pieceBytes, self.now) = (store, pieceBytes, now)
  }

  // MARK: Backups

  func backups() throws -> [StoredBackup] {
    try names().map { StoredBackup(name: $0, size: try manifest($0).size) }
  }

  private func names() throws -> [BackupName] {
    var names: [BackupName] = []
    try store.list("manifests/") { page in
      names += page.compactMap { object in
        guard object.name.hasPrefix("manifests/"), object.name.hasSuffix(".json") else { return nil }
        return BackupName(String(object.name.dropFirst("manifests/".count).dropLast(".json".count)))
      }
    }
    return names.sorted()
  }

  private func manifest(_ name: BackupName) throws -> BackupManifest {
    let object = Self.manifest(name)
    guard let json = try store.get(object) else {
      throw CommandFailure.failed("the backup \(name.text) no longer exists in \(text)")
    }
    return try BackupManifest(json, of: text + object)
  }

  private static func manifest(_ name: BackupName) -> String { "manifests/\(name.text).json" }

  func make(_ name: BackupName, of source: DirectoryReader, progress: (String) -> Void) throws -> BackupOutcome {
    let stored = try storedContent()
    // In the data directory, the copy contains links to the content of files instead of copies.
    let temporary = DatabaseChoice.environment("TMPDIR") ?? "/var/tmp"
    let folder = access(source.path, W_OK) == 0 ? source.path : temporary
    let output = UnfinishedOutput(of: "\(folder)/hearth-backup")
    let copy = output.path
    defer { try? FolderTree.remove(copy) }
    let files = try Backup(source, linksContent: true).copy(to: output, progress: progress)
    var total = 0
    FolderTree.forEachFile(in: copy) { total += $1 }
    var manifest = BackupManifest(time: name.time, files: [], addedBytes: 0)
    var done = 0
    try FolderTree.forEachFile(in: copy) { path, size in
      let file = try upload(path, size, of: copy, to: name, stored, index: manifest.files.count, &manifest.addedBytes) {
        progress("\(ByteCount.text(done + $0)) of \(ByteCount.text(total)) stored")
      }
      manifest.files.append(file)
      done += size
    }
    try store.put(Self.manifest(name), manifest.json)
    return BackupOutcome(
      size: total, addedBytes: manifest.addedBytes, problems: files?.problems ?? [],
      problemCount: files?.problemCount ?? 0)
  }

  /// Returns the names of the pieces of content that the bucket has.
  private func storedContent() throws -> Set<String> {
    var names: Set<String> = []
    try store.list("content/") { for object in $0 { names.insert(object.name) } }
    return names
  }

  /// Uploads a file of a copy, unless it is content that the bucket has.
  private func upload(
    _ path: String, _ size: Int, of copy: String, to name: BackupName, _ stored: Set<String>, index: Int,
    _ addedBytes: inout Int, progress: (Int) -> Void
  ) throws -> BackupManifest.File {
    let digest = Self.contentDigest(path)
    let object = digest.map { "content/\($0)" } ?? "data/\(name.text)/\(index)"
    if let digest {
      let count = max(1, (size + pieceBytes - 1) / pieceBytes)
      if (0..<count).allSatisfy({ stored.contains("\(object).\($0)") }) {
        return BackupManifest.File(
          path: path, size: size, digest: digest, object: object, pieceCount: count, isCompressed: false)
      }
    }
    var pieces = PieceWriter(pieceBytes) { try store.put("\(object).\($0)", $1) }
    let compressor = digest == nil ? try Compressor(.zstd) : nil
    var hash = MessageDigest(.sha256)
    var read = 0
    try Self.forEachPiece(of: "\(copy)/\(path)") { bytes in
      bytes.withUnsafeBytes { hash.update($0) }
      read += bytes.count
      try pieces.add(try compressor?.encode(bytes) ?? bytes)
      progress(read)
    }
    if let compressor { try pieces.add(try compressor.encode([], isLast: true)) }
    try pieces.finish()
    guard let computed = hash.finish().map({ Hexadecimal.text($0) }) else { throw Self.noDigests }
    guard read == size, digest == nil || digest == computed else {
      throw CommandFailure.data(
        "the file \(path) of the data directory is damaged; run `hearth check` to see which it is")
    }
    addedBytes += pieces.byteCount
    return BackupManifest.File(
      path: path, size: size, digest: computed, object: object, pieceCount: pieces.count, isCompressed: digest == nil)
  }

  /// Returns the digest that the path of content in a data directory consists of, or `nil` for other files.
  private static func contentDigest(_ path: String) -> String? {
    let parts = path.split(separator: "/")
    guard parts.count == 4, parts[0] == "files", parts[1] == "content" else { return nil }
    let digest = String(parts[2] + parts[3])
    return Hexadecimal.bytes(digest)?.count == 32 ? digest : nil
  }

  // MARK: Restores

  func restore(_ backup: StoredBackup, to path: String, progress: (String) -> Void) throws {
    let manifest = try manifest(backup.name)
    let target = LocalPath.withoutLastSlashes(path)
    let isFree = rmdir(target) == 0 || errno == ENOENT
    guard isFree else { throw CommandFailure.failed("\(target) is not empty; name a directory that does not exist") }
    let output = UnfinishedOutput(of: target)
    let unfinished = output.path
    do {
      try Self.makeFolders(of: "\(unfinished)/x", below: unfinished)
      output.lock()
      var done = 0
      for file in manifest.files {
        try download(file, to: "\(unfinished)/\(file.path)", unfinished) {
          progress("\(ByteCount.text(done + $0)) of \(ByteCount.text(manifest.size)) restored")
        }
        done += file.size
      }
      sync()
      guard rename(unfinished, target) == 0 else {
        throw StorageError.system(operation: "rename", path: target, code: errno)
      }
      sync()
    } catch {
      try? FolderTree.remove(unfinished)
      throw error
    }
  }

  private func download(
    _ file: BackupManifest.File, to path: String, _ root: String, progress: (Int) -> Void
  ) throws {
    try Self.makeFolders(of: path, below: root)
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StorageError.system(operation: "open", path: path, code: errno) }
    defer { close(descriptor) }
    let decompressor = file.isCompressed ? try Decompressor(.zstd) : nil
    var hash = MessageDigest(.sha256)
    var written = 0
    for index in 0..<file.pieceCount {
      let name = "\(file.object).\(index)"
      guard let piece = try store.get(name) else {
        throw CommandFailure.data("\(text)\(name) is missing; restore another backup")
      }
      try Self.forEachPart(of: piece, decompressor, name: text + name) { part in
        written += part.count
        guard written <= file.size else { throw Self.damaged(file, in: text) }
        part.withUnsafeBytes { hash.update($0) }
        try Terminal(descriptor: descriptor).writeAll(part)
      }
      progress(written)
    }
    guard let digest = hash.finish().map({ Hexadecimal.text($0) }) else { throw Self.noDigests }
    guard written == file.size, digest == file.digest, decompressor?.isComplete ?? true else {
      throw Self.damaged(file, in: text)
    }
  }

  private static func damaged(_ file: BackupManifest.File, in text: String) -> CommandFailure {
    .data("\(file.path) of this backup in \(text) is damaged; restore another backup")
  }

  private static func makeFolders(of path: String, below root: String) throws(StorageError) {
    let folder = LocalPath.folder(of: path)
    if folder.utf8.count > root.utf8.count { try makeFolders(of: folder, below: root) }
    guard mkdir(folder, 0o700) == 0 || errno == EEXIST else {
      throw .system(operation: "mkdir", path: folder, code: errno)
    }
  }

  // MARK: Removal

  func remove(_ backups: [StoredBackup]) throws {
    guard !backups.isEmpty else { return }
    // Without its manifest, an incompletely removed backup does not exist.
    for backup in backups { try store.remove(Self.manifest(backup.name)) }
    var objects: Set<String> = []
    let kept = try names()
    for name in kept { for file in try manifest(name).files { objects.insert(file.object) } }
    let removed = Set(backups.map(\.name.text))
    let end = now().microseconds - Self.abandonedMicroseconds
    for prefix in ["data/", "content/"] {
      try store.list(prefix) { page in
        for object in page {
          guard let dot = object.name.lastIndex(of: "."), !objects.contains(String(object.name[..<dot])) else {
            continue
          }
          let isOfRemoved = removed.contains(String(object.name.split(separator: "/").dropFirst().first ?? ""))
          let isAbandoned = object.stored.map { $0.microseconds < end } ?? false
          if isOfRemoved || isAbandoned { try store.remove(object.name) }
        }
      }
    }
  }

  // MARK: Pieces

  private static let noDigests = CommandFailure.failed(
    "libcrypto cannot compute SHA-256; check the OpenSSL configuration")
  private static let readBytes = 1 << 20

  private static func forEachPiece(of path: String, _ take: ([UInt8]) throws -> Void) throws {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw StorageError.system(operation: "open", path: path, code: errno) }
    defer { close(descriptor) }
    while true {
      var code: Int32 = 0
      let bytes = [UInt8](unsafeUninitializedCapacity: readBytes) { space, count in
        let result = read(descriptor, space.baseAddress, space.count)
        code = result < 0 ? errno : 0
        count = max(0, result)
      }
      if code == EINTR { continue }
      guard code == 0 else { throw StorageError.system(operation: "read", path: path, code: code) }
      if bytes.isEmpty { return }
      try take(bytes)
    }
  }

  private static func forEachPart(
    of piece: [UInt8], _ decompressor: Decompressor?, name: String, _ take: ([UInt8]) throws -> Void
  ) throws {
    guard let decompressor else { return try take(piece) }
    var position = 0
    while true {
      var failure: CompressionError?
      let part = [UInt8](unsafeUninitializedCapacity: readBytes) { space, count in
        piece.withUnsafeBytes { input in
          do throws(CompressionError) {
            count = try decompressor.decode(input, from: &position, into: UnsafeMutableRawBufferPointer(space))
          } catch { failure = error }
        }
      }
      if let failure { throw CommandFailure.data("\(name) is damaged (\(failure)); restore another backup") }
      if part.isEmpty, position == piece.count { return }
      try take(part)
    }
  }
}

/// Splits a stream into pieces of one size. The last piece is smaller, and the only piece can be empty.
private struct PieceWriter {
  private let pieceBytes: Int
  private let put: (Int, [UInt8]) throws -> Void
  private var waiting: [UInt8] = []
  /// The number of pieces that were stored.
  private(set) var count = 0
  /// The number of bytes that were stored.
  private(set) var byteCount = 0

  init(_ pieceBytes: Int, _ put: @escaping (Int, [UInt8]) throws -> Void) {
    (self.pieceBytes, self.put) = (pieceBytes, put)
  }

  mutating func add(_ bytes: [UInt8]) throws {
    waiting += bytes
    while waiting.count > pieceBytes {
      try store(Array(waiting.prefix(pieceBytes)))
      waiting.removeFirst(pieceBytes)
    }
  }

  mutating func finish() throws {
    try store(waiting)
    waiting = []
  }

  private mutating func store(_ piece: [UInt8]) throws {
    try put(count, piece)
    count += 1
    byteCount += piece.count
  }
}
