import DocumentModel

/// The members of a `google.firestore.v1.DocumentMask`.
struct DocumentMask: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.DocumentMask"
  /// Whether the mask belongs to a write, where `__name__` and other reserved names are errors.
  private let isForWrite: Bool
  private var paths: [FieldPath] = []

  init(isForWrite: Bool = false) { self.isForWrite = isForWrite }

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "field_paths") {
      if !field.addsElements { paths = [] }
      try field.forEach { (element) throws(WireError) in paths.append(try element.fieldPath()) }
    }
  }

  func decoded() throws(WireError) -> FieldMask {
    if isForWrite {
      for path in paths { try Self.checkWritable(path) }
    }
    return FieldMask(paths)
  }

  /// Checks that a path can be written: no name in it is reserved, and it is not deeper than the nesting limit for
  /// values.
  static func checkWritable(_ path: FieldPath) throws(WireError) {
    for segment in path.segments where ResourceID.isReserved(segment.utf8) {
      throw .model(.reservedFieldName(segment))
    }
    // The last name is in a map one level up.
    guard path.segments.count <= Limits.nestingDepthMax + 1 else {
      throw .model(.tooDeep(field: path.segments[0]))
    }
  }
}

/// The members of a `google.firestore.v1.Precondition`. Without a member it is ``Precondition/none``.
struct PreconditionMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.Precondition"
  private var precondition = Precondition.none

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "exists", .varint) {
      try field.claim("condition_type", isSet: precondition != .none)
      precondition = .exists(try field.bool())
    } else if field.matches(2, "update_time") {
      try field.claim("condition_type", isSet: precondition != .none)
      precondition = .updateTime(try field.alignedTimestamp())
    }
  }

  func decoded() throws(WireError) -> Precondition { precondition }
}
