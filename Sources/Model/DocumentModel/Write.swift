/// One write of a commit, with its precondition: an update, a delete or a verification.
///
/// Source: firestore-api.md, sections 2.2 and 7.1.
package struct Write: Hashable, Sendable {
  /// The change to the document.
  package enum Operation: Hashable, Sendable {
    /// Sets fields. Without a mask it replaces the document. With a mask it sets each path of the mask from
    /// `fields`, or removes the path if `fields` lacks it.
    case update(EncodedFields, mask: FieldMask?)
    /// Deletes the document. It succeeds if the document does not exist.
    case delete
    /// Checks the precondition and changes nothing.
    case verify
  }

  package var key: DocumentKey
  package var operation: Operation
  /// The transforms to apply after the operation, in order.
  package var transforms: [FieldTransform]
  package var precondition: Precondition

  package init(
    _ operation: Operation, key: DocumentKey, transforms: [FieldTransform] = [], precondition: Precondition = .none
  ) {
    self.key = key
    self.operation = operation
    self.transforms = transforms
    self.precondition = precondition
  }
}

/// The condition that a document must meet before a write.
package enum Precondition: Hashable, Sendable {
  case none
  case exists(Bool)
  case updateTime(Timestamp)
}

/// A change of one field that the server computes from the stored value (firestore-api.md, section 7.2).
package struct FieldTransform: Hashable, Sendable {
  /// The computation of a transform.
  package enum Kind: Hashable, Sendable {
    /// Sets the commit time.
    case requestTime
    /// Adds a number. Integers saturate at the limits of `Int64`.
    case increment(Value)
    /// Keeps the larger number.
    case maximum(Value)
    /// Keeps the smaller number.
    case minimum(Value)
    /// Appends the elements that the array lacks.
    case appendMissingElements([Value])
    /// Removes every element that equals one of these.
    case removeAllFromArray([Value])
  }

  package var path: FieldPath
  package var kind: Kind

  package init(_ path: FieldPath, _ kind: Kind) {
    self.path = path
    self.kind = kind
  }
}

/// The result of a write.
package struct WriteResult: Hashable, Sendable {
  /// The time when the document last changed, or `nil` for a delete. A write that changes nothing reports the
  /// previous time.
  package var updateTime: Timestamp?
  /// One value per transform, in order.
  package var transformResults: [Value]

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
