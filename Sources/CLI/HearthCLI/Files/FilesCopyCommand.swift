import Files
import Glibc

extension Command {
  /// Copies files into buckets, out of them, and between them.
  static let filesCopy = Command(
    name: "files cp", summary: "Copies files to a server, from it, or on it.", operands: "SOURCE DEST",
    operandCount: 2...2,
    options: FilesClient.options + [
      .flag("recursive", "everything below SOURCE, to below DEST", letter: "r"),
      .value("content-type", "TYPE", "the media type of what is stored (default: guessed by the name's ending)"),
      .flag("make-bucket", "make the bucket of DEST where there is none"),
      .flag("quiet", "no progress and no summary"),
    ],
    details: """
      A file of the server is written gs://BUCKET/NAME, and gs:///NAME in the default bucket; anything else is a path of
      this machine. `-` as DEST is standard output. Where DEST is a folder, or ends with a slash, the file keeps its name.

      With --recursive a folder is imported or exported: what lies below SOURCE comes to lie below DEST under the same
      names. Symbolic links are left out, and so are names that no file in DEST can have, such as `..`; each is told, and
      the exit code is 1 then. Checksums are compared both ways. Content that is stored compressed (with a
      Content-Encoding) is copied as it is stored.

      Where a connection breaks or the server is too busy, it is tried again for some seconds, and goes on where it was.
      """,
    examples: [
      ("hearth files cp scan.pdf gs:///patients/ann/documents/", ""),
      ("hearth files cp gs:///patients/ann/documents/scan.pdf .", ""),
      ("hearth files cp -r ./media gs:///journeys --data ./hearth-data --project demo", "imports a folder"),
      ("hearth files cp -r gs://demo.appspot.com/ ./export", "exports a bucket"),
    ],
    run: { arguments in
      let copy = try FilesCopy(arguments)
      defer { copy.finish() }
      return try copy.run()
    })
}

/// One run of `hearth files cp`.
private final class FilesCopy {
  private let client: FilesClient
  private let source: FilePlace
  private let destination: FilePlace
  private let contentType: String?
  private let isRecursive: Bool
  private let isQuiet: Bool
  private var progress: Progress
  private var count = 0
  private var bytes = 0
  private var leftOutCount = 0

  init(_ arguments: Arguments) throws {
    // Names are read before anything is opened; the bucket may still be the client's to say.
    let isImport = !FilePlace.isStored(arguments.operands[0])
    client = try FilesClient(arguments, makesDirectory: isImport)
    source = try FilePlace(arguments.operands[0], bucket: client.bucket)
    destination = try FilePlace(arguments.operands[1], bucket: client.bucket)
    contentType = arguments.value("content-type")
    isRecursive = arguments.has("recursive")
    isQuiet = arguments.has("quiet")
    progress = Progress(isQuiet: isQuiet)
    client.retries.tell = { [unowned self] milliseconds, reason in
      let tenths = milliseconds % 1000 / 100
      let seconds = tenths == 0 ? "\(milliseconds / 1000)" : "\(milliseconds / 1000).\(tenths)"
      progress.showNow("\(ByteCount.text(ofFiles: count, bytes)) copied; going on in \(seconds) s: \(reason)")
    }
    if case .stored(let bucket, _) = destination, arguments.has("make-bucket") { try client.makeBucket(bucket) }
  }

  func finish() {
    progress.clear()
    client.finish()
  }

  /// Copies; returns the exit code.
  func run() throws -> Int32 {
    switch (source, destination) {
    case (.local(let path), .stored(let bucket, let name)):
      if isRecursive { try importFolder(path, bucket, name) } else { try upload(path, bucket, name) }
    case (.stored(let bucket, let name), .local(let path)):
      if isRecursive { try exportFolder(bucket, name, path) } else { try download(bucket, name, path) }
    case (.stored(let bucket, let name), .stored(let other, let target)):
      if isRecursive { try copyAll(bucket, name, other, target) } else { try copy(bucket, name, other, target) }
    case (.local, .local):
      throw CommandFailure.usage("neither is a file of a server; write one of them as gs://BUCKET/NAME")
    }
    progress.clear()
    if !isQuiet, destination != .local("-") {
      Terminal.output.write("copied \(ByteCount.text(ofFiles: count, bytes))\n")
    }
    return leftOutCount == 0 ? 0 : ExitCode.failure
  }

  // MARK: One file

  private func upload(_ path: String, _ bucket: String, _ name: String) throws {
    let target = FilePlace.isFolder(name) ? name + FilePlace.lastPart(path) : name
    do throws(FilesError) { _ = try ObjectName(checking: bucket, target) } catch {
      throw CommandFailure.usage("gs://\(bucket)/\(target): \(Self.reason(error))")
    }
    try send(LocalSource(path), bucket, target)
  }

  private func download(_ bucket: String, _ name: String, _ path: String) throws {
    guard !name.isEmpty else { throw CommandFailure.usage("name a file of the bucket, or add --recursive") }
    guard let object = try client.object(name, in: bucket) else { throw FilesClient.missing(name, in: bucket) }
    if path == "-" { return try client.download(object) { Terminal.output.write($0) } }
    var folder = path
    var last = FilePlace.lastPart(name)
    if !FilePlace.isFolder(path), !Self.isFolder(path) {
      folder = LocalPath.folder(of: path)
      last = FilePlace.lastPart(path)
    }
    let target = try TargetFolder(folder)
    do { try receive(object, target, last) } catch let error as TargetFolder.UnusableName {
      throw CommandFailure.failed("\(folder)/\(last): \(error.reason)")
    }
  }

  private func copy(_ bucket: String, _ name: String, _ other: String, _ target: String) throws {
    guard let object = try client.object(name, in: bucket) else { throw FilesClient.missing(name, in: bucket) }
    try client.copy(object, to: FilePlace.isFolder(target) ? target + FilePlace.lastPart(name) : target, in: other)
    note(object.size)
  }

  private static func isFolder(_ path: String) -> Bool {
    var status = stat()
    return stat(path, &status) == 0 && status.st_mode & S_IFMT == S_IFDIR
  }

  // MARK: Folders

  private func importFolder(_ path: String, _ bucket: String, _ name: String) throws {
    guard Self.isFolder(path) else { throw CommandFailure.data("\(path) is no folder; leave out --recursive") }
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
      // Nothing is made for a bucket that is not there.
      let folder = try target ?? TargetFolder(path)
      target = folder
      for object in page.objects {
        let name = String(decoding: object.name.utf8.dropFirst(prefix.utf8.count), as: UTF8.self)
        do {
          if object.size == 0, FilePlace.isFolder(name) {
            // What stands for an empty folder in consoles.
            if !name.isEmpty { try folder.makeFolder(String(Substring(name.utf8.dropLast()))) }
          } else {
            try receiveNewest(object, folder, name)
          }
        } catch let error as TargetFolder.UnusableName { leaveOut(object.text, error.reason) }
      }
    }
    try requireSome(bucket, prefix)
  }

  private func copyAll(_ bucket: String, _ name: String, _ other: String, _ target: String) throws {
    let (prefix, targetPrefix) = (Self.prefix(name), Self.prefix(target))
    guard bucket != other || !targetPrefix.utf8.starts(with: prefix.utf8) else {
      throw CommandFailure.usage("gs://\(other)/\(targetPrefix) lies below gs://\(bucket)/\(prefix): that has no end")
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

  /// A bucket may be empty; a folder of no files is most likely misspelt.
  private func requireSome(_ bucket: String, _ prefix: String) throws {
    guard count == 0, leftOutCount == 0, !prefix.isEmpty else { return }
    throw CommandFailure.failed("there are no files below gs://\(bucket)/\(prefix)")
  }

  /// What the names below a folder begin with.
  private static func prefix(_ name: String) -> String { FilePlace.isFolder(name) ? name : name + "/" }

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

  /// As ``receive(_:_:_:)``; an object that was replaced since it was listed is fetched as it is now.
  private func receiveNewest(_ listed: FilesClient.Object, _ folder: TargetFolder, _ name: String) throws {
    var object = listed
    for _ in 0..<8 {
      do { return try receive(object, folder, name) } catch {
        if error is TargetFolder.UnusableName { throw error }
        // One that went away meanwhile is none of the bucket's files.
        guard let now = try client.object(listed.name, in: listed.bucket) else { return }
        if now.generation == object.generation { throw error }
        object = now
      }
    }
    throw CommandFailure.failed("\(listed.text) changes faster than it can be copied")
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
    Terminal.error.write("hearth: left out \(TerminalText.line("\(what): \(reason)"))\n")
  }

  private static func reason(_ error: FilesError) -> String {
    if case .invalidName(let reason) = error { return reason }
    return String(describing: error)
  }
}
