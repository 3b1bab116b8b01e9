import Basics
import Compression
import Digests
import DocumentModel
import FixtureTree
import Glibc
import HearthServer
import KeyValue

/// The backups in a bucket:
///
///     manifests/{name}.json        see ``BackupManifest``
///     data/{name}/list.{piece}     the list of the files, compressed
///     data/{name}/{line}.{piece}   the databases, the accounts and the metadata of files, compressed
///     content/{sha256}.{piece}     the content of files, which backups share
///     running/{name}               exists while a backup is made, and reserves the name
///
/// An incremental backup has the changes of databases instead of their files, see ``BackupState``.
///
/// A backup uploads only content that the bucket lacks. Memory: two pieces and the list.
struct BackupBucket: BackupPlace {
  let store: any BucketStore
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

  var isMissing: Bool { false }

  func names() throws -> [BackupName] {
    var names: [BackupName] = []
    try store.list("manifests/") { page in
      names += page.compactMap { object in
        guard object.name.hasPrefix("manifests/"), object.name.hasSuffix(".json") else { return nil }
        return BackupName(String(object.name.dropFirst("manifests/".count).dropLast(".json".count)))
      }
    }
    return names.sorted()
  }

  func facts(of name: BackupName) throws -> BackupFacts {
    let manifest = try manifest(name)
    return BackupFacts(size: manifest.size, source: manifest.source, parent: manifest.parent)
  }

  func parent(of name: BackupName) throws -> BackupName? { try manifest(name).parent }

  func state(of name: BackupName) throws -> BackupState? {
    for (line, file) in try files(of: name).enumerated() where file.path == BackupState.fileName {
      var bytes: [UInt8] = []
      try fetch(file, Self.object(file.path, name, line: line)) { bytes += $0 }
      return try BackupState(bytes, of: "\(text)\(Self.manifest(name))")
    }
    return nil
  }

  func databases(of name: BackupName) throws -> [DatabaseID] {
    if try manifest(name).parent != nil { return try BackupChain(name, in: self).databases }
    return try files(of: name).compactMap { DatabaseID(file: $0.path) }
  }

  func directory(of name: BackupName) -> String? { nil }

  private func manifest(_ name: BackupName) throws -> BackupManifest {
    let object = Self.manifest(name)
    guard let json = try store.get(object) else {
      throw CommandFailure.failed("the backup \(name.text) no longer exists in \(text)")
    }
    return try BackupManifest(json, of: text + object)
  }

  /// Returns the files of a backup, in the order of its list.
  private func files(of name: BackupName) throws -> [BackedUpFile] {
    let list = try manifest(name).list
    var bytes: [UInt8] = []
    try fetch(list, Self.list(name)) { bytes += $0 }
    return try String(decoding: bytes, as: UTF8.self).split(separator: "\n").map { line in
      guard let file = BackedUpFile(line: line) else { throw damaged(list) }
      return file
    }
  }

  // MARK: Names of objects

  private static func manifest(_ name: BackupName) -> String { "manifests/\(name.text).json" }
  private static func running(_ name: BackupName) -> String { "running/\(name.text)" }
  private static func list(_ name: BackupName) -> String { "data/\(name.text)/list" }

  /// The common part of the names of a file's pieces. `line` is its place in the list.
  private static func object(_ path: String, _ name: BackupName, line: Int) -> String {
    BackedUpFile.contentDigest(path).map { "content/\($0)" } ?? "data/\(name.text)/\(line)"
  }

  // MARK: Backups

  func make(
    _ name: BackupName, of source: DirectoryReader, since parent: BackupParent?, progress: (String) -> Void
  ) throws -> BackupOutcome {
    // A store may create a missing bucket for an object. A misspelled name must fail instead.
    _ = try names()
    // This comes before the list of contents: a process that removes backups meanwhile then keeps all contents. Its
    // content is unique, so that this process recognizes its own object.
    let mark = Array("\(getpid()) \(UInt64.random(in: .min ... .max))\n".utf8)
    let isTaken = CommandFailure.failed("\(text) has a backup of this second; run the command again")
    guard try store.putNew(Self.running(name), mark) else { throw isTaken }
    defer { try? store.remove(Self.running(name)) }
    guard try store.get(Self.manifest(name)) == nil else { throw isTaken }
    let stored = try storedContent()
    // In the data directory, the copy contains links to the content of files instead of copies.
    let temporary = DatabaseChoice.environment("TMPDIR") ?? "/var/tmp"
    let output = UnfinishedOutput(of: "\(access(source.path, W_OK) == 0 ? source.path : temporary)/hearth-backup")
    defer { FolderEntries.removeAll(output.path) }
    let copy = try Backup(source, linksContent: true, since: parent).copy(to: output, progress: progress)
    let state = try DigestedFile("\(output.path)/\(BackupState.fileName)")
    try state.write(Array(copy.state.text.utf8))
    _ = try state.finish()
    let total = try FolderIterator.size(of: output.path)
    var files: [BackedUpFile] = []
    var (done, added) = (0, 0)
    try FolderIterator.forEachFile(below: output.path) { path, size in
      let object = Self.object(path, name, line: files.count)
      let pieces = max(1, (size + pieceBytes - 1) / pieceBytes)
      if let digest = BackedUpFile.contentDigest(path), Self.isStored(object, pieces, stored) {
        files.append(BackedUpFile(path: path, size: size, digest: digest, pieceCount: pieces))
      } else {
        var sent = 0
        let (file, bytes) = try send(path, as: object) { take in
          try DigestedFile.forEachPart(of: "\(output.path)/\(path)") { piece in
            try take(piece)
            sent += piece.count
            progress("\(ByteCount.text(done + sent)) of \(ByteCount.text(total)) stored")
          }
        }
        guard file.size == size, BackedUpFile.contentDigest(path) ?? file.digest == file.digest else {
          throw CommandFailure.data(
            "the file \(path) of the data directory is damaged; run `hearth check` to see which it is")
        }
        files.append(file)
        added += bytes
      }
      done += size
    }
    try checkContent(of: files, name)
    let text = files.map { $0.line + "\n" }.joined()
    let (list, _) = try send("list", as: Self.list(name)) { take in try take(Array(text.utf8)) }
    let manifest = BackupManifest(
      time: name.time, size: total, addedBytes: added, list: list, origin: name.origin,
      source: BackupOrigin.text(of: source.path), parent: copy.state.parent)
    guard try store.putNew(Self.manifest(name), manifest.json) else { throw isTaken }
    // A process that removes the parent looks for the manifest above after it has removed that of the parent.
    if let parent = copy.state.parent, try store.get(Self.manifest(parent)) == nil {
      try store.remove(Self.manifest(name))
      throw CommandFailure.failed("another process removed the backup \(parent.text); run the command again")
    }
    return BackupOutcome(
      size: total, addedBytes: added, contents: copy.files, parent: copy.state.parent, notes: copy.notes,
      logOrigins: copy.logOrigins)
  }

  /// Returns the names of the pieces of content that the bucket has.
  private func storedContent() throws -> Set<String> {
    var names: Set<String> = []
    try store.list("content/") { for object in $0 { names.insert(object.name) } }
    return names
  }

  private static func isStored(_ object: String, _ pieces: Int, _ stored: Set<String>) -> Bool {
    (0..<pieces).allSatisfy { stored.contains("\(object).\($0)") }
  }

  /// Checks that another process has not removed content meanwhile.
  private func checkContent(of files: [BackedUpFile], _ name: BackupName) throws {
    let stored = try storedContent()
    for file in files where BackedUpFile.contentDigest(file.path) != nil {
      guard Self.isStored(Self.object(file.path, name, line: 0), file.pieceCount, stored) else {
        throw CommandFailure.failed(
          "another process removed content from \(text) while the backup was made; run the command again")
      }
    }
  }

  // MARK: Restores

  func restore(_ name: BackupName, to path: String, progress: (String) -> Void) throws {
    if try manifest(name).parent != nil {
      return try BackupChain(name, in: self).restore(to: path, progress: progress)
    }
    let files = try files(of: name)
    let total = files.reduce(0) { $0 + $1.size }
    let target = LocalPath.withoutLastSlashes(path)
    guard rmdir(target) == 0 || errno == ENOENT else {
      throw CommandFailure.failed("\(target) is not empty; name a directory that does not exist")
    }
    let output = UnfinishedOutput(of: target)
    do {
      try LocalPath.makeFolder(output.path)
      output.lock()
      var done = 0
      for (line, file) in files.enumerated() {
        if file.path == BackupState.fileName {
          // The data directory does not contain it.
          try fetch(file, Self.object(file.path, name, line: line)) { _ in }
          continue
        }
        try LocalPath.makeFolders(of: file.path, in: output.path)
        try fetch(file, Self.object(file.path, name, line: line), to: "\(output.path)/\(file.path)") { count in
          done += count
          progress("\(ByteCount.text(done)) of \(ByteCount.text(total)) restored")
        }
        if DatabaseID(file: file.path) != nil {
          try BackupChain.renewIncarnation(of: "\(output.path)/\(file.path)")
        }
      }
      // Writes the entries of the folders.
      sync()
      guard rename(output.path, target) == 0 else {
        throw StorageError.system(operation: "rename", path: target, code: errno)
      }
      sync()
    } catch {
      FolderEntries.removeAll(output.path)
      throw error
    }
  }

  func copyDatabase(
    _ id: DatabaseID, of name: BackupName, to path: String, progress: (String) -> Void
  ) throws {
    let wanted = String(DataDirectory.file(of: id, in: "").dropFirst())
    if try manifest(name).parent != nil {
      try BackupChain(name, in: self).copy(wanted, to: path, progress: progress)
    } else if try !fetch(wanted, of: name, to: path, progress) {
      throw CommandFailure.failed("the backup \(name.text) has no database \(id)")
    }
  }

  func copyStore(
    _ store: BackupState.Store, of name: BackupName, to path: String, progress: (String) -> Void
  ) throws {
    guard try fetch(store.file, of: name, to: path, progress) else {
      throw CommandFailure.data("the backup \(name.text) has no \(store.file); restore another backup")
    }
  }

  /// Copies a file of a backup to a new file. Returns whether the backup has it.
  private func fetch(
    _ wanted: String, of name: BackupName, to path: String, _ progress: (String) -> Void
  ) throws -> Bool {
    for (line, file) in try files(of: name).enumerated() where file.path == wanted {
      var done = 0
      try fetch(file, Self.object(file.path, name, line: line), to: path) { count in
        done += count
        progress("\(ByteCount.text(done)) of \(ByteCount.text(file.size)) restored")
      }
      return true
    }
    return false
  }

  func copyContents(_ folder: String, of name: BackupName, to target: String, progress: (String) -> Void) throws {
    var done = 0
    for (line, file) in try files(of: name).enumerated() where file.path.hasPrefix("\(folder)/content/") {
      let path = String(file.path.dropFirst(folder.count + 1))
      try LocalPath.makeFolders(of: path, in: target)
      try fetch(file, Self.object(file.path, name, line: line), to: "\(target)/\(path)") { count in
        done += count
        progress("\(ByteCount.text(done)) of files restored")
      }
    }
  }

  /// Copies a stored file to a new file. `take` receives the number of bytes of each part.
  private func fetch(_ file: BackedUpFile, _ object: String, to path: String, _ take: (Int) -> Void) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else { throw StorageError.system(operation: "open", path: path, code: errno) }
    defer { close(descriptor) }
    try fetch(file, object) { part in
      try Terminal(descriptor: descriptor).writeAll(part)
      take(part.count)
    }
    guard fsync(descriptor) == 0 else { throw StorageError.system(operation: "fsync", path: path, code: errno) }
  }

  // MARK: Removal

  func remove(_ names: [BackupName]) throws {
    guard !names.isEmpty else { return }
    try checkThatNoneNeeds(names)
    // Without its manifest, an incompletely removed backup does not exist.
    var manifests: [String: [UInt8]] = [:]
    for name in names { manifests[Self.manifest(name)] = try store.get(Self.manifest(name)) }
    for name in names.sorted().reversed() { try store.remove(Self.manifest(name)) }
    do { try checkThatNoneNeeds(names) } catch {
      // Meanwhile, another process has made a backup that continues one of these.
      for (object, manifest) in manifests { try store.put(object, manifest) }
      throw error
    }
    let kept = try self.names()
    var content: Set<String> = []
    for name in kept {
      for file in try files(of: name) {
        if let digest = BackedUpFile.contentDigest(file.path) { content.insert("content/\(digest)") }
      }
    }
    let end = now().microseconds - Self.abandonedMicroseconds
    func isOld(_ object: BucketObject) -> Bool { object.stored.map { $0.microseconds < end } ?? false }
    var isMade = false
    try store.list("running/") { page in
      for object in page {
        if isOld(object) { try store.remove(object.name) } else { isMade = true }
      }
    }
    try store.list("data/") { page in
      for object in page {
        let name = BackupName(String(object.name.split(separator: "/").dropFirst().first ?? ""))
        let isOwned = name.map { kept.contains($0) } ?? false
        if !isOwned, isOld(object) || name.map(names.contains) ?? false { try store.remove(object.name) }
      }
    }
    // A backup that is being made may need content that no other backup has.
    guard !isMade else { return }
    try store.list("content/") { page in
      for object in page where isOld(object) {
        let pieces = object.name.lastIndex(of: ".").map { String(object.name[..<$0]) } ?? object.name
        if !content.contains(pieces) { try store.remove(object.name) }
      }
    }
  }

  // MARK: Pieces

  private static let readBytes = 1 << 20

  private func damaged(_ file: BackedUpFile) -> CommandFailure {
    .data("\(file.path) of this backup in \(text) is damaged; restore another backup")
  }

  /// Stores a file in pieces. `produce` passes its bytes to its argument. Returns the file, and the number of bytes
  /// that were stored.
  private func send(
    _ path: String, as object: String, _ produce: (([UInt8]) throws -> Void) throws -> Void
  ) throws -> (BackedUpFile, bytes: Int) {
    let compressor = BackedUpFile.contentDigest(path) == nil ? try Compressor(.zstd) : nil
    var pieces = PieceWriter(pieceBytes) { try store.put("\(object).\($0)", $1) }
    var hash = MessageDigest(.sha256)
    var size = 0
    try produce { bytes in
      bytes.withUnsafeBytes { hash.update($0) }
      size += bytes.count
      try pieces.add(try compressor?.encode(bytes) ?? bytes)
    }
    if let compressor { try pieces.add(try compressor.encode([], isLast: true)) }
    try pieces.finish()
    guard let digest = hash.finish() else { throw DigestedFile.noDigests }
    let file = BackedUpFile(path: path, size: size, digest: Hexadecimal.text(digest), pieceCount: pieces.count)
    return (file, pieces.byteCount)
  }

  /// Passes the bytes of a stored file to `take`.
  /// - Throws: ``CommandFailure`` if the file is missing or damaged, or the error of `take`.
  private func fetch(_ file: BackedUpFile, _ object: String, _ take: ([UInt8]) throws -> Void) throws {
    let decompressor = BackedUpFile.contentDigest(file.path) == nil ? try Decompressor(.zstd) : nil
    var hash = MessageDigest(.sha256)
    var size = 0
    for index in 0..<file.pieceCount {
      guard let piece = try store.get("\(object).\(index)") else {
        throw CommandFailure.data("\(text)\(object).\(index) is missing; restore another backup")
      }
      try forEachPart(of: piece, decompressor, file) { part in
        size += part.count
        guard size <= file.size else { throw damaged(file) }
        part.withUnsafeBytes { hash.update($0) }
        try take(part)
      }
    }
    guard let digest = hash.finish() else { throw DigestedFile.noDigests }
    guard size == file.size, Hexadecimal.text(digest) == file.digest, decompressor?.isComplete ?? true else {
      throw damaged(file)
    }
  }

  private func forEachPart(
    of piece: [UInt8], _ decompressor: Decompressor?, _ file: BackedUpFile, _ take: ([UInt8]) throws -> Void
  ) throws {
    guard let decompressor else { return try take(piece) }
    var position = 0
    while true {
      var failure: CompressionError?
      let part = [UInt8](unsafeUninitializedCapacity: Self.readBytes) { space, count in
        piece.withUnsafeBytes { input in
          do throws(CompressionError) {
            count = try decompressor.decode(input, from: &position, into: UnsafeMutableRawBufferPointer(space))
          } catch { failure = error }
        }
      }
      if failure != nil { throw damaged(file) }
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
