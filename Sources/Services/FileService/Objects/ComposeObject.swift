package import DatabaseService
package import Files

extension StorageService {
  /// Creates an object by concatenating others of its bucket. Copies their content and waits for the disk.
  ///
  /// - Parameter removesParts: whether to delete the parts too, unless they have been replaced.
  /// - Throws: ``FilesError/denied(_:)`` if the caller is not an administrator; the errors of
  ///   ``FileStore/compose(_:to:_:conditions:removesParts:)``.
  package func composeObject(
    _ parts: [ComposedPart], to name: ObjectName, _ attributes: ObjectAttributes = ObjectAttributes(),
    conditions: ObjectConditions = ObjectConditions(), removesParts: Bool = false, as caller: Caller
  ) throws(FilesError) -> StoredObject {
    try files(as: caller).administrator().compose(
      parts, to: name, attributes, conditions: conditions, removesParts: removesParts)
  }
}
