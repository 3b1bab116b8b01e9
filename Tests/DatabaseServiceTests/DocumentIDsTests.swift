import Testing
import WireFormat
@testable import DatabaseService

@Suite struct DocumentIDsTests {
  private static let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

  @Test func idsLookLikeThoseOfClients() {
    var ids: Set<[UInt8]> = []
    for _ in 0..<20_000 { ids.insert(DocumentIDs.next()) }
    #expect(ids.count == 20_000)
    #expect(ids.allSatisfy { $0.count == 20 && $0.allSatisfy(Self.alphabet.contains) })
  }

  /// The IDs of a burst ascend and have random second halves. The next burst starts at a random position.
  @Test func burstsAscendFromRandomStarts() {
    var sequence = DocumentIDs()
    var moment: UInt64 = 1
    var firstCharacters: [UInt8: Int] = [:]
    var halves: Set<ArraySlice<UInt8>> = []
    for _ in 0..<2000 {
      var burst: [[UInt8]] = []
      for _ in 0..<20 {
        burst.append(sequence.next(at: moment))
        moment += DocumentIDs.burstPauseNanoseconds
      }
      moment += 1
      // A burst does not ascend only if the numbers wrap around, which is very rare.
      #expect(zip(burst, burst.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) } || burst[0][0] == 0x7A)
      #expect(Set(burst.map { $0.prefix(4) }).count <= 2)
      halves.formUnion(burst.map { $0.suffix(10) })
      firstCharacters[burst[0][0], default: 0] += 1
    }
    #expect(halves.count == 40_000)
    // 2,000 bursts begin with each of 62 characters about 32 times.
    #expect(firstCharacters.count == 62)
    #expect(firstCharacters.values.allSatisfy { $0 < 100 })
  }

  @Test func longBurstsChangeTheirPrefix() {
    var sequence = DocumentIDs()
    let ids = (0..<10 * DocumentIDs.burstIDsMax).map { _ in sequence.next(at: 1) }
    // These are ten bursts. Each spans at most the end of one prefix and the start of the next.
    #expect((2...20).contains(Set(ids.map { $0.prefix(4) }).count))
    #expect(zip(ids, ids.dropFirst()).count { $1.lexicographicallyPrecedes($0) } <= 10)
  }
}
