/// A search for the documents whose vectors lie nearest to one (`StructuredQuery.FindNearest`).
///
/// The rest of the query says which documents take part; the search says which of them are results, and in what order.
package struct FindNearest: Hashable, Sendable {
  /// How far two vectors are apart; the raw values are the wire's numbers.
  package enum Measure: Int, Sendable, CaseIterable {
    /// The square root of the sum of the squared differences; low is near.
    case euclidean = 1
    /// 1 less the cosine of the angle between them, 0 to 2; low is near. NaN for a vector of zeros.
    case cosine = 2
    /// The sum of the products; high is near.
    case dotProduct = 3
  }

  /// The field that holds a document's vector.
  package var field: FieldPath
  /// The vector to be near to; at least one component.
  package var vector: [Double]
  /// How nearness is measured.
  package var measure: Measure
  /// The most documents to return; 0 where the request named none. The engine refuses what is not 1 to
  /// ``Limits/nearestDocumentsMax``.
  package var limit: Int
  /// The top-level field that each result gets its distance in; `nil` for none. One name, whatever characters it has.
  package var resultField: FieldPath?
  /// The farthest that a result may be; `nil` for no bound. For dot products the least that it may have.
  package var threshold: Double?

  /// Searches for the documents nearest to a vector.
  package init(_ field: FieldPath, near vector: [Double], by measure: Measure, limit: Int) {
    self.field = field
    self.vector = vector
    self.measure = measure
    self.limit = limit
  }

  /// The components of a vector, or `nil` where the value is none.
  package static func components(of value: Value) -> [Double]? {
    guard case .map(let map) = value, let components = map.vectorComponents else { return nil }
    var numbers: [Double] = []
    for case .double(let number) in components { numbers.append(number) }
    return numbers.count == components.count ? numbers : nil
  }
}
