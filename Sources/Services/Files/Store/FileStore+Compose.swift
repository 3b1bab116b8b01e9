import Glibc

/// One part of an object that is composed.
package struct ComposedPart: Sendable {
  /// The object's name in the bucket.
  package var name: String
  /// Its generation, where one was asked for.
  package var generation: Int64?
  /// What its generation must be, else the composition fails.
  package var generationMatch: Int64?

  /// Names a part.
  package init(name: String, generation: Int64? = nil) {
    self.name = name
    self.generation = generation
  }
}

extension FileStore {
  /// The most parts of one composition.
  package static let composedPartsMax = 32

  /// Makes an object of others, one after the other. Cost: copies their content.
  ///
  /// - Parameter removesParts: the parts go in the same moment, where nobody has replaced them.
  /// - Throws: ``FilesError/noSuchObject(_:)`` for a part that is not there, ``FilesError/conditionNotMet(_:)``.
  package func compose(
    _ parts: [ComposedPart], to name: ObjectName, _ attributes: ObjectAttributes, conditions: ObjectConditions,
    removesParts: Bool = false
  ) throws(FilesError) -> StoredObject {
    guard (1...Self.composedPartsMax).contains(parts.count) else {
      throw .invalid("A composition has 1 to \(Self.composedPartsMax) parts.")
    }
    let incoming = try makeIncoming()
    var count = 0
    var found: [StoredObject] = []
    for part in parts {
      let source = ObjectName(bucket: name.bucket, name: part.name)
      guard let (object, descriptor) = try open(source, generation: part.generation) else {
        throw .noSuchObject(source)
      }
      defer { close(descriptor) }
      if let wanted = part.generationMatch, wanted != object.generation {
        throw .conditionNotMet("objectPreconditions.ifGenerationMatch")
      }
      found.append(object)
      try incoming.append(contentOf: descriptor, count: object.content.size)
      count += max(1, object.componentCount)
    }
    return try put(
      name, incoming, attributes, conditions: conditions, componentCount: count, removing: removesParts ? found : [])
  }
}
