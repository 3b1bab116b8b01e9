import Glibc
import Synchronization

extension FileStore {
  /// Gives everything that is stored now to another store: `copyMetadata` is called while nothing changes, and content
  /// gets a second name in `contents`, which lies on the same file system. Content never changes, so no byte moves.
  ///
  /// Uploads that are not finished stay here. Cost: a call of the system for each piece of content.
  package func fork(
    to contents: ContentDirectory, _ copyMetadata: () throws(FilesError) -> Void
  ) throws(FilesError) {
    try writer.withLock { (_) throws(FilesError) in
      try copyMetadata()
      try contents.link(contentsOf: self.contents)
    }
  }
}

extension ContentDirectory {
  /// Gives all content of another directory, which nobody changes meanwhile, a name here too.
  package func link(contentsOf other: ContentDirectory) throws(FilesError) {
    for folder in Self.names(in: "\(other.path)/content") {
      let target = "\(path)/content/\(folder)"
      if mkdir(target, 0o700) != 0, errno != EEXIST { throw Self.failure("mkdir", target) }
      for name in Self.names(in: "\(other.path)/content/\(folder)") {
        guard Glibc.link("\(other.path)/content/\(folder)/\(name)", "\(target)/\(name)") == 0 else {
          throw Self.failure("link", "\(target)/\(name)")
        }
      }
    }
  }
}
