import Glibc

/// A part of a composed object.
package struct ComposedPart: Sendable {
  /// The name of the part in the bucket.
  package var name: String
  /// The generation to read, or `nil` for the current one.
  package var generation: Int64?
  /// The generation that the part must have; otherwise the composition fails.
  package var generationMatch: Int64?

  package init(name: String, generation: Int64? = nil) {
    self.name = name
    self.generation = generation
  }
}

extension FileStore {
  /// The most parts of one composition.
  package static let composedPartsMax = 32

  /// Creates an object by concatenating others. Cost: copies their content.
  ///
  /// - Parameter removesParts: whether to delete the parts in the same transaction, unless they have been replaced.
  /// - Throws: ``FilesError/noSuchObject(_:)`` if a part does not exist; ``FilesError/invalid(_:)`` if there are
  ///   too many parts; otherwise as ``put(_:_:_:declared:conditions:componentCount:removing:ending:check:)``.
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
