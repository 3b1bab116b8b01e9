import Files
import Glibc

/// Whose things of a data directory are. What root made in a directory of another user stays root's: the server, which
/// runs as that user, can then not open it.
struct Ownership {
  /// The data directory.
  let path: String
  /// The user whose the directory is.
  let owner: uid_t

  /// Things that are looked at, at most.
  private static let entriesMax = 20_000

  /// A user's name, or number where there is none.
  static func name(of user: uid_t) -> String {
    guard let entry = getpwuid(user), let name = entry.pointee.pw_name else { return "user \(user)" }
    return String(cString: name)
  }

  /// Who a server that uses the directory runs as, as far as it shows: root, where all in it is root's, as in a
  /// container that was given a directory of its host; else the owner.
  let server: uid_t
  /// The first thing in the directory that is not the server's.
  private let stranger: (file: String, user: uid_t)?

  /// Looks at whose things are.
  init(path: String, owner: uid_t) {
    self.path = path
    self.owner = owner
    let (first, isMixed) = Self.strangers(in: path, owner)
    server = first?.user == 0 && !isMixed ? 0 : owner
    // Root overrules whose things are.
    stranger = server == 0 ? nil : first
  }

  /// What is wrong with whose they are; empty where all is as it should be.
  func findings() -> [Finding] {
    let topic = "owner"
    let name = Self.name(of: server)
    var findings: [Finding] = []
    if let (file, other) = stranger {
      findings.append(
        .problem(
          topic, "\(file) belongs to \(Self.name(of: other)), and the directory to \(name), who cannot use it",
          "As root: chown -R \(name): \(path)"))
    }
    if server != owner {
      let host = Self.name(of: owner)
      let text = "\(path) belongs to \(host), and all in it to root: only a server that runs as root can use it"
      findings.append(.warning(topic, text, "Leave it so where that is meant; else as root: chown -R \(host): \(path)"))
    }
    let user = geteuid()
    if user != server {
      let text = "\(path) belongs to \(name): what \(Self.name(of: user)) makes in it, \(name) cannot use"
      findings.append(.warning(topic, "\(text); it was not looked into", "sudo -u \(name) hearth doctor …"))
    }
    return findings
  }

  /// The first thing in a directory that is not its owner's, and whether there are things of several users. The folder
  /// that a file system brings along does not count.
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
