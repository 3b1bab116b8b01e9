import Glibc
import Synchronization

/// One run of `hearth files cp --from`: copies files from a bucket of one server to a bucket of another, with their
/// metadata. Files that the target already has are skipped, so a second run continues a first one.
struct FilesMigration {
  /// The clients of one thread.
  private struct Clients {
    var source: FilesClient
    var target: FilesClient
  }

  private let arguments: Arguments
  private let target: FilesClient
  private let source: FilesClient
  private let from: (bucket: String, name: String)
  private let to: (bucket: String, name: String)
  private let connections: Int

  /// Connects to the servers.
  /// - Throws: ``CommandFailure`` or `StorageError` if an option is invalid or a server cannot be used.
  init(_ arguments: Arguments) throws {
    self.arguments = arguments
    let isStored = arguments.operands.allSatisfy(FileLocation.isStored)
    guard isStored else {
      throw CommandFailure.usage("with --from, both SOURCE and DEST are in buckets; write them as gs://BUCKET/NAME")
    }
    guard !arguments.has("content-type") else {
      throw CommandFailure.usage("'--from' keeps the media types; remove '--content-type'")
    }
    connections = try ConnectedWork.connections(arguments)
    let place = try ServerClient(from: arguments).place
    target = try FilesClient(arguments, makesDirectory: true)
    source = FilesClient(place, project: target.project, Retries())
    from = try FileLocation.stored(arguments.operands[0], bucket: target.bucket)
    to = try FileLocation.stored(arguments.operands[1], bucket: target.bucket)
  }

  /// Copies the files and returns the exit code.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if a file cannot be copied.
  func run() throws -> Int32 {
    defer { target.finish() }
    if arguments.has("make-bucket") { try target.makeBucket(to.bucket) }
    let isQuiet = arguments.has("quiet")
    var progress = Progress(isQuiet: isQuiet)
    defer { progress.clear() }
    let counts = Counts()
    if arguments.has("recursive") {
      let prefix = FileLocation.isFolder(from.name) ? from.name : from.name + "/"
      let targetPrefix = FileLocation.isFolder(to.name) ? to.name : to.name + "/"
      try source.forEachPage(in: from.bucket, prefix: prefix) { page in
        let copies = page.objects.map { object in
          let rest = String(decoding: object.name.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
          return (object: object, name: targetPrefix + rest)
        }
        try copy(copies, counts) { progress.show($0) }
      }
    } else {
      guard !from.name.isEmpty, let object = try source.object(from.name, in: from.bucket) else {
        throw FilesClient.missing(from.name, in: from.bucket)
      }
      let name = FileLocation.isFolder(to.name) ? to.name + FileLocation.lastPart(from.name) : to.name
      try copy([(object, name)], counts) { progress.show($0) }
    }
    progress.clear()
    if !isQuiet { Terminal.output.write("copied \(counts.text)\n") }
    return 0
  }

  /// The files and bytes so far.
  private final class Counts: Sendable {
    private let state = Mutex((files: 0, bytes: 0, skipped: 0))

    func add(bytes: Int) { state.withLock { ($0.files, $0.bytes) = ($0.files + 1, $0.bytes + bytes) } }
    func skip() { state.withLock { $0.skipped += 1 } }

    var text: String {
      let (files, bytes, skipped) = state.withLock { $0 }
      return ByteCount.text(ofFiles: files, bytes) + (skipped > 0 ? ", skipped \(skipped) that are already there" : "")
    }
  }

  private func copy(
    _ copies: [(object: FilesClient.Object, name: String)], _ counts: Counts, show: (String) -> Void
  ) throws {
    let (project, bucket) = (target.project, to.bucket)
    let places = (source.server.place, target.server.place)
    try ConnectedWork.run(
      copies.count, connections: connections,
      connect: {
        Clients(
          source: FilesClient(places.0, project: project, Retries(hasResponded: true)),
          target: FilesClient(places.1, project: project, Retries(hasResponded: true)))
      },
      show: { _ in show("\(counts.text) copied") },
      { index, clients, _, _ in
        try Self.copy(copies[index].object, to: copies[index].name, in: bucket, clients, counts)
      })
  }

  private static func copy(
    _ object: FilesClient.Object, to name: String, in bucket: String, _ clients: Clients, _ counts: Counts
  ) throws {
    if let there = try clients.target.object(name, in: bucket), there.size == object.size,
      there.crc32c == object.crc32c, there.settings == object.settings
    {
      return counts.skip()
    }
    let path = try temporaryFile()
    defer { unlink(path) }
    let file = open(path, O_WRONLY | O_CLOEXEC)
    guard file >= 0 else { throw failure(path) }
    defer { close(file) }
    try clients.source.download(object) { piece in
      do throws(Terminal.WriteFailure) { try Terminal(descriptor: file).writeAll(piece) } catch {
        errno = error.code
        throw failure(path)
      }
    }
    try clients.target.upload(
      LocalSource(path), as: name, in: bucket, type: object.contentType, settings: object.settings, progress: { _ in })
    counts.add(bytes: object.size)
  }

  private static func temporaryFile() throws -> String {
    var template = Array("\(DatabaseChoice.environment("TMPDIR") ?? "/tmp")/hearth-file-XXXXXX".utf8CString)
    let file = mkstemp(&template)
    guard file >= 0 else { throw failure("$TMPDIR") }
    close(file)
    return String(decoding: template.dropLast().map { UInt8(bitPattern: $0) }, as: UTF8.self)
  }

  private static func failure(_ path: String) -> CommandFailure {
    .failed("\(path) cannot be written: \(String(cString: strerror(errno)))")
  }
}
