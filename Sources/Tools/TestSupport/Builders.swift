package import DocumentModel
import WireFormat

// Short spellings of the nouns, for tests. Illegal ones trap: a test's own data is right.

/// The document at a path.
package func document(_ path: String) -> DocumentKey {
  guard let key = try? DocumentKey(ResourcePath(path)) else { preconditionFailure("\(path) is no document") }
  return key
}

/// The collection at a path.
package func collection(_ path: String) -> ResourcePath {
  guard let path = try? ResourcePath(path), path.isCollection else { preconditionFailure("\(path) is no collection") }
  return path
}

/// A field path in its text form.
package func field(_ path: String) -> FieldPath {
  guard let path = try? FieldPath(path) else { preconditionFailure("\(path) is no field path") }
  return path
}

/// A mask of field paths in text form.
package func mask(_ paths: String...) -> FieldMask { FieldMask(paths.map(field)) }

/// A map value.
package func map(_ entries: (String, Value)...) -> Value { .map(MapValue(entries)) }

/// The stored form of fields.
package func fields(_ entries: (String, Value)...) -> EncodedFields { EncodedFields(MapValue(entries)) }

extension Write {
  /// Replaces a document.
  package static func set(
    _ path: String, _ entries: (String, Value)..., transforms: [FieldTransform] = [], if precondition: Precondition = .none
  ) -> Write {
    Write(
      .update(EncodedFields(MapValue(entries)), mask: nil), key: document(path), transforms: transforms,
      precondition: precondition)
  }

  /// Sets or removes the fields of a mask.
  package static func merge(
    _ path: String, _ mask: [String], _ entries: (String, Value)..., transforms: [FieldTransform] = [],
    if precondition: Precondition = .none
  ) -> Write {
    Write(
      .update(EncodedFields(MapValue(entries)), mask: FieldMask(mask.map(field))), key: document(path),
      transforms: transforms, precondition: precondition)
  }

  /// Removes a document.
  package static func delete(_ path: String, if precondition: Precondition = .none) -> Write {
    Write(.delete, key: document(path), precondition: precondition)
  }

  /// Checks a precondition.
  package static func verify(_ path: String, if precondition: Precondition = .none) -> Write {
    Write(.verify, key: document(path), precondition: precondition)
  }
}

extension FieldTransform {
  /// Adds to a field.
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
