package import DocumentModel
package import WireFormat

/// The effect of one write on a document. Pure functions, so the caller's thread and the writer get the same result.
///
/// Source: firestore-api.md, sections 7.1 and 7.2.
package enum WriteApplication {
  /// The document after a write, and the values of its transforms.
  package struct Effect: Equatable {
    /// The fields after the write, or `nil` if the document does not exist then.
    package var fields: EncodedFields?
    /// One value per transform, in order.
    package var transformResults: [Value]
  }

  /// Returns the document after a write. `fields` is the document before it, or `nil` if it does not exist.
  ///
  /// Cost: a plain set or delete copies at most; a mask or transforms decode the document once.
  /// - Throws: ``WireError`` if the bytes of a document are not valid fields.
  package static func apply(
    _ write: Write, to fields: EncodedFields?, requestTime: Timestamp
  ) throws(WireError) -> Effect {
    switch write.operation {
    case .delete:
      return Effect(fields: nil, transformResults: [])
    case .verify:
      return Effect(fields: fields, transformResults: [])
    case .update(let body, let mask):
      if mask == nil, write.transforms.isEmpty { return Effect(fields: body, transformResults: []) }
      var map = try mask == nil ? MapValue() : fields?.decoded() ?? MapValue()
      let results = try change(&map, body, mask, write.transforms, requestTime: requestTime)
      return Effect(fields: EncodedFields(map), transformResults: results)
    }
  }

  /// Applies an update that has a mask or transforms to decoded fields; returns the values of the transforms.
  ///
  /// Without a mask, the body replaces the content of `map`.
  static func change(
    _ map: inout MapValue, _ body: EncodedFields, _ mask: FieldMask?, _ transforms: [FieldTransform],
    requestTime: Timestamp
  ) throws(WireError) -> [Value] {
    if let mask {
      try merge(body, mask, into: &map)
    } else {
      map = try body.decoded()
    }
    return transforms.map { FieldTransformation.apply($0, to: &map, requestTime: requestTime) }
  }

  private static func merge(_ body: EncodedFields, _ mask: FieldMask, into map: inout MapValue) throws(WireError) {
    guard !mask.paths.isEmpty else { return }
    let source = try body.decoded()
    for path in mask.paths {
      if let value = source[path] {
        map.set(value, at: path)
      } else {
        map.remove(at: path)
      }
    }
  }
}
