package import DocumentModel

extension ProtobufMessageDecoder {
  /// Decodes a `google.firestore.v1.StructuredQuery` below a parent.
  ///
  /// Only the operators and operands are validated here. The query engine validates their combination.
  /// - Throws: ``WireError`` with the documented text if the message is malformed.
  package func query(_ message: UnsafeRawBufferPointer, below parent: ResourcePath) throws(WireError) -> Query {
    var query = Query(parent: parent, collectionID: nil)
    var selectors = 0
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .lengthDelimited): query.projection = try projection(field.bytes)
      case (2, .lengthDelimited):
        selectors += 1
        guard selectors == 1 else { throw .model(.severalSelectors) }
        try selector(field.bytes, into: &query)
      case (3, .lengthDelimited): query.filter = try filter(field.bytes, depth: 0)
      case (4, .lengthDelimited): query.orders.append(try order(field.bytes))
      case (5, .lengthDelimited): query.limit = Int(try Self.int32Value(field.bytes))
      case (6, .varint): query.offset = Int(field.int32)
      case (7, .lengthDelimited): query.start = try bound(field.bytes)
      case (8, .lengthDelimited): query.end = try bound(field.bytes)
      case (9, .lengthDelimited): query.findNearest = try findNearest(field.bytes)
      default: break
      }
    }
    return query
  }

  /// Decodes a `google.protobuf.Int32Value`.
  static func int32Value(_ message: UnsafeRawBufferPointer) throws(WireError) -> Int32 {
    Int32(truncatingIfNeeded: try int64Value(message))
  }

  /// Decodes a `google.protobuf.Int64Value`.
  static func int64Value(_ message: UnsafeRawBufferPointer) throws(WireError) -> Int64 {
    var number: Int64 = 0
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == 1, field.wireType == .varint { number = field.int64 }
    }
    return number
  }

  private func projection(_ message: UnsafeRawBufferPointer) throws(WireError) -> FieldMask {
    var paths: [FieldPath] = []
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == 2, field.wireType == .lengthDelimited { paths.append(try Self.fieldReference(field.bytes)) }
    }
    return FieldMask(paths)
  }

  /// Decodes a `google.firestore.v1.StructuredQuery.FieldReference`.
  static func fieldReference(_ message: UnsafeRawBufferPointer) throws(WireError) -> FieldPath {
    var path: FieldPath?
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == 2, field.wireType == .lengthDelimited { path = try fieldPath(field) }
    }
    guard let path else { throw .model(.emptyFieldPath) }
    return path
  }

  private func selector(_ message: UnsafeRawBufferPointer, into query: inout Query) throws(WireError) {
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (2, .lengthDelimited):
        let id = try Self.string(field)
        query.collectionID = id.isEmpty ? nil : id
      case (3, .varint): query.includesDescendants = field.bool
      default: break
      }
    }
    try query.checkCollectionID()
  }

  private func order(_ message: UnsafeRawBufferPointer) throws(WireError) -> Order {
    var path: FieldPath?
    var isDescending = false
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .lengthDelimited): path = try Self.fieldReference(field.bytes)
      case (2, .varint):
        guard (0...2).contains(field.int32) else { throw .model(.unknownDirection) }
        isDescending = field.int32 == 2
      default: break
      }
    }
    guard let path else { throw .model(.emptyFieldPath) }
    return Order(path, isDescending: isDescending)
  }

  private func bound(_ message: UnsafeRawBufferPointer) throws(WireError) -> QueryBound {
    var bound = QueryBound([], isBefore: false)
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .lengthDelimited): bound.values.append(try value(field.bytes, .operand))
      case (2, .varint): bound.isBefore = field.bool
      default: break
      }
    }
    return bound
  }

  // MARK: Filters

  private func filter(_ message: UnsafeRawBufferPointer, depth: Int) throws(WireError) -> QueryFilter {
    guard depth < Self.nestingDepthMax else { throw .malformedProtobuf("filter is nested too deeply") }
    var filter: QueryFilter?
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .lengthDelimited): filter = try compositeFilter(field.bytes, depth: depth)
      case (2, .lengthDelimited): filter = try fieldFilter(field.bytes)
      case (3, .lengthDelimited): filter = try unaryFilter(field.bytes)
      default: break
      }
    }
    guard let filter else { throw .model(.emptyFilter) }
    return filter
  }

  private func compositeFilter(_ message: UnsafeRawBufferPointer, depth: Int) throws(WireError) -> QueryFilter {
    var op: Int32 = 0
    var filters: [QueryFilter] = []
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .varint): op = field.int32
      case (2, .lengthDelimited): filters.append(try filter(field.bytes, depth: depth + 1))
      default: break
      }
    }
    switch op {
    case 1: return .and(filters)
    case 2: return .or(filters)
    default: throw .model(.unsupportedCompositeOperator)
    }
  }

  private func fieldFilter(_ message: UnsafeRawBufferPointer) throws(WireError) -> QueryFilter {
    var path: FieldPath?
    var op: FieldOperator?
    var operand: Value?
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .lengthDelimited): path = try Self.fieldReference(field.bytes)
      case (2, .varint): op = FieldOperator(rawValue: Int(field.int32))
      case (3, .lengthDelimited): operand = try value(field.bytes, .operand)
      default: break
      }
    }
    guard let path else { throw .model(.emptyFieldPath) }
    guard let op else { throw .model(.unknownFieldOperator) }
    guard let operand else { throw .model(.unsetValue) }
    return .field(path, op, operand)
  }

  private func unaryFilter(_ message: UnsafeRawBufferPointer) throws(WireError) -> QueryFilter {
    var path: FieldPath?
    var op: UnaryOperator?
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .varint): op = UnaryOperator(rawValue: Int(field.int32))
      case (2, .lengthDelimited): path = try Self.fieldReference(field.bytes)
      default: break
      }
    }
    guard let path else { throw .model(.emptyFieldPath) }
    guard let op else { throw .model(.unknownUnaryOperator) }
    return .unary(path, op)
  }
}
