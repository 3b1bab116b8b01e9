import Glibc

/// The directory and the files of a configuration that no client may read.
struct PrivatePaths {
  private let dataDirectory: String?
  /// The files with secrets, and what each contains.
  private var files: [(path: String, content: String)] = []

  /// Collects the paths.
  init(_ configuration: HearthConfiguration) {
    if case .directory(let path) = configuration.storage { dataDirectory = path } else { dataDirectory = nil }
    if let tls = configuration.tls { files.append((tls.key, "the private key of the TLS certificate")) }
    if let folder = configuration.folder { files.append((folder, "the configuration of the project")) }
    for path in configuration.accounts.secretFiles {
      files.append((path, "the secret of a sign-in provider"))
    }
  }

  /// Requires that a folder with public files contains nothing private and is not part of the data directory. Links are
  /// resolved first.
  ///
  /// Besides what clients could read: a process that closes a database file loses its locks on it (POSIX, `fcntl`), so
  /// the server must never open one as a public file.
  /// - Throws: ``HearthError/configuration(_:)`` with the path to move.
  func requireApart(from folder: String, _ place: String) throws(HearthError) {
    guard let real = Self.real(folder) else { return }
    if let dataDirectory, let data = Self.real(dataDirectory) {
      guard !Self.contains(real, data) else {
        throw .configuration(
          "\(place): every client could read the data directory \(dataDirectory), because the folder \(folder) "
            + "contains it; publish a folder that only contains the app, or move the data directory")
      }
      guard !Self.contains(data, real) else {
        throw .configuration(
          "\(place): the folder \(folder) must not be inside the data directory \(dataDirectory); move it elsewhere")
      }
    }
    for (path, content) in files {
      guard let file = Self.real(path), Self.contains(real, file) else { continue }
      throw .configuration(
        "\(place): every client could read \(path), \(content), because the folder \(folder) contains it; move the "
          + "file elsewhere")
    }
  }

  /// Whether a path is a folder or is below it. Both are real paths.
  private static func contains(_ folder: String, _ path: String) -> Bool {
    path == folder || path.utf8.starts(with: (folder == "/" ? folder : folder + "/").utf8)
  }

  /// Returns the absolute path without links, or `nil` if nothing exists at a path.
  private static func real(_ path: String) -> String? {
    guard let text = realpath(path, nil) else { return nil }
    defer { free(text) }
    return String(cString: text)
  }
}
