import Basics
import Digests
import Glibc

/// The secret of a cluster, with which its nodes prove to each other that they belong to it. PostgreSQL has only a
/// check value of it.
package struct ClusterKey: Equatable, Sendable {
  /// The size of a key.
  package static let byteCount = 32
  /// The places of the key file if no option names one, in the order in which they are tried.
  package static let defaultPaths = ["cluster.key", "/etc/hearth/cluster.key"]
  private static let header = "hearth cluster key 1"
  /// The longest text that is read from a key file, in bytes.
  private static let fileBytesMax = 1024

  package let bytes: [UInt8]

  /// Makes a random key.
  package init() {
    var generator = SystemRandomNumberGenerator()
    bytes = (0..<Self.byteCount).map { _ in UInt8.random(in: 0...255, using: &generator) }
  }

  /// Creates a key, or returns `nil` if it does not have 32 bytes.
  package init?(_ bytes: [UInt8]) {
    guard bytes.count == Self.byteCount else { return nil }
    self.bytes = bytes
  }

  /// A value of 32 bytes that tells whether two keys are the same, and nothing about a key: its HMAC-SHA256 of a
  /// constant.
  /// - Throws: ``ClusterKeyFailure/noDigest`` if libcrypto fails.
  package func check() throws(ClusterKeyFailure) -> [UInt8] {
    try derive("hearth cluster key check 1")
  }

  /// Returns a secret of 32 bytes for a purpose: the HMAC-SHA256 of its name. Secrets of different purposes are unrelated.
  /// - Throws: ``ClusterKeyFailure/noDigest`` if libcrypto fails.
  package func derive(_ purpose: String) throws(ClusterKeyFailure) -> [UInt8] {
    guard let code = MessageAuthentication.sha256(Array(purpose.utf8), key: bytes) else { throw .noDigest }
    return code
  }

  // MARK: The file

  /// The text of the key file: a line that names its content, and a line with the key as 64 hexadecimal digits.
  package var fileText: String { "\(Self.header)\n\(Hexadecimal.text(bytes))\n" }

  /// Reads the key from a file, or from the first of ``defaultPaths`` that exists. Returns it with its path.
  /// - Throws: ``ClusterKeyFailure`` if no file exists, others may read it, or it does not contain a key.
  package static func read(_ path: String?) throws(ClusterKeyFailure) -> (key: ClusterKey, path: String) {
    for path in path.map({ [$0] }) ?? defaultPaths {
      if let key = try readFile(path) { return (key, path) }
    }
    throw .missing(path.map { [$0] } ?? defaultPaths)
  }

  /// Returns the key of a file, or `nil` if the file does not exist.
  private static func readFile(_ path: String) throws(ClusterKeyFailure) -> ClusterKey? {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK)
    guard descriptor >= 0 else {
      if errno == ENOENT { return nil }
      throw .system("open", path, errno)
    }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0 else { throw .system("fstat", path, errno) }
    guard status.st_mode & S_IFMT == S_IFREG else { throw .notAKey(path) }
    // A file of root may be readable for the group of the service, which cannot change it.
    let refused: mode_t = status.st_uid == 0 && geteuid() != 0 ? 0o037 : 0o077
    guard status.st_mode & refused == 0 else { throw .exposed(path) }
    var text = [UInt8](repeating: 0, count: fileBytesMax + 1)
    let count = Glibc.read(descriptor, &text, text.count)
    guard count >= 0 else { throw .system("read", path, errno) }
    let lines = String(decoding: text[..<max(0, count)], as: UTF8.self).split(whereSeparator: \.isNewline)
    guard count <= fileBytesMax, lines.count == 2, lines[0] == header, let bytes = Hexadecimal.bytes(lines[1]) else {
      throw .notAKey(path)
    }
    guard let key = ClusterKey(bytes) else { throw .wrongLength(path, bytes.count) }
    return key
  }

  /// Writes a new file that only its owner may read, and waits until it is on disk.
  /// - Throws: ``ClusterKeyFailure/exists(_:)``, ``ClusterKeyFailure/system(_:_:_:)``. No file remains then.
  package func write(to path: String) throws(ClusterKeyFailure) {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
    guard descriptor >= 0 else {
      if errno == EEXIST { throw .exists(path) }
      throw .system("open", path, errno)
    }
    var code: Int32 = 0
    let text = Array(fileText.utf8)
    if fchmod(descriptor, 0o600) != 0 || Glibc.write(descriptor, text, text.count) != text.count
      || fsync(descriptor) != 0
    {
      code = errno
    }
    close(descriptor)
    if code == 0 { code = DurableFile.syncFolder(of: path) }
    guard code == 0 else {
      unlink(path)
      throw .system("write", path, code)
    }
  }
}

/// The reason why a key file cannot be used.
package enum ClusterKeyFailure: Error, Equatable, Sendable {
  /// None of these files exists.
  case missing([String])
  /// Users other than its owner may read or change the file.
  case exposed(String)
  /// The file does not have the form of a key file.
  case notAKey(String)
  /// The key has this number of bytes.
  case wrongLength(String, Int)
  /// The file exists already. A new key would lock out the nodes that have it.
  case exists(String)
  /// A system call failed: its name, the path and `errno`.
  case system(String, String, Int32)
  /// libcrypto cannot compute HMAC-SHA256.
  case noDigest
}

extension ClusterKeyFailure: CustomStringConvertible {
  /// A text for operators: the failure and the remedy.
  package var description: String {
    switch self {
    case .missing(let paths):
      "no key of the cluster: \(paths.joined(separator: " and ")) \(paths.count == 1 ? "does" : "do") not exist; copy "
        + "the file that `hearth cluster init` wrote, and name it with --cluster-key"
    case .exposed(let path): "\(path) can be read by other users; run: chmod 600 \(path)"
    case .notAKey(let path): "\(path) is not a key of a cluster, such as `hearth cluster init` writes"
    case .wrongLength(let path, let count):
      "\(path) has a key of \(count) bytes instead of \(ClusterKey.byteCount); copy the file again"
    case .exists(let path):
      "\(path) exists already; it may be the key of another cluster, so it is not replaced: name another file with --key"
    case .system(let operation, let path, let code): "\(operation) \(path): \(String(cString: strerror(code)))"
    case .noDigest: "libcrypto cannot compute HMAC-SHA256"
    }
  }
}
