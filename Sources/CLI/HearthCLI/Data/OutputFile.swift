import Compression
import Glibc

/// The output of a verb: standard output, a file that gets its name when it is complete and on disk, or a device, pipe
/// or socket, which is written in place.
final class OutputFile {
  /// The name of the file, without symbolic links; `nil` if the output is not a file that gets a name.
  let path: String?
  /// The output, for messages.
  private let text: String
  private let unfinished: UnfinishedOutput?
  private let descriptor: Int32
  private let compressor: Compressor?
  private var isFinished = false

  /// Starts the output. If the folder of the file is not new, removes what killed processes left for the same file.
  /// Opening a named pipe waits for its reader.
  /// - Throws: ``CommandFailure`` if the output cannot be written.
  init(_ path: String?, compression: CompressionFormat? = nil, inNewFolder isNew: Bool = false) throws {
    compressor = try compression.map { try Compressor($0) }
    text = path ?? "standard output"
    let target = try path.map { isNew ? .file($0) : try OutputTarget($0) } ?? .standardOutput
    switch target {
    case .standardOutput: (self.path, unfinished, descriptor) = (nil, nil, STDOUT_FILENO)
    case .inPlace(let place):
      (self.path, unfinished) = (nil, nil)
      descriptor = open(place, O_WRONLY | O_NOCTTY | O_CLOEXEC)
    case .file(let file):
      let unfinished = UnfinishedOutput(of: file, inNewFolder: isNew)
      (self.path, self.unfinished) = (file, unfinished)
      descriptor = open(unfinished.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    }
    guard descriptor >= 0 else { throw failure("cannot be written") }
    if !isNew { unfinished?.lock() }
  }

  deinit {
    guard descriptor >= 0, descriptor != STDOUT_FILENO else { return }
    close(descriptor)
    if let unfinished, !isFinished { unlink(unfinished.path) }
  }

  /// Appends bytes, compressed if the file is.
  /// - Throws: ``CommandFailure`` if the output cannot be written.
  func write(_ bytes: [UInt8]) throws {
    try append(compressor?.encode(bytes) ?? bytes)
  }

  private func append(_ bytes: [UInt8]) throws {
    guard descriptor != STDOUT_FILENO else { return Terminal.output.write(bytes) }
    do throws(Terminal.WriteFailure) {
      try Terminal(descriptor: descriptor).writeAll(bytes)
    } catch {
      errno = error.code
      throw failure("cannot be written")
    }
  }

  /// Ends the output. Syncs a file and gives it its name.
  /// - Throws: ``CommandFailure`` if that fails.
  func finish() throws {
    if let compressor { try append(compressor.encode([], isLast: true)) }
    guard let path, let unfinished else { return }
    guard fsync(descriptor) == 0, rename(unfinished.path, path) == 0 else { throw failure("cannot be finished") }
    isFinished = true
  }

  private func failure(_ what: String) -> CommandFailure {
    .failed("\(text) \(what): \(String(cString: strerror(errno)))")
  }
}

/// The way in which a verb writes to a path that the command line names.
enum OutputTarget: Equatable {
  case standardOutput
  /// A file that exists or not. The path contains the target of a symbolic link, so that a rename replaces the target
  /// and not the link.
  case file(String)
  /// A device, a named pipe or a socket. A rename would replace it by a regular file, so it is opened and written.
  case inPlace(String)

  private static let linksMax = 40

  /// Examines a path. Another name of standard output, such as `/dev/stdout`, is standard output.
  /// - Throws: ``CommandFailure`` if the path is a folder, or a symbolic link cannot be followed.
  init(_ path: String) throws {
    var status = stat()
    var output = stat()
    if stat(path, &status) == 0 {
      if fstat(STDOUT_FILENO, &output) == 0, output.st_dev == status.st_dev, output.st_ino == status.st_ino {
        self = .standardOutput
        return
      }
      switch status.st_mode & S_IFMT {
      case S_IFREG: break
      case S_IFDIR: throw CommandFailure.failed("\(path) is a folder; name a file")
      default:
        self = .inPlace(path)
        return
      }
    } else if errno != ENOENT {
      throw Self.failure(path)
    }
    self = .file(try Self.withoutLink(path))
  }

  /// Returns the path of the file to which symbolic links lead. The file need not exist.
  private static func withoutLink(_ path: String) throws -> String {
    var path = path
    for _ in 0..<linksMax {
      var buffer = [CChar](repeating: 0, count: Int(PATH_MAX))
      let count = readlink(path, &buffer, buffer.count)
      guard count >= 0 else {
        // The path is not a link, or does not exist.
        guard errno == EINVAL || errno == ENOENT else { throw failure(path) }
        return path
      }
      let link = String(decoding: buffer[..<count].map { UInt8(bitPattern: $0) }, as: UTF8.self)
      path = link.utf8.first == FileLocation.slash ? link : "\(LocalPath.folder(of: path))/\(link)"
    }
    errno = ELOOP
    throw failure(path)
  }

  private static func failure(_ path: String) -> CommandFailure {
    .failed("\(path) cannot be written: \(String(cString: strerror(errno)))")
  }
}
