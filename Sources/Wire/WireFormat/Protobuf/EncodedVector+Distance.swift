extension EncodedVector {
  /// The sum of the squared differences to `vector`, or `nil` as soon as it is known to pass `bound`.
  ///
  /// Expects as many components on both sides. Sums in four lanes; the sum of fewer than four components is the plain
  /// one. Allocates nothing.
  /// - Throws: ``WireError/malformedProtobuf(_:)``.
  package func squaredDistance(
    to vector: UnsafeBufferPointer<Double>, bound: Double
  ) throws(WireError) -> Double? {
    precondition(vector.count == count, "vectors of different dimensions have no distance")
    var wrong: UInt32 = 0
    var lanes = SIMD4<Double>()
    var index = 0
    while index &+ 4 <= count {
      // One look in sixteen steps: what lies far away is left early, what lies near loses little.
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

  /// The sum of the products with `vector`, and of the squares of these components.
  ///
  /// Expects as many components on both sides. Sums as ``squaredDistance(to:bound:)``. Allocates nothing.
  /// - Throws: ``WireError/malformedProtobuf(_:)``.
  package func products(with vector: UnsafeBufferPointer<Double>) throws(WireError) -> (dot: Double, squares: Double) {
    precondition(vector.count == count, "vectors of different dimensions have no product")
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

  /// Components between two looks at the bound; a multiple of four.
  private static let blockComponents = 64

  @inline(__always)
  private static func four(_ vector: UnsafeBufferPointer<Double>, _ index: Int) -> SIMD4<Double> {
    SIMD4(vector[index], vector[index &+ 1], vector[index &+ 2], vector[index &+ 3])
  }

  private static func check(_ wrong: UInt32) throws(WireError) {
    guard wrong == 0 else { throw .malformedProtobuf("a component of a vector is no double") }
  }
}
