package import DatabaseService
package import Files

extension StorageService {
  /// Adds a download token to an object without one, which the caller has read. If another object has replaced it,
  /// rules and conditions apply to that one. Waits for the disk.
  /// - Throws: ``FilesError/denied(_:)``, ``FilesError/noSuchObject(_:)`` or the errors of the conditions if the object
  ///   was replaced; ``FilesError`` if the write fails.
  package func addMissingDownloadToken(
    to object: StoredObject, conditions: ObjectConditions, as caller: Caller
  ) throws(FilesError) -> StoredObject {
    try files(as: caller).addDownloadToken(to: object) { (other) throws(FilesError) in
      if let other { try conditions.check(other, isRead: true) }
    }
  }

  /// Adds a download token to an object. Waits for the disk.
  /// - Throws: ``FilesError/denied(_:)`` if the caller is not an administrator; ``FilesError/noSuchObject(_:)``;
  ///   ``FilesError`` if the write fails.
  package func createDownloadToken(of name: ObjectName, as caller: Caller) throws(FilesError) -> StoredObject {
    try files(as: caller).administrator().update(name) { (attributes) throws(FilesError) in
      attributes.metadata.downloadTokens.append(DownloadToken.make())
    }
  }

  /// Revokes a download token of an object. If it was the last one, the object gets a new one. Waits for the disk.
  /// - Throws: ``FilesError/denied(_:)`` if the caller is not an administrator; ``FilesError/noSuchObject(_:)``;
  ///   ``FilesError`` if the write fails.
  package func revokeDownloadToken(
    _ token: String, of name: ObjectName, as caller: Caller
  ) throws(FilesError) -> StoredObject {
    try files(as: caller).administrator().update(name) { (attributes) throws(FilesError) in
      attributes.metadata.downloadTokens.removeAll { $0 == token }
      attributes.metadata.addTokenIfMissing()
    }
  }
}

extension CustomMetadata {
  /// Adds a download token if the metadata have no token. Firebase clients expect every object to have one.
  package mutating func addTokenIfMissing() {
    if downloadTokens.isEmpty { downloadTokens = [DownloadToken.make()] }
  }
}
