import Hosting
import Synchronization
import Testing

@testable import HostingAPI

/// The pages that are known, and what they and the requests that wait may take.
@Suite struct PageTableTests {
  private static func key(_ number: Int) -> PageKey {
    PageKey(generation: 1, site: 0, path: Array("/\(number)".utf8), languages: .none)
  }

  private static func page(bytes: Int) -> HostedPage {
    HostedPage(.redirect(location: String(repeating: "x", count: bytes), status: 301), isTranslated: false)
  }

  private static func known(_ number: Int, in table: PageTable, now: Int) -> Bool {
    let key = key(number)
    return key.path.withUnsafeBytes { table.page(1, 0, $0, .none, now: now) } != nil
  }

  @Test func pagesAreDroppedBeforeTheirBytesAreTooMany() {
    let table = PageTable(bytesMax: 100_000)
    for number in 0..<1000 {
      #expect(table.join(Self.key(number), now: 0) { _ in } == .first)
      _ = table.finish(Self.key(number), .success(Self.page(bytes: 20_000)), now: 0)
      #expect(Self.known(number, in: table, now: 1))
      #expect(table.heldBytes >= 20_000 && table.heldBytes <= 100_000)
    }
    // A page that is larger than the table is sent, but not known afterwards.
    #expect(table.join(Self.key(-1), now: 0) { _ in } == .first)
    _ = table.finish(Self.key(-1), .success(Self.page(bytes: 200_000)), now: 0)
    #expect(!Self.known(-1, in: table, now: 1) && table.heldBytes <= 100_000)
  }

  @Test func expiredPagesAreDroppedByTheNextLookUp() {
    let table = PageTable()
    for number in 0..<100 {
      #expect(table.join(Self.key(number), now: 0) { _ in } == .first)
      _ = table.finish(Self.key(number), .success(Self.page(bytes: 100)), now: 0)
    }
    #expect(table.count == 100)
    #expect(table.join(Self.key(100), now: HostingLimits.knownMillisecondsMax) { _ in } == .first)
    #expect(table.count == 1 && table.heldBytes == 0)
  }

  @Test func requestsThatWaitAreCounted() {
    let table = PageTable(waitingMax: 4)
    #expect(table.join(Self.key(0), now: 0) { _ in } == .first)
    #expect(table.join(Self.key(0), now: 0) { _ in } == .waits)
    #expect(table.join(Self.key(1), now: 0) { _ in } == .first)
    #expect(table.join(Self.key(0), now: 0) { _ in } == .waits)
    #expect(table.join(Self.key(0), now: 0) { _ in } == .refused)
    #expect(table.join(Self.key(2), now: 0) { _ in } == .refused)
    #expect(table.finish(Self.key(0), .failure(.busy), now: 0).count == 2)
    #expect(table.finish(Self.key(1), .success(Self.page(bytes: 1)), now: 0).isEmpty)
    #expect(table.join(Self.key(0), now: 0) { _ in } == .first)
  }

  @Test func filesAreOpenOnlyWithALease() {
    let budget = OpenFileBudget(filesMax: 2)
    var leases = [budget.take(), budget.take()]
    #expect(leases.allSatisfy { $0 != nil } && budget.take() == nil)
    leases.removeLast()
    #expect(budget.take() != nil)
  }
}
