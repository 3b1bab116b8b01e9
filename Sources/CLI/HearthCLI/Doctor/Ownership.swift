import Files
import Glibc

/// Checks the owners of the files in a data directory. Files that root created in the directory of another user belong
/// to root, so a server that runs as that user cannot open them.
struct Ownership {
  /// The data directory.
  let path: String
  /// The owner of the directory.
  let owner: uid_t

  /// The maximum number of files and folders to check.
  private static let entriesMax = 20_000

  /// Returns the name of a user, or the number if the user has no name.
  static func name(of user: uid_t) -> String {
    guard let entry = getpwuid(user), let name = entry.pointee.pw_name else { return "user \(user)" }
    return String(cString: name)
  }

  /// The user that probably runs the server: root if everything in the directory belongs to root, as in a container
  /// with a directory of its host; otherwise the owner.
  let server: uid_t
  /// The first file or folder in the directory that does not belong to the server's user.
  private let stranger: (file: String, user: uid_t)?

  /// Reads the owners of the files.
  init(path: String, owner: uid_t) {
    self.path = path
    self.owner = owner
    let (first, isMixed) = Self.strangers(in: path, owner)
    server = first?.user == 0 && !isMixed ? 0 : owner
    // Root can open every file.
    stranger = server == 0 ? nil : first
  }

  /// Returns the findings about owners, which are empty if all owners are correct.
  func findings() -> [Finding] {
    let topic = "owner"
    let name = Self.name(of: server)
    var findings: [Finding] = []
    if let (file, other) = stranger {
      findings.append(
        .problem(
          topic, "\(file) belongs to \(Self.name(of: other)), but the directory belongs to \(name)",
          "As root: chown -R \(name): \(path)"))
    }
    if server != owner {
      let host = Self.name(of: owner)
      let text = "\(path) belongs to \(host), but its content to root: only a server that runs as root can use it"
      findings.append(.warning(topic, text, "Unless the server runs as root, do as root: chown -R \(host): \(path)"))
    }
    let user = geteuid()
    if user != server {
      let text = "\(path) belongs to \(name), who cannot use files that \(Self.name(of: user)) creates in it"
      findings.append(
        .warning(topic, "\(text); its content was not checked", "Run as its owner: sudo -u \(name) hearth doctor …"))
    }
    return findings
  }

  /// Returns the first file or folder in a directory that does not belong to its owner, and whether there are several
  /// owners. Ignores the folder `lost+found`, which the file system creates.
  private static func strangers(
    in path: String, _ owner: uid_t
  ) -> (first: (file: String, user: uid_t)?, isMixed: Bool) {
    guard owner != 0 else { return (nil, false) }
    var (waiting, seen) = ([path], 0)
    var first: (file: String, user: uid_t)?
    var users: Set<uid_t> = []
    while let folder = waiting.popLast() {
      for name in ContentDirectory.names(in: folder).sorted() where folder != path || name != "lost+found" {
        seen += 1
        guard seen <= entriesMax else { return (first, users.count > 1) }
        let file = "\(folder)/\(name)"
        var status = stat()
        guard lstat(file, &status) == 0 else { continue }
        users.insert(status.st_uid)
        if first == nil, status.st_uid != owner { first = (file, status.st_uid) }
        if first != nil, users.count > 1 { return (first, true) }
        if status.st_mode & S_IFMT == S_IFDIR { waiting.append(file) }
      }
    }
    return (first, false)
  }
}
