import DocumentModel
import WireFormat

/// Measures the distances of stored vectors from the query vector.
///
/// It reads components directly from the stored bytes and does not allocate.
struct VectorDistanceMeter {
  private let search: FindNearest
  /// The Euclidean norm of the query vector.
  private let norm: Double
  /// A vector with a larger squared distance cannot be a result, because of the threshold.
  private let squaredMax: Double

  init(_ search: FindNearest) {
    self.search = search
    norm = search.vector.reduce(0) { $0 + $1 * $1 }.squareRoot()
    squaredMax = search.threshold.map { $0 < 0 ? -1 : Self.squaredBound($0) } ?? .infinity
  }

  /// Returns a document's distance. Returns `nil` if the document is not a result: its field is missing, is not a
  /// vector, has other dimensions, or is beyond the threshold or certainly farther than `farthest`.
  /// - Throws: ``WireError`` if the stored bytes are malformed.
  func distance(of fields: EncodedMap, farthest: Double?) throws(WireError) -> Double? {
    guard let value = try fields.value(at: search.field), let vector = try EncodedVector(value),
      vector.count == search.vector.count
    else { return nil }
    guard let distance = try distance(to: vector, farthest: farthest) else { return nil }
    guard let threshold = search.threshold else { return distance }
    return (search.measure == .dotProduct ? distance >= threshold : distance <= threshold) ? distance : nil
  }

  /// The rank of a distance. Lower ranks are nearer.
  func rank(_ distance: Double) -> NearestHeap.Rank {
    NearestHeap.Rank(search.measure == .dotProduct ? -distance : distance)
  }

  private func distance(to vector: EncodedVector, farthest: Double?) throws(WireError) -> Double? {
    switch search.measure {
    case .euclidean:
      let bound = min(squaredMax, farthest.map(Self.squaredBound) ?? .infinity)
      return try withQueryVector { (query) throws(WireError) in
        try vector.squaredDistance(to: query, bound: bound)
      }?.squareRoot()
    case .cosine:
      let (dot, squares) = try withQueryVector { (query) throws(WireError) in try vector.products(with: query) }
      return 1 - dot / (norm * squares.squareRoot())
    case .dotProduct:
      return try withQueryVector { (query) throws(WireError) in try vector.products(with: query) }.dot
    }
  }

  /// Returns a bound such that the square root of any larger number is above `distance`. It is slightly more than
  /// the square, to allow for the rounding of the root.
  private static func squaredBound(_ distance: Double) -> Double {
    let square = distance * distance
    return distance.isNaN ? .infinity : (square + square * 4 * .ulpOfOne).nextUp
  }

  /// `withUnsafeBufferPointer` rethrows untyped errors, so the outcome is returned as a value.
  private func withQueryVector<R>(
    _ body: (UnsafeBufferPointer<Double>) throws(WireError) -> R
  ) throws(WireError) -> R {
    let outcome: Result<R, WireError> = search.vector.withUnsafeBufferPointer { query in
      do throws(WireError) { return .success(try body(query)) } catch { return .failure(error) }
    }
    return try outcome.get()
  }
}
