package import DocumentModel

extension ProtobufMessageDecoder {
  /// Decodes a `google.firestore.v1.StructuredQuery.FindNearest`.
  ///
  /// Only the vector and the measure are validated here. The query engine validates the limit, threshold and result
  /// field.
  func findNearest(_ message: UnsafeRawBufferPointer) throws(WireError) -> FindNearest {
    var path: FieldPath?
    var vector: [Double]?
    var measure: FindNearest.Measure?
    var limit = 0
    var resultField: FieldPath?
    var threshold: Double?
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      switch (field.number, field.wireType) {
      case (1, .lengthDelimited): path = try Self.fieldReference(field.bytes)
      case (2, .lengthDelimited):
        guard let components = FindNearest.components(of: try value(field.bytes, .operand)) else {
          throw .model(.queryVectorNotVector)
        }
        vector = components
      case (3, .varint): measure = FindNearest.Measure(rawValue: Int(field.int32))
      case (4, .lengthDelimited): limit = Int(try Self.int32Value(field.bytes))
      case (5, .lengthDelimited):
        let name = try Self.string(field)
        resultField = name.isEmpty ? nil : FieldPath(field: name)
      case (6, .lengthDelimited): threshold = try Self.doubleValue(field.bytes)
      default: break
      }
    }
    guard let path else { throw .model(.emptyFieldPath) }
    guard let vector else { throw .model(.unsetValue) }
    guard let measure else { throw .model(.unknownDistanceMeasure) }
    var search = FindNearest(path, near: vector, by: measure, limit: limit)
    search.resultField = resultField
    search.threshold = threshold
    return search
  }

  /// Decodes a `google.firestore.v1.ExplainOptions`.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if the message is malformed.
  package static func explainOptions(_ message: UnsafeRawBufferPointer) throws(WireError) -> ExplainMode {
    var mode = ExplainMode.plan
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == 1, field.wireType == .varint { mode = field.bool ? .analyze : .plan }
    }
    return mode
  }

  /// Decodes a `google.protobuf.DoubleValue`.
  private static func doubleValue(_ message: UnsafeRawBufferPointer) throws(WireError) -> Double {
    var number = 0.0
    var reader = ProtobufReader(message)
    while let field = try reader.next() {
      if field.number == 1, field.wireType == .fixed64 { number = field.double }
    }
    return number
  }
}
