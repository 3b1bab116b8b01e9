package import DocumentModel

extension JSONMessageDecoder {
  /// Decodes a `google.firestore.v1.StructuredQuery.FindNearest` after its field was entered.
  ///
  /// Only the vector and the measure are validated here. The query engine validates the limit, threshold and result
  /// field.
  func findNearest(_ value: JSONValue) throws(WireError) -> FindNearest {
    var field: FieldPath?
    var vector: [Double]?
    var measure: FindNearest.Measure?
    var limit = 0
    var resultField: FieldPath?
    var threshold: Double?
    var members = try members(of: value, "google.firestore.v1.StructuredQuery.FindNearest")
    while let (name, value) = members.next() {
      switch name {
      case "vectorField", "vector_field":
        enter("vector_field")
        field = try fieldReference(value)
        leave()
      case "queryVector", "query_vector":
        enter("query_vector")
        guard let components = FindNearest.components(of: try self.value(value, .operand)) else {
          throw .model(.queryVectorNotVector)
        }
        vector = components
        leave()
      case "distanceMeasure", "distance_measure":
        measure = FindNearest.Measure(
          rawValue: try enumeration(
            value, "distance_measure", "google.firestore.v1.StructuredQuery.FindNearest.DistanceMeasure",
            "DISTANCE_MEASURE_UNSPECIFIED", "EUCLIDEAN", "COSINE", "DOT_PRODUCT"))
      case "limit": limit = Int(try int32Value(value, "limit"))
      case "distanceResultField", "distance_result_field":
        let text = String(decoding: try string(value, "distance_result_field"), as: UTF8.self)
        resultField = text.isEmpty ? nil : FieldPath(field: text)
      case "distanceThreshold", "distance_threshold": threshold = try doubleValue(value, "distance_threshold")
      default: throw unknown(name)
      }
    }
    guard let field else { throw .model(.emptyFieldPath) }
    guard let vector else { throw .model(.unsetValue) }
    guard let measure else { throw .model(.unknownDistanceMeasure) }
    var search = FindNearest(field, near: vector, by: measure, limit: limit)
    search.resultField = resultField
    search.threshold = threshold
    return search
  }

  /// Decodes a `google.firestore.v1.ExplainOptions`.
  /// - Throws: ``WireError`` if the message is malformed.
  package func explainOptions(_ value: JSONValue) throws(WireError) -> ExplainMode {
    var mode = ExplainMode.plan
    var members = try members(of: value, "google.firestore.v1.ExplainOptions")
    while let (name, value) = members.next() {
      guard "analyze" ~= name else { throw unknown(name) }
      mode = try bool(value, "analyze") ? .analyze : .plan
    }
    return mode
  }

  /// Decodes an Int32Value field: the number itself, or an object with `value`.
  func int32Value(_ value: JSONValue, _ field: StaticString) throws(WireError) -> Int32 {
    guard case .object = value.kind else { return try int32(value, field) }
    var number: Int32 = 0
    enter(field)
    var members = try members(of: value, "google.protobuf.Int32Value")
    while let (name, value) = members.next() {
      guard "value" ~= name else { throw unknown(name) }
      number = try int32(value, "value")
    }
    leave()
    return number
  }

  /// Decodes a DoubleValue field: the number itself, or an object with `value`.
  private func doubleValue(_ value: JSONValue, _ field: StaticString) throws(WireError) -> Double {
    guard case .object = value.kind else { return try double(value, field) }
    var number = 0.0
    enter(field)
    var members = try members(of: value, "google.protobuf.DoubleValue")
    while let (name, value) = members.next() {
      guard "value" ~= name else { throw unknown(name) }
      number = try double(value, "value")
    }
    leave()
    return number
  }
}
