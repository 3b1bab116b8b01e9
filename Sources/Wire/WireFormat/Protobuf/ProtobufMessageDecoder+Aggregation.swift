package import DocumentModel

extension ProtobufMessageDecoder {
  /// Decodes a `google.firestore.v1.StructuredAggregationQuery` below a parent. Aggregations without an alias are
  /// named `field_1`, `field_2`, and so on (firestore-api.md, section 5.1).
  /// - Throws: ``WireError`` with the documented text if the message is malformed.
  package func aggregationQuery(
    _ message: UnsafeRawBufferPointer, below parent: ResourcePath
  ) throws(WireError) -> (query: Query?, aggregations: [Aggregation]) {
    var query: Query?
    var aggregations: [Aggregation] = []
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .lengthDelimited): query = try self.query(field.bytes, below: parent)
      case (3, .lengthDelimited): aggregations.append(try aggregation(field.bytes))
      default: break
      }
    }
    aggregations.nameUnnamed()
    return (query, aggregations)
  }

  private func aggregation(_ message: UnsafeRawBufferPointer) throws(WireError) -> Aggregation {
    var op: Aggregation.Operator?
    var alias = ""
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .lengthDelimited): op = .count(upTo: try upTo(field.bytes))
      case (2, .lengthDelimited): op = .sum(try aggregatedField(field.bytes))
      case (3, .lengthDelimited): op = .average(try aggregatedField(field.bytes))
      case (7, .lengthDelimited): alias = try Self.string(field)
      default: break
      }
    }
    guard let op else { throw .model(.emptyAggregation) }
    return Aggregation(op, alias: alias)
  }

  private func upTo(_ message: UnsafeRawBufferPointer) throws(WireError) -> Int? {
    var limit: Int?
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == 1, field.wireType == .lengthDelimited { limit = Int(try Self.int64Value(field.bytes)) }
    }
    if let limit, limit <= 0 { throw .model(.countLimitNotPositive) }
    return limit
  }

  private func aggregatedField(_ message: UnsafeRawBufferPointer) throws(WireError) -> FieldPath {
    var path: FieldPath?
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == 1, field.wireType == .lengthDelimited { path = try Self.fieldReference(field.bytes) }
    }
    guard let path else { throw .model(.emptyFieldPath) }
    return path
  }
}

extension [Aggregation] {
  /// Names the aggregations without an alias `field_1`, `field_2`, and so on. Only these are counted.
  mutating func nameUnnamed() {
    var unnamed = 0
    for index in indices where self[index].alias.isEmpty {
      unnamed += 1
      self[index].alias = "field_\(unnamed)"
    }
  }
}

extension Query {
  /// Checks the ID of the requested collections.
  func checkCollectionID() throws(WireError) {
    guard let id = collectionID else { return }
    if id.utf8.contains(UInt8(ascii: "/")) { throw .model(.slashInCollectionID(id)) }
    do throws(ModelError) {
      _ = try ResourcePath(checking: Array(id.utf8))
    } catch {
      throw .model(error)
    }
  }
}
