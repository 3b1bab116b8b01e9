import Files
import Glibc

extension Command {
  /// Copies files into buckets, out of buckets, and between buckets.
  static let filesCopy = Command(
    name: "files cp", summary: "Copies files to a server, from a server, or within a server.", operands: "SOURCE DEST",
    operandCount: 2...2,
    options: FilesClient.options + [
      .flag("recursive", "copy everything below SOURCE to DEST", letter: "r"),
      .value("content-type", "TYPE", "the media type of the stored files (default: guessed from the extension)"),
      .flag("make-bucket", "create the bucket of DEST if it does not exist"),
      .value("from", "URL", "copy from this server, such as https://storage.googleapis.com, with all metadata"),
    ] + DatabaseChoice.sourceCredentialOptions + [
      ConnectedWork.option.withHelp(
        "with --from, the number of files that are copied at the same time (default: "
          + "\(ConnectedWork.connectionsDefault))"),
      .flag("quiet", "show no progress and no summary"),
    ],
    details: """
      A file of the server is written gs://BUCKET/NAME, or gs:///NAME in the default bucket. Anything else is a path
      of this machine. `-` as DEST is standard output. A device or a named pipe is written, not replaced. If DEST is a
      folder or ends with a slash, the file keeps its name. With --recursive, `gs://` denotes all buckets of the
      project. The folder on this machine then contains a folder for each bucket. The verb creates the buckets of such a
      folder on the server.

      With --recursive, everything below SOURCE is copied to the same names below DEST. Symbolic links are skipped,
      and so are names that no file in DEST can have, such as `..`. The verb reports each skipped file, and the exit
      code is then 1.

      Checksums are compared in both directions. Content that is stored compressed (with a Content-Encoding) is copied
      in its stored form. If a connection breaks or the server is too busy, the verb retries for some seconds and
      resumes the transfer where it was interrupted.

      With --from, SOURCE is in a bucket of another Hearth server or of Cloud Storage. The content type, the other
      headers and the custom metadata are kept, with them the tokens of download URLs. Each file is stored in $TMPDIR on
      its way. A file that DEST has already, with equal content and metadata, is skipped: so repeat the command to
      continue after an interruption.
      """,
    examples: [
      ("hearth files cp scan.pdf gs:///patients/ann/documents/", "uploads a file"),
      ("hearth files cp gs:///patients/ann/documents/scan.pdf .", "downloads a file"),
      ("hearth files cp -r ./media gs:///journeys --data ./hearth-data --project demo", "imports a folder"),
      ("hearth files cp -r gs://demo.appspot.com/ ./export", "exports a bucket"),
      ("hearth files cp -r gs:// ./export", "exports all buckets"),
      (
        "hearth files cp -r gs://photos/ gs://photos/ --from https://storage.googleapis.com --from-key my-app.json",
        "from Cloud Storage"
      ),
    ],
    run: { arguments in
      if arguments.has("from") { return try FilesMigration(arguments).run() }
      let copy = try FilesCopy(arguments)
      defer { copy.finish() }
      return try copy.run()
    })
}

/// One run of `hearth files cp`.
private final class FilesCopy {
  private let client: FilesClient
  private let source: FileLocation
  private let destination: FileLocation
  private let contentType: String?
  private let isRecursive: Bool
  private let isQuiet: Bool
  private var progress: Progress
  private var count = 0
  private var bytes = 0
  private var leftOutCount = 0
  /// Whether standard output has the content of the file.
  private var writesOutput = false

  init(_ arguments: Arguments) throws {
    // Only an upload may create the data directory.
    let isImport = !FileLocation.isStored(arguments.operands[0])
    client = try FilesClient(arguments, makesDirectory: isImport)
    source = try FileLocation(arguments.operands[0], bucket: client.bucket)
    destination = try FileLocation(arguments.operands[1], bucket: client.bucket)
    contentType = arguments.value("content-type")
    isRecursive = arguments.has("recursive")
    isQuiet = arguments.has("quiet")
    progress = Progress(isQuiet: isQuiet)
    client.retries.onPause = { [unowned self] milliseconds, reason in
      let tenths = milliseconds % 1000 / 100
      let seconds = tenths == 0 ? "\(milliseconds / 1000)" : "\(milliseconds / 1000).\(tenths)"
      progress.showNow("\(ByteCount.text(ofFiles: count, bytes)) copied; retrying in \(seconds) s: \(reason)")
    }
    if case .stored(let bucket, _) = destination, arguments.has("make-bucket") { try client.makeBucket(bucket) }
  }

  func finish() {
    progress.clear()
    client.finish()
  }

  /// Copies the files and returns the exit code.
  /// - Throws: ``CommandFailure`` or `HTTPClientError` if a file cannot be copied.
  func run() throws -> Int32 {
    switch (source, destination) {
    case (.local(let path), .stored(let bucket, let name)):
      if isRecursive { try importFolder(path, bucket, name) } else { try upload(path, bucket, name) }
    case (.stored(let bucket, let name), .local(let path)):
      if isRecursive { try exportFolder(bucket, name, path) } else { try download(bucket, name, path) }
    case (.stored(let bucket, let name), .stored(let other, let target)):
      if isRecursive { try copyAll(bucket, name, other, target) } else { try copy(bucket, name, other, target) }
    case (.buckets, .local(let path)):
      try requireRecursive()
      try exportBuckets(path)
    case (.local(let path), .buckets):
      try requireRecursive()
      try importBuckets(path)
    case (.buckets, _), (_, .buckets):
      throw CommandFailure.usage("'gs://' denotes all buckets, and can be copied only to or from a folder")
    case (.local, .local):
      throw CommandFailure.usage("neither SOURCE nor DEST is a file of a server; write one of them as gs://BUCKET/NAME")
    }
    progress.clear()
    if !isQuiet, !writesOutput {
      Terminal.output.write("copied \(ByteCount.text(ofFiles: count, bytes))\n")
    }
    return leftOutCount == 0 ? 0 : ExitCode.failure
  }

  // MARK: One file

  private func upload(_ path: String, _ bucket: String, _ name: String) throws {
    let target = FileLocation.isFolder(name) ? name + FileLocation.lastPart(path) : name
    do throws(FilesError) { _ = try ObjectName(checking: bucket, target) } catch {
      throw CommandFailure.usage("gs://\(bucket)/\(target): \(Self.reason(error))")
    }
    try send(LocalSource(path), bucket, target)
  }

  private func download(_ bucket: String, _ name: String, _ path: String) throws {
    guard !name.isEmpty else {
      throw CommandFailure.usage("'gs://\(bucket)/' is a bucket; name a file in it, or add --recursive")
    }
    guard let object = try client.object(name, in: bucket) else { throw FilesClient.missing(name, in: bucket) }
    guard path != "-" else { return try writeOut(object, to: nil) }
    guard !FileLocation.isFolder(path), !Self.isFolder(path) else {
      return try receive(object, in: path, FileLocation.lastPart(name))
    }
    switch try OutputTarget(path) {
    case .file(let file): try receive(object, in: LocalPath.folder(of: file), FileLocation.lastPart(file))
    case .inPlace(let place): try writeOut(object, to: place)
    case .standardOutput: try writeOut(object, to: nil)
    }
  }

  /// Writes the content to a device or a pipe, or to standard output.
  private func writeOut(_ object: FilesClient.Object, to place: String?) throws {
    writesOutput = place == nil
    let output = try OutputFile(place)
    try client.download(object) { try output.write($0) }
    try output.finish()
    note(object.size)
  }

  private func receive(_ object: FilesClient.Object, in folder: String, _ name: String) throws {
    do { try receive(object, TargetFolder(folder), name) } catch let error as TargetFolder.UnusableName {
      throw CommandFailure.failed("\(folder)/\(name): \(error.reason)")
    }
  }

  private func copy(_ bucket: String, _ name: String, _ other: String, _ target: String) throws {
    guard let object = try client.object(name, in: bucket) else { throw FilesClient.missing(name, in: bucket) }
    try client.copy(
      object, to: FileLocation.isFolder(target) ? target + FileLocation.lastPart(name) : target, in: other)
    note(object.size)
  }

  private static func isFolder(_ path: String, follows: Bool = true) -> Bool {
    var status = stat()
    let result = follows ? stat(path, &status) : lstat(path, &status)
    return result == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  // MARK: Folders

  private func importFolder(_ path: String, _ bucket: String, _ name: String) throws {
    guard Self.isFolder(path) else { throw CommandFailure.data("\(path) is not a folder; remove --recursive") }
    let prefix = Self.prefix(name)
    try FolderIterator.forEach(below: path) { entry in
      switch entry {
      case .leftOut(let path, let reason): leaveOut(path, reason)
      case .file(let path, let name):
        do throws(FilesError) { _ = try ObjectName(checking: bucket, prefix + name) } catch {
          return leaveOut(path, Self.reason(error))
        }
        try send(LocalSource(path, follows: false), bucket, prefix + name)
      }
    }
  }

  private func exportFolder(_ bucket: String, _ name: String, _ path: String) throws {
    let prefix = Self.prefix(name)
    var target: TargetFolder?
    try client.forEachPage(in: bucket, prefix: prefix) { page in
      // Create the folder only now, when the bucket is known to exist.
      let folder = try target ?? TargetFolder(path)
      target = folder
      for object in page.objects {
        let name = String(decoding: object.name.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
        do {
          if object.size == 0, FileLocation.isFolder(name) {
            // An empty object whose name ends with a slash: consoles create it for an empty folder.
            if !name.isEmpty { try folder.makeFolder(String(Substring(name.utf8.dropLast()))) }
          } else {
            try receiveNewest(object, folder, name)
          }
        } catch let error as TargetFolder.UnusableName { leaveOut(object.text, error.reason) }
      }
    }
    try requireSome(bucket, prefix)
  }

  private func requireRecursive() throws {
    guard isRecursive else { throw CommandFailure.usage("'gs://' denotes all buckets; add --recursive") }
  }

  private func exportBuckets(_ path: String) throws {
    let folder = try TargetFolder(path)
    for bucket in try client.buckets() {
      try folder.makeFolder(bucket)
      try exportFolder(bucket, "", "\(path)/\(bucket)")
    }
  }

  private func importBuckets(_ path: String) throws {
    for bytes in try FolderIterator.names(in: path) {
      let bucket = String(decoding: bytes, as: UTF8.self)
      let folder = "\(path)/\(bucket)"
      guard ObjectName.isBucket(bucket), Self.isFolder(folder, follows: false) else {
        leaveOut(folder, "it is not a folder with the name of a bucket")
        continue
      }
      try client.makeBucket(bucket)
      try importFolder(folder, bucket, "")
    }
  }

  private func copyAll(_ bucket: String, _ name: String, _ other: String, _ target: String) throws {
    let (prefix, targetPrefix) = (Self.prefix(name), Self.prefix(target))
    guard bucket != other || !targetPrefix.utf8.starts(with: prefix.utf8) else {
      throw CommandFailure.usage(
        "gs://\(other)/\(targetPrefix) is below gs://\(bucket)/\(prefix): choose a DEST outside SOURCE")
    }
    try client.forEachPage(in: bucket, prefix: prefix) { page in
      for object in page.objects {
        let rest = String(decoding: object.name.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
        try client.copy(object, to: targetPrefix + rest, in: other)
        note(object.size)
      }
    }
    try requireSome(bucket, prefix)
  }

  /// Throws if a folder has no files, because its name is probably misspelled. A bucket may be empty.
  private func requireSome(_ bucket: String, _ prefix: String) throws {
    guard count == 0, leftOutCount == 0, !prefix.isEmpty else { return }
    throw CommandFailure.failed("no files exist below gs://\(bucket)/\(prefix)")
  }

  /// Returns the prefix of the names below a folder.
  private static func prefix(_ name: String) -> String { FileLocation.isFolder(name) ? name : name + "/" }

  // MARK: Content

  private func send(_ source: LocalSource, _ bucket: String, _ name: String) throws {
    let type = contentType ?? ContentTypes.type(ofFile: name)
    try client.upload(source, as: name, in: bucket, type: type) { self.show(more: $0) }
    note(source.size)
  }

  private func receive(_ object: FilesClient.Object, _ folder: TargetFolder, _ name: String) throws {
    let file = try folder.makeFile(name)
    var received = 0
    try client.download(object) { piece in
      try file.write(piece)
      received += piece.count
      show(more: received)
    }
    try file.finish()
    note(object.size)
  }

  /// Downloads a listed object. If it was replaced since it was listed, downloads its newest version.
  private func receiveNewest(_ listed: FilesClient.Object, _ folder: TargetFolder, _ name: String) throws {
    var object = listed
    for _ in 0..<8 {
      do { return try receive(object, folder, name) } catch {
        if error is TargetFolder.UnusableName { throw error }
        // An object that was removed since it was listed is not part of the copy.
        guard let now = try client.object(listed.name, in: listed.bucket) else { return }
        if now.generation == object.generation { throw error }
        object = now
      }
    }
    throw CommandFailure.failed("\(listed.text) changes faster than it can be copied; copy it again later")
  }

  private func note(_ size: Int) {
    count += 1
    bytes += size
    show(more: 0)
  }

  private func show(more: Int) { progress.show("\(ByteCount.text(ofFiles: count, bytes + more)) copied") }

  private func leaveOut(_ what: String, _ reason: String) {
    leftOutCount += 1
    progress.clear()
    Terminal.error.write("hearth: skipped \(TerminalText.line("\(what): \(reason)"))\n")
  }

  private static func reason(_ error: FilesError) -> String {
    if case .invalidName(let reason) = error { return reason }
    return String(describing: error)
  }
}
