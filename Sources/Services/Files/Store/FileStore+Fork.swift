import Glibc
import Synchronization

extension FileStore {
  /// Copies everything that is stored now to another store. `copyMetadata` is called while no write runs. Content
  /// files are linked into `contents`, which must be on the same file system; their bytes are not copied.
  ///
  /// Active uploads are not copied. Cost: one system call per content file.
  /// - Throws: ``FilesError`` if a file cannot be linked; the errors of `copyMetadata`.
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
  /// Links all content of another directory into this one. No other thread may write to the other directory
  /// meanwhile.
  /// - Throws: ``FilesError/system(operation:path:code:)`` or ``FilesError/full`` if a link cannot be created.
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
