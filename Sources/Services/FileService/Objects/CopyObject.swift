package import DatabaseService
package import Files

/// An object that is copied or moved, and the conditions that it must meet.
package struct CopySource: Sendable {
  package var name: ObjectName
  /// The generation to copy, or `nil` for the current one.
  package var generation: Int64?
  package var conditions: ObjectConditions

  package init(_ name: ObjectName, generation: Int64? = nil, conditions: ObjectConditions = ObjectConditions()) {
    self.name = name
    self.generation = generation
    self.conditions = conditions
  }
}

extension StorageService {
  /// Copies an object. `change` changes the attributes of the copy. No bytes are copied. Waits for the disk.
  /// - Throws: ``FilesError/denied(_:)`` if the caller is not an administrator; the errors of
  ///   ``FileStore/copy(_:generation:sourceConditions:to:conditions:_:)``.
  package func copyObject(
    _ source: CopySource, to name: ObjectName, conditions: ObjectConditions = ObjectConditions(), as caller: Caller,
    _ change: (inout ObjectAttributes) throws(FilesError) -> Void = { _ throws(FilesError) in }
  ) throws(FilesError) -> StoredObject {
    try files(as: caller).administrator().copy(
      source.name, generation: source.generation, sourceConditions: source.conditions, to: name,
      conditions: conditions, change)
  }

  /// Renames the current version of an object within its bucket. No bytes are copied. Waits for the disk.
  /// - Throws: ``FilesError/denied(_:)`` if the caller is not an administrator; the errors of
  ///   ``FileStore/move(_:sourceConditions:to:conditions:)``.
  package func moveObject(
    _ source: CopySource, to name: ObjectName, conditions: ObjectConditions = ObjectConditions(), as caller: Caller
  ) throws(FilesError) -> StoredObject {
    try files(as: caller).administrator().move(
      source.name, sourceConditions: source.conditions, to: name, conditions: conditions)
  }
}
