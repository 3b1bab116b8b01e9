import DocumentModel

/// The members of a `google.firestore.v1.StructuredQuery.Filter`.
struct FilterMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredQuery.Filter"
  /// The number of filters around this one. The limit of the JSON parser on nesting is lower than that of protobuf.
  private let depth: Int
  private var filter: QueryFilter?

  init(depth: Int) { self.depth = depth }

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    try field.claim("filter_type", isSet: filter != nil)
    if field.matches(1, "composite_filter") {
      filter = try field.message(CompositeFilter(depth: depth))
    } else if field.matches(2, "field_filter") {
      filter = try field.message(FieldFilter())
    } else if field.matches(3, "unary_filter") {
      filter = try field.message(UnaryFilter())
    }
  }

  func decoded() throws(WireError) -> QueryFilter {
    guard let filter else { throw .model(.emptyFilter) }
    return filter
  }
}

private struct CompositeFilter: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredQuery.CompositeFilter"
  private static let operators: [StaticString] = ["OPERATOR_UNSPECIFIED", "AND", "OR"]
  private let depth: Int
  private var op = 0
  private var filters: [QueryFilter] = []

  init(depth: Int) { self.depth = depth }

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "op", .varint) {
      op = try field.enumeration("google.firestore.v1.StructuredQuery.CompositeFilter.Operator", Self.operators)
    } else if field.matches(2, "filters") {
      try field.checkNesting(depth + 1)
      try field.append(FilterMembers(depth: depth + 1), to: &filters)
    }
  }

  func decoded() throws(WireError) -> QueryFilter {
    switch op {
    case 1: return .and(filters)
    case 2: return .or(filters)
    default: throw .model(.unsupportedCompositeOperator)
    }
  }
}

private struct FieldFilter: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredQuery.FieldFilter"
  private var path: FieldPath?
  private var op: FieldOperator?
  private var operand: Value?

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "field") {
      path = try field.message(FieldReference())
    } else if field.matches(2, "op", .varint) {
      op = FieldOperator(
        rawValue: try field.enumeration(
          "google.firestore.v1.StructuredQuery.FieldFilter.Operator", FieldOperator.wireNames))
    } else if field.matches(3, "value") {
      operand = try field.value(.operand)
    }
  }

  func decoded() throws(WireError) -> QueryFilter {
    guard let path else { throw .model(.emptyFieldPath) }
    guard let op else { throw .model(.unknownFieldOperator) }
    guard let operand else { throw .model(.unsetValue) }
    return .field(path, op, operand)
  }
}

private struct UnaryFilter: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredQuery.UnaryFilter"
  private static let operators: [StaticString] = [
    "OPERATOR_UNSPECIFIED", "", "IS_NAN", "IS_NULL", "IS_NOT_NAN", "IS_NOT_NULL",
  ]
  private var path: FieldPath?
  private var op: UnaryOperator?

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "op", .varint) {
      op = UnaryOperator(
        rawValue: try field.enumeration("google.firestore.v1.StructuredQuery.UnaryFilter.Operator", Self.operators))
    } else if field.matches(2, "field") {
      path = try field.message(FieldReference())
    }
  }

  func decoded() throws(WireError) -> QueryFilter {
    guard let path else { throw .model(.emptyFieldPath) }
    guard let op else { throw .model(.unknownUnaryOperator) }
    return .unary(path, op)
  }
}
