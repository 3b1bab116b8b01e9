package import DatabaseService
package import Files
import Glibc

/// An object with its content.
package struct ObjectContent: Sendable {
  package var object: StoredObject
  /// The file of the content, which the receiver must close.
  package let descriptor: Int32
  /// Whether the file is in memory, so reading it does not wait for a disk.
  package let isInMemory: Bool

  /// Closes the file of content that is not read.
  package func close() { Glibc.close(descriptor) }
}

extension StorageService {
  /// Returns an object's metadata.
  /// - Throws: ``FilesError/denied(_:)`` if the rules deny the read, whether or not the object exists;
  ///   ``FilesError/noSuchObject(_:)``; the errors of the conditions; ``FilesError`` if the read fails.
  package func getObject(
    _ name: ObjectName, generation: Int64? = nil, conditions: ObjectConditions = ObjectConditions(), as caller: Caller
  ) throws(FilesError) -> StoredObject {
    let found = try files(as: caller).object(name, generation: generation)
    guard let found else { throw .noSuchObject(name) }
    try conditions.check(found, isRead: true)
    return found
  }

  /// Returns an object with its content, or `nil` if it does not exist. The caller checks conditions itself, because
  /// its response describes the object even if one is not met.
  ///
  /// - Parameters:
  ///   - token: a download token, which permits the read if the object has it.
  ///   - waits: whether to fetch content that is not on this node, which may take minutes.
  /// - Throws: ``FilesError/denied(_:)`` if the rules deny the read, whether or not the object exists;
  ///   ``FilesError/notCached`` if the content is not on this node and `waits` is `false`; ``FilesError`` if the read fails.
  package func getContent(
    _ name: ObjectName, generation: Int64? = nil, token: String? = nil, waits: Bool = true, as caller: Caller
  ) throws(FilesError) -> ObjectContent? {
    try files(as: caller).content(name, generation: generation, token: token, waits: waits)
  }
}
