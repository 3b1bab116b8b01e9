/// A search for the documents whose vectors are nearest to a given vector (`StructuredQuery.FindNearest`).
///
/// The rest of the query selects the candidates. The search selects the results among them, and their order.
package struct FindNearest: Hashable, Sendable {
  /// The measure of the distance between two vectors. The raw values are the numbers on the wire.
  package enum Measure: Int, Sendable, CaseIterable {
    /// The square root of the sum of squared differences. Lower is nearer.
    case euclidean = 1
    /// 1 minus the cosine of the angle between the vectors, from 0 to 2. Lower is nearer. NaN for a vector of
    /// zeros.
    case cosine = 2
    /// The sum of products. Higher is nearer.
    case dotProduct = 3
  }

  /// The document field that holds the vector.
  package var field: FieldPath
  /// The vector to search near; at least one component.
  package var vector: [Double]
  package var measure: Measure
  /// The maximum number of documents to return, or 0 if the request has no limit. The query engine rejects a value
  /// outside 1 to ``Limits/nearestDocumentsMax``.
  package var limit: Int
  /// The top-level field of each result that receives the distance, or `nil` to omit it. Always one segment: dots
  /// are part of the name.
  package var resultField: FieldPath?
  /// The maximum distance of a result, or `nil` for no limit. For ``Measure/dotProduct`` it is the minimum product.
  package var threshold: Double?

  /// Creates a search without a threshold and without a result field.
  package init(_ field: FieldPath, near vector: [Double], by measure: Measure, limit: Int) {
    self.field = field
    self.vector = vector
    self.measure = measure
    self.limit = limit
  }

  /// Returns the components of a vector value, or `nil` if the value is not a vector.
  package static func components(of value: Value) -> [Double]? {
    guard case .map(let map) = value, let components = map.vectorComponents else { return nil }
    var numbers: [Double] = []
    for case .double(let number) in components { numbers.append(number) }
    return numbers.count == components.count ? numbers : nil
  }
}
