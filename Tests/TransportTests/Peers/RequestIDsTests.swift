import Testing
@testable import Transport

@Suite struct RequestIDsTests {
  /// The IDs of a burst ascend byte by byte, and their last eight bytes are random.
  @Test func idsOfABurstAscend() {
    let sequence = RequestIDs()
    let ids = (0..<1000).map { sequence.next(at: $0) }
    #expect(ids.allSatisfy { $0.count == 16 })
    // The numbers wrap around in one of about 17 billion runs.
    #expect(zip(ids, ids.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) })
    #expect(Set(ids.map { $0.suffix(8) }).count == 1000)
    #expect(Set(ids.map { $0.prefix(4) }).count <= 2)
  }

  @Test func anotherNodeHasOtherIDs() {
    let sequences = [RequestIDs(), RequestIDs()]
    let ids = (0..<200).map { sequences[Int($0 % 2)].next(at: $0) }
    #expect(Set(ids.map { $0.prefix(8) }).count == 200)
  }
}
