import DocumentModel

/// The members of a `google.firestore.v1.StructuredQuery.FindNearest`.
///
/// Only the vector and the measure are validated here. The query engine validates the limit, threshold and result
/// field.
struct FindNearestMembers: DecodableMessage {
  static let typeName: StaticString = "google.firestore.v1.StructuredQuery.FindNearest"
  private static let measures: [StaticString] = ["DISTANCE_MEASURE_UNSPECIFIED", "EUCLIDEAN", "COSINE", "DOT_PRODUCT"]
  private var path: FieldPath?
  private var vector: [Double]?
  private var measure: FindNearest.Measure?
  private var limit = 0
  private var resultField: FieldPath?
  private var threshold: Double?

  mutating func decode(_ field: inout some MessageField) throws(WireError) {
    if field.matches(1, "vector_field") {
      path = try field.message(FieldReference())
    } else if field.matches(2, "query_vector") {
      guard let components = FindNearest.components(of: try field.value(.operand)) else {
        throw .model(.queryVectorNotVector)
      }
      vector = components
    } else if field.matches(3, "distance_measure", .varint) {
      measure = FindNearest.Measure(
        rawValue: try field.enumeration(
          "google.firestore.v1.StructuredQuery.FindNearest.DistanceMeasure", Self.measures))
    } else if field.matches(4, "limit") {
      limit = Int(try field.int32Value())
    } else if field.matches(5, "distance_result_field") {
      let name = try field.string()
      resultField = name.isEmpty ? nil : FieldPath(field: name)
    } else if field.matches(6, "distance_threshold") {
      threshold = try field.doubleValue()
    }
  }

  func decoded() throws(WireError) -> FindNearest {
    guard let path else { throw .model(.emptyFieldPath) }
    guard let vector else { throw .model(.unsetValue) }
    guard let measure else { throw .model(.unknownDistanceMeasure) }
    var search = FindNearest(path, near: vector, by: measure, limit: limit)
    search.resultField = resultField
    search.threshold = threshold
    return search
  }
}
