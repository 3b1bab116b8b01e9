import FixtureTree
import Glibc

/// The name that the output of a verb has until it is complete: `NAME.PID.part`, beside its place.
///
/// The process locks the file or folder while it writes. So a later run for the same output finds what a killed process
/// left, and removes it.
final class UnfinishedOutput {
  let path: String
  private var descriptor: Int32 = -1

  /// Chooses the name. Removes what killed processes left for the same output, unless the folder is new.
  init(of target: String, inNewFolder isNew: Bool = false) {
    path = "\(target).\(getpid()).part"
    guard !isNew else { return }
    for entry in Self.entries(of: target, ending: "part") where Self.isUnused(entry.path) {
      if entry.isFolder { FolderEntries.removeAll(entry.path) } else { unlink(entry.path) }
    }
  }

  deinit { if descriptor >= 0 { close(descriptor) } }

  /// Locks the file or folder, which now exists, as long as this object lives.
  func lock() {
    guard descriptor < 0 else { return }
    descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    if descriptor >= 0 { flock(descriptor, LOCK_EX | LOCK_NB) }
  }

  /// Returns the files and folders named `TARGET.NUMBER.ENDING`.
  static func entries(of target: String, ending: String) -> [FolderEntries.Entry] {
    let (start, end) = (Array("\(FileLocation.lastPart(target)).".utf8), Array(".\(ending)".utf8))
    let all = (try? FolderEntries.list(LocalPath.folder(of: target))) ?? []
    return all.filter { entry in
      let name = Array(FileLocation.lastPart(entry.path).utf8)
      guard name.count > start.count + end.count, name.starts(with: start), name.suffix(end.count) == end[...] else {
        return false
      }
      return name[start.count..<name.count - end.count].allSatisfy { (UInt8(ascii: "0")...UInt8(ascii: "9")) ~= $0 }
    }
  }

  /// Returns whether no process has locked a file or folder.
  private static func isUnused(_ path: String) -> Bool {
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
    guard descriptor >= 0 else { return false }
    defer { close(descriptor) }
    return flock(descriptor, LOCK_EX | LOCK_NB) == 0
  }
}
