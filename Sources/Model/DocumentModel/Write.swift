/// One change of a commit: an update, a delete, a verification, with its precondition.
///
/// Source: firestore-api.md, sections 2.2 and 7.1.
package struct Write: Hashable, Sendable {
  /// What is done to the document.
  package enum Operation: Hashable, Sendable {
    /// Sets fields. Without a mask the document is replaced; with one, each path of the mask is set from `fields`
    /// or removed where `fields` lacks it.
    case update(EncodedFields, mask: FieldMask?)
    /// Removes the document; a missing one is success.
    case delete
    /// Only checks the precondition.
    case verify
  }

  /// The document.
  package var key: DocumentKey
  /// What is done.
  package var operation: Operation
  /// Applied after the update, in order.
  package var transforms: [FieldTransform]
  /// What must hold before.
  package var precondition: Precondition

  /// Creates a write.
  package init(
    _ operation: Operation, key: DocumentKey, transforms: [FieldTransform] = [], precondition: Precondition = .none
  ) {
    self.key = key
    self.operation = operation
    self.transforms = transforms
    self.precondition = precondition
  }
}

/// What must hold for a write to happen.
package enum Precondition: Hashable, Sendable {
  case none
  case exists(Bool)
  case updateTime(Timestamp)
}

/// A change of one field that the server computes from the stored value (firestore-api.md, section 7.2).
package struct FieldTransform: Hashable, Sendable {
  /// The change.
  package enum Kind: Hashable, Sendable {
    /// The commit time.
    case requestTime
    /// Adds a number; integers saturate.
    case increment(Value)
    /// Keeps the larger.
    case maximum(Value)
    /// Keeps the smaller.
    case minimum(Value)
    /// Appends the elements that the array lacks.
    case appendMissingElements([Value])
    /// Removes every equal element.
    case removeAllFromArray([Value])
  }

  /// The field.
  package var path: FieldPath
  /// The change.
  package var kind: Kind

  /// Creates a transform.
  package init(_ path: FieldPath, _ kind: Kind) {
    self.path = path
    self.kind = kind
  }
}

/// What a write did.
package struct WriteResult: Hashable, Sendable {
  /// When the document last changed, `nil` for a delete. A write that changed nothing reports the old time.
  package var updateTime: Timestamp?
  /// One value per transform, in order.
  package var transformResults: [Value]

  /// Creates a result.
  package init(updateTime: Timestamp?, transformResults: [Value] = []) {
    self.updateTime = updateTime
    self.transformResults = transformResults
  }
}

extension Value: Hashable {
  package func hash(into hasher: inout Hasher) {
    switch self {
    case .null: hasher.combine(0)
    case .boolean(let value): hasher.combine(value)
    case .integer(let value): hasher.combine(value)
    case .double(let value): hasher.combine(value.isNaN ? Double.nan.bitPattern : value.bitPattern)
    case .timestamp(let value): hasher.combine(value)
    case .string(let text), .reference(let text): Self.hash(text, into: &hasher)
    case .bytes(let bytes): hasher.combine(bytes)
    case .geoPoint(let point): hasher.combine(point)
    case .array(let elements): hasher.combine(elements)
    case .map(let map):
      for (key, value) in map.entries {
        Self.hash(key, into: &hasher)
        hasher.combine(value)
      }
    }
  }

  private static func hash(_ text: String, into hasher: inout Hasher) {
    var copy = text
    copy.withUTF8 { hasher.combine(bytes: UnsafeRawBufferPointer($0)) }
  }
}
