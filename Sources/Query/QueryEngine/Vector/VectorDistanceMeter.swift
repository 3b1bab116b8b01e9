import DocumentModel
import WireFormat

/// Measures how far stored vectors are from one vector.
///
/// Reads components straight from the stored bytes and allocates nothing.
struct VectorDistanceMeter {
  private let search: FindNearest
  /// The square root of the sum of the squares of the query vector.
  private let norm: Double
  /// No squared distance above this can be a result whatever else is found.
  private let squaredMax: Double

  init(_ search: FindNearest) {
    self.search = search
    norm = search.vector.reduce(0) { $0 + $1 * $1 }.squareRoot()
    squaredMax = search.threshold.map { $0 < 0 ? -1 : Self.squaredBound($0) } ?? .infinity
  }

  /// A document's distance, or `nil` where it is no result: its field is missing, no vector, one of other dimensions,
  /// beyond the threshold, or surely farther than `farthest`.
  /// - Throws: ``WireError`` when the stored bytes are no fields.
  func distance(of fields: EncodedMap, farthest: Double?) throws(WireError) -> Double? {
    guard let value = try fields.value(at: search.field), let vector = try EncodedVector(value),
      vector.count == search.vector.count
    else { return nil }
    guard let distance = try distance(to: vector, farthest: farthest) else { return nil }
    guard let threshold = search.threshold else { return distance }
    return (search.measure == .dotProduct ? distance >= threshold : distance <= threshold) ? distance : nil
  }

  /// Where a distance stands among others.
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

  /// A number such that the root of whatever is above it is above `distance`: a little more than its square, for the
  /// rounding of the root.
  private static func squaredBound(_ distance: Double) -> Double {
    let square = distance * distance
    return distance.isNaN ? .infinity : (square + square * 4 * .ulpOfOne).nextUp
  }

  /// `withUnsafeBufferPointer` rethrows untyped, so the outcome travels as a value.
  private func withQueryVector<R>(
    _ body: (UnsafeBufferPointer<Double>) throws(WireError) -> R
  ) throws(WireError) -> R {
    let outcome: Result<R, WireError> = search.vector.withUnsafeBufferPointer { query in
      do throws(WireError) { return .success(try body(query)) } catch { return .failure(error) }
    }
    return try outcome.get()
  }
}
