extension EncodedVector {
  /// Returns the sum of the squared differences to `vector`, or `nil` as soon as the sum is known to exceed
  /// `bound`.
  ///
  /// Both vectors must have the same number of components. The sum uses four lanes; fewer than four components are
  /// summed in order. Allocates nothing.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if a component is not a double.
  package func squaredDistance(
    to vector: UnsafeBufferPointer<Double>, bound: Double
  ) throws(WireError) -> Double? {
    precondition(vector.count == count, "distance of vectors with different dimensions")
    var wrong: UInt32 = 0
    var lanes = SIMD4<Double>()
    var index = 0
    while index &+ 4 <= count {
      // The bound is checked every 16 steps: distant vectors are rejected early, and near ones lose little time.
      let end = min(index &+ Self.blockComponents, count & ~3)
      while index < end {
        let difference = four(from: index, &wrong) - Self.four(vector, index)
        lanes += difference * difference
        index &+= 4
      }
      if (lanes[0] + lanes[1]) + (lanes[2] + lanes[3]) > bound { return nil }
    }
    var rest = 0.0
    while index < count {
      let difference = component(index, &wrong) - vector[index]
      rest += difference * difference
      index &+= 1
    }
    try Self.check(wrong)
    return ((lanes[0] + lanes[1]) + (lanes[2] + lanes[3])) + rest
  }

  /// Returns the sum of the products with `vector`, and the sum of the squares of these components.
  ///
  /// Both vectors must have the same number of components. Sums like ``squaredDistance(to:bound:)``. Allocates
  /// nothing.
  /// - Throws: ``WireError/malformedProtobuf(_:)`` if a component is not a double.
  package func products(with vector: UnsafeBufferPointer<Double>) throws(WireError) -> (dot: Double, squares: Double) {
    precondition(vector.count == count, "product of vectors with different dimensions")
    var wrong: UInt32 = 0
    var dots = SIMD4<Double>()
    var squares = SIMD4<Double>()
    var index = 0
    while index &+ 4 <= count {
      let mine = four(from: index, &wrong)
      dots += mine * Self.four(vector, index)
      squares += mine * mine
      index &+= 4
    }
    var (dotRest, squareRest) = (0.0, 0.0)
    while index < count {
      let mine = component(index, &wrong)
      dotRest += mine * vector[index]
      squareRest += mine * mine
      index &+= 1
    }
    try Self.check(wrong)
    return (
      ((dots[0] + dots[1]) + (dots[2] + dots[3])) + dotRest,
      ((squares[0] + squares[1]) + (squares[2] + squares[3])) + squareRest
    )
  }

  /// The number of components between two checks of the bound; a multiple of four.
  private static let blockComponents = 64

  @inline(__always)
  private static func four(_ vector: UnsafeBufferPointer<Double>, _ index: Int) -> SIMD4<Double> {
    SIMD4(vector[index], vector[index &+ 1], vector[index &+ 2], vector[index &+ 3])
  }

  private static func check(_ wrong: UInt32) throws(WireError) {
    guard wrong == 0 else { throw .malformedProtobuf("vector component is not a double") }
  }
}
