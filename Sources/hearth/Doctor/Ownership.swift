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

  /// What is wrong with whose they are; empty where all is as it should be.
  func findings() -> [Finding] {
    let topic = "owner"
    let name = Self.name(of: owner)
    var findings: [Finding] = []
    if let (file, other) = stranger() {
      findings.append(
        .problem(
          topic, "\(file) belongs to \(Self.name(of: other)), and the directory to \(name), who cannot use it",
          "As root: chown -R \(name): \(path)"))
    }
    let user = geteuid()
    if user != owner {
      let text = "\(path) belongs to \(name): what \(Self.name(of: user)) makes in it, \(name) cannot use"
      findings.append(.warning(topic, "\(text); it was not looked into", "sudo -u \(name) hearth doctor …"))
    }
    return findings
  }

  /// The first thing in the directory that is somebody else's. What root has in a directory of its own is as it
  /// should be, and so is what others have there, whom root overrules.
  private func stranger() -> (file: String, user: uid_t)? {
    guard owner != 0 else { return nil }
    var (waiting, seen) = ([path], 0)
    while let folder = waiting.popLast() {
      for name in ContentDirectory.names(in: folder).sorted() {
        seen += 1
        guard seen <= Self.entriesMax else { return nil }
        let file = "\(folder)/\(name)"
        var status = stat()
        guard lstat(file, &status) == 0 else { continue }
        if status.st_uid != owner { return (file, status.st_uid) }
        if status.st_mode & S_IFMT == S_IFDIR { waiting.append(file) }
      }
    }
    return nil
  }
}
