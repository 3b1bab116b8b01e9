package import DatabaseService
package import Files

extension StorageService {
  /// Changes the attributes of an object. Waits for the disk.
  /// - Throws: ``FilesError/denied(_:)`` if the rules deny it; ``FilesError/noSuchObject(_:)``;
  ///   ``FilesError/conditionNotMet(_:)``; ``FilesError`` if the write fails; the errors of `change`.
  package func patchObject(
    _ name: ObjectName, generation: Int64? = nil, conditions: ObjectConditions = ObjectConditions(), as caller: Caller,
    _ change: (inout ObjectAttributes) throws(FilesError) -> Void
  ) throws(FilesError) -> StoredObject {
    try files(as: caller).update(name, generation: generation, conditions: conditions, change)
  }
}
