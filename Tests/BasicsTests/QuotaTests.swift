import Basics
import Synchronization
import Testing
import TestSupport

@Suite struct QuotaTests {
  @Test func takesUpToTheLimit() {
    let quota = Quota(.streams, of: "shop", limit: 3)
    #expect(quota.take(2) && quota.take(1) && quota.take(0))
    #expect(!quota.take(1) && quota.used == 3 && quota.refusals == 1)
    quota.give(2)
    #expect(quota.take(2) && quota.used == 3)
    // A limit below the amount in use refuses growth only.
    quota.setLimit(1)
    #expect(!quota.take(1) && quota.used == 3)
    quota.give(3)
    quota.setLimit(nil)
    #expect(quota.limit == nil && quota.take(1 << 40))
    #expect(!quota.take(.max), "the sum would overflow")
  }

  @Test func growthOfAStoreIsCompared() throws {
    let quota = Quota(.accounts, of: "shop", limit: 10)
    try quota.check(growthFrom: 9, to: 10)
    try quota.check(growthFrom: 20, to: 19)
    #expect(throws: quota.error) { try quota.check(growthFrom: 10, to: 11) }
    #expect(
      quota.error.message
        == "Project shop has reached its quota of 10 accounts. Delete accounts, or ask the operator of the server to "
        + "raise quota-accounts.")
  }

  @Test func concurrentUsersTakeNoMoreThanTheLimit() {
    let quota = Quota(.documents, of: "shop", limit: 1000)
    let taken = Mutex(0)
    onThreads(8) { _ in
      for _ in 0..<500 where quota.take(3) { taken.withLock { $0 += 3 } }
    }
    #expect(taken.withLock { $0 } == 999 && quota.used == 999)
  }

  @Test func requestsAreRestoredEvenly() {
    let now = Mutex<Int64>(1_000_000_000)
    var limits = QuotaLimits()
    limits[.requests] = 60
    let quotas = ProjectQuotas(of: "shop", limits) { now.withLock { $0 } }
    for _ in 0..<60 { #expect(quotas.requestRate.refusal() == nil) }
    let refusal = quotas.requestRate.refusal()
    #expect(refusal?.seconds == 1 && refusal?.error.message.contains("60 requests per minute") == true)
    now.withLock { $0 += 2_000_000_000 }
    #expect(quotas.requestRate.refusal() == nil && quotas.requestRate.refusal() == nil)
    #expect(quotas.requestRate.refusal() != nil && quotas.requests.refusals == 2)
    quotas.apply(QuotaLimits())
    #expect(!quotas.requestRate.isLimited && quotas.requestRate.refusal() == nil)
  }

  @Test func projectsTakeTheLimitsThatTheyDoNotSet() {
    var (own, server) = (QuotaLimits(), QuotaLimits())
    own[.files] = 5
    (server[.files], server[.accounts]) = (7, 8)
    let filled = own.filled(from: server)
    #expect(filled[.files] == 5 && filled[.accounts] == 8 && filled[.documents] == nil)
  }
}
