import DocumentModel
import Testing
@testable import DatabaseService

@Suite struct DocumentIDsTests {
  private static let alphabet = Set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789".utf8)

  @Test func idsLookLikeThoseOfClients() {
    var ids: Set<[UInt8]> = []
    for _ in 0..<20_000 { ids.insert(DocumentIDs.next()) }
    #expect(ids.count == 20_000)
    #expect(ids.allSatisfy { $0.count == 20 && $0.allSatisfy(Self.alphabet.contains) })
  }

  /// The IDs of a burst ascend and have random second halves.
  @Test func burstsAscend() {
    var sequence = DocumentIDs()
    var halves: Set<ArraySlice<UInt8>> = []
    for start in 1...2000 {
      let burst = (0..<20).map { sequence.next(at: UInt64(start) * 1_000_000_000 + $0) }
      // A burst does not ascend only if the numbers wrap around, which is very rare.
      #expect(zip(burst, burst.dropFirst()).allSatisfy { $0.lexicographicallyPrecedes($1) } || burst[0][0] == 0x7A)
      #expect(Set(burst.map { $0.prefix(4) }).count <= 2)
      halves.formUnion(burst.map { $0.suffix(10) })
    }
    #expect(halves.count == 40_000)
  }

  /// Nodes of several builds derive the same ID from a request. A change of these texts breaks clusters.
  @Test func idsOfRequestsAreFixed() throws {
    let requests: [([UInt8], String)] = [
      (Array(repeating: 0, count: 16), "00000000000000000000"),
      (Array(0..<16), "01IYT0XLWRglqewhlWlr"),
      (Array(repeating: 255, count: 16), "ygHa16AHYFygHa16AHYF"),
    ]
    for (bytes, text) in requests {
      let request = try #require(RequestID(bytes: bytes))
      #expect(String(decoding: DocumentIDs.id(of: request), as: UTF8.self) == text)
    }
  }
}
