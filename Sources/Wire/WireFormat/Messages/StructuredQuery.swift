import DocumentModel

/// The members of a `google.firestore.v1.StructuredQuery`.
///
/// Only the operators and operands are validated here. The query engine validates their combination.
struct QueryMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredQuery"
  private var query: Query
  private var selectors = 0

  init(below parent: ResourcePath) { query = Query(parent: parent, collectionID: nil) }

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "select") {
      query.projection = try field.message(Projection())
    } else if field.matches(2, "from") {
      try from(field)
    } else if field.matches(3, "where") {
      query.filter = try field.message(FilterMembers(depth: 0))
    } else if field.matches(4, "order_by") {
      try field.append(OrderMembers(), to: &query.orders)
    } else if field.matches(5, "limit") {
      query.limit = Int(try field.int32Value())
    } else if field.matches(6, "offset", .varint) {
      query.offset = Int(try field.int32())
    } else if field.matches(7, "start_at") {
      query.start = try field.message(CursorMembers())
    } else if field.matches(8, "end_at") {
      query.end = try field.message(CursorMembers())
    } else if field.matches(9, "find_nearest") {
      query.findNearest = try field.message(FindNearestMembers())
    }
  }

  private mutating func from(_ field: some MessageField) throws(WireError) {
    if !field.addsElements { selectors = 0 }
    try field.forEach { (element) throws(WireError) in
      selectors += 1
      guard selectors == 1 else { throw .model(.severalSelectors) }
      let selector = try element.message(CollectionSelector())
      query.collectionID = selector.collectionID
      query.includesDescendants = selector.allDescendants
    }
    guard let id = query.collectionID else { return }
    if id.utf8.contains(UInt8(ascii: "/")) { throw .model(.slashInCollectionID(id)) }
    do throws(ModelError) { _ = try ResourcePath(checking: Array(id.utf8)) } catch { throw .model(error) }
  }

  func decoded() throws(WireError) -> Query { query }
}

private struct Projection: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredQuery.Projection"
  private var paths: [FieldPath] = []

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "fields") { try field.append(FieldReference(), to: &paths) }
  }

  func decoded() throws(WireError) -> FieldMask { FieldMask(paths) }
}

struct FieldReference: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredQuery.FieldReference"
  private var path: FieldPath?

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "field_path") { path = try field.fieldPath() }
  }

  func decoded() throws(WireError) -> FieldPath {
    guard let path else { throw .model(.emptyFieldPath) }
    return path
  }
}

private struct CollectionSelector: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredQuery.CollectionSelector"
  private(set) var collectionID: String?
  private(set) var allDescendants = false

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(2, "collection_id") {
      let id = try field.string()
      collectionID = id.isEmpty ? nil : id
    } else if field.matches(3, "all_descendants", .varint) {
      allDescendants = try field.bool()
    }
  }
}

private struct OrderMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredQuery.Order"
  private static let directions: [StaticString] = ["DIRECTION_UNSPECIFIED", "ASCENDING", "DESCENDING"]
  private var path: FieldPath?
  private var isDescending = false

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "field") {
      path = try field.message(FieldReference())
    } else if field.matches(2, "direction", .varint) {
      let direction = try field.enumeration("google.firestore.v1.StructuredQuery.Direction", Self.directions)
      guard (0...2).contains(direction) else { throw .model(.unknownDirection) }
      isDescending = direction == 2
    }
  }

  func decoded() throws(WireError) -> Order {
    guard let path else { throw .model(.emptyFieldPath) }
    return Order(path, isDescending: isDescending)
  }
}

private struct CursorMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.Cursor"
  private var bound = QueryBound([], isBefore: false)

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "values") {
      if !field.addsElements { bound.values = [] }
      try field.forEach { (element) throws(WireError) in bound.values.append(try element.value(.operand)) }
    } else if field.matches(2, "before", .varint) {
      bound.isBefore = try field.bool()
    }
  }

  func decoded() throws(WireError) -> QueryBound { bound }
}
