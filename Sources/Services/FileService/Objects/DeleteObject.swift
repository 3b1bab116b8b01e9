package import DatabaseService
package import Files

extension StorageService {
  /// Deletes an object, or with a generation one version of it. Waits for the disk.
  /// - Throws: ``FilesError/denied(_:)`` if the rules deny it; ``FilesError/noSuchObject(_:)``;
  ///   ``FilesError/conditionNotMet(_:)``; ``FilesError`` if the write fails.
  package func deleteObject(
    _ name: ObjectName, generation: Int64? = nil, conditions: ObjectConditions = ObjectConditions(), as caller: Caller
  ) throws(FilesError) {
    try files(as: caller).delete(name, generation: generation, conditions: conditions)
  }
}
