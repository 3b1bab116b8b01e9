import DocumentModel
import Testing
import TestSupport
import WireFormat

@Suite struct EncodedVectorTests {
  @Test func computesDistancesFromTheComponents() throws {
    var random = SplitMix(seed: 7)
    for count in [1, 2, 3, 4, 5, 7, 8, 63, 64, 65, 128, 129, 1000, 2048] {
      let (a, b) = (Self.vector(count, &random), Self.vector(count, &random))
      let squared = zip(a, b).reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) }
      let dot = zip(a, b).reduce(0) { $0 + $1.0 * $1.1 }
      let squares = a.reduce(0) { $0 + $1 * $1 }
      try Self.withVector(.vector(a)) { vector in
        let vector = try #require(vector)
        #expect(vector.count == count)
        try b.withUnsafeBufferPointer { b in
          let found = try #require(try vector.squaredDistance(to: b, bound: .infinity))
          #expect(abs(found - squared) <= squared * 1e-12, "\(count)")
          // A distance that does not exceed the bound is summed to the end, with the same result.
          #expect(try vector.squaredDistance(to: b, bound: found) == found)
          let products = try vector.products(with: b)
          #expect(abs(products.dot - dot) <= squares * 1e-12 && abs(products.squares - squares) <= squares * 1e-12)
          if count >= 4 { #expect(try vector.squaredDistance(to: b, bound: -1) == nil) }
        }
      }
    }
  }

  @Test func sumsFewComponentsInOrder() throws {
    let (a, b) = ([1e16, 1, -1e16], [1.0, 1, 1])
    try Self.withVector(.vector(a)) { vector in
      let dot = try b.withUnsafeBufferPointer { try vector?.products(with: $0).dot }
      #expect(dot == 0)
    }
  }

  @Test(arguments: [.null, 1, [1.0, 2.0], map(("value", [1.0])), map(("a", 1), ("b", 2))] as [Value])
  func otherValuesAreNotVectors(value: Value) throws {
    try Self.withVector(value) { #expect($0 == nil) }
  }

  @Test func refusesComponentsThatAreNotDoubles() throws {
    // A client can send these components, but the canonical form never has them.
    for components in [[1.0, 2], [1, "abcdefghi"]] as [[Value]] {
      let damaged = map(("__type__", "__vector__"), ("value", .array(components)))
      var bytes: [UInt8] = []
      ValueCodec.append(damaged, to: &bytes)
      _ = bytes.withUnsafeBytes { bytes in
        #expect(throws: WireError.self) {
          guard let vector = try EncodedVector(EncodedValue(bytes)) else { return }
          let other = [Double](repeating: 1, count: vector.count)
          _ = try other.withUnsafeBufferPointer { try vector.products(with: $0) }
        }
      }
    }
  }

  private static func vector(_ count: Int, _ random: inout SplitMix) -> [Double] {
    (0..<count).map { _ in Double.random(in: -1...1, using: &random) }
  }

  private static func withVector(_ value: Value, _ body: (EncodedVector?) throws -> Void) throws {
    var bytes: [UInt8] = []
    ValueCodec.append(value, to: &bytes)
    try bytes.withUnsafeBytes { try body(try EncodedVector(EncodedValue($0))) }
  }
}
