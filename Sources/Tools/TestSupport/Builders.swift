package import DocumentModel
import WireFormat

// Short constructors for tests. Invalid arguments trap, because tests use correct literals.

/// Returns the key of the document at a path.
package func document(_ path: String) -> DocumentKey {
  guard let key = try? DocumentKey(ResourcePath(path)) else { preconditionFailure("\(path) is not a document path") }
  return key
}

/// Returns the path of a collection.
package func collection(_ path: String) -> ResourcePath {
  guard let path = try? ResourcePath(path), path.isCollection else {
    preconditionFailure("\(path) is not a collection path")
  }
  return path
}

/// Returns a field path from its text form.
package func field(_ path: String) -> FieldPath {
  guard let path = try? FieldPath(path) else { preconditionFailure("\(path) is not a field path") }
  return path
}

/// Returns a mask of field paths in text form.
package func mask(_ paths: String...) -> FieldMask { FieldMask(paths.map(field)) }

/// Returns a map value.
package func map(_ entries: (String, Value)...) -> Value { .map(MapValue(entries)) }

/// Returns the stored form of fields.
package func fields(_ entries: (String, Value)...) -> EncodedFields { EncodedFields(MapValue(entries)) }

extension Write {
  /// Returns a write that replaces a document.
  package static func set(
    _ path: String, _ entries: (String, Value)..., transforms: [FieldTransform] = [],
    if precondition: Precondition = .none
  ) -> Write {
    Write(
      .update(EncodedFields(MapValue(entries)), mask: nil), key: document(path), transforms: transforms,
      precondition: precondition)
  }

  /// Returns a write that sets or removes the fields of a mask.
  package static func merge(
    _ path: String, _ mask: [String], _ entries: (String, Value)..., transforms: [FieldTransform] = [],
    if precondition: Precondition = .none
  ) -> Write {
    Write(
      .update(EncodedFields(MapValue(entries)), mask: FieldMask(mask.map(field))), key: document(path),
      transforms: transforms, precondition: precondition)
  }

  /// Returns a write that deletes a document.
  package static func delete(_ path: String, if precondition: Precondition = .none) -> Write {
    Write(.delete, key: document(path), precondition: precondition)
  }

  /// Returns a write that only checks a precondition.
  package static func verify(_ path: String, if precondition: Precondition = .none) -> Write {
    Write(.verify, key: document(path), precondition: precondition)
  }
}

extension FieldTransform {
  /// Returns a transform that adds to a field.
  package static func increment(_ path: String, _ value: Value) -> FieldTransform {
    FieldTransform(field(path), .increment(value))
  }
}

extension Value: ExpressibleByIntegerLiteral, ExpressibleByFloatLiteral, ExpressibleByStringLiteral,
  ExpressibleByBooleanLiteral, ExpressibleByArrayLiteral
{
  package init(integerLiteral value: Int64) { self = .integer(value) }
  package init(floatLiteral value: Double) { self = .double(value) }
  package init(stringLiteral value: String) { self = .string(value) }
  package init(booleanLiteral value: Bool) { self = .boolean(value) }
  package init(arrayLiteral elements: Value...) { self = .array(elements) }
}
