import DatabaseService
import Testing
import TestSupport

/// The allowances of callers.
@Suite struct RateLimiterTests {
  private let time = SteppedTime(0)

  private func limiter(_ rates: RequestRates) -> RateLimiter { RateLimiter(rates) { [time] in time.now * 1000 } }

  /// Returns the seconds that a caller must wait, or 0 if the request is admitted.
  private func wait(
    _ limiter: RateLimiter, _ caller: String, _ kind: RateLimiter.Kind = .userRequests, _ cost: Int = 1
  ) -> Int {
    do throws(Status) { try limiter.take(kind, cost) { $0.combine(caller) } } catch {
      #expect(error.code == .resourceExhausted)
      return error.retryAfterSeconds ?? -1
    }
    return 0
  }

  @Test func anAllowanceLastsAMinuteAndIsRestoredEvenly() {
    let limiter = limiter(RequestRates(userRequests: 60))
    for _ in 0..<60 { #expect(wait(limiter, "ann") == 0) }
    #expect(wait(limiter, "ann") == 1)
    #expect(wait(limiter, "bob") == 0)
    time.advance(seconds: 1)
    #expect(wait(limiter, "ann") == 0)
    #expect(wait(limiter, "ann") == 1)
    // An idle caller gets one minute, not more.
    time.advance(seconds: 3600)
    for _ in 0..<60 { #expect(wait(limiter, "ann") == 0) }
    #expect(wait(limiter, "ann") == 1)
    #expect(limiter.refusals(.userRequests) == 3)
    #expect(limiter.refusals(.addressRequests) == 0)
  }

  @Test func aLargeRequestDelaysTheNextOnes() {
    let limiter = limiter(RequestRates(userReads: 10, userWrites: 60))
    #expect(wait(limiter, "ann", .userWrites, 500) == 0)
    // 440 more than the minute allows, and one for the next request.
    #expect(wait(limiter, "ann", .userWrites) == 441)
    // A check consumes nothing, and a charge needs no allowance.
    for _ in 0..<100 { #expect(wait(limiter, "ann", .userReads, 0) == 0) }
    limiter.charge(.userReads, 12) { $0.combine("ann") }
    #expect(wait(limiter, "ann", .userReads, 0) == 18)
    #expect(wait(limiter, "ann") == 0)
  }

  @Test func theTextNamesTheLimit() {
    let limiter = limiter(RequestRates(userWrites: 1))
    #expect(wait(limiter, "ann", .userWrites) == 0)
    do throws(Status) {
      try limiter.take(.userWrites) { $0.combine("ann") }
      Issue.record("no limit")
    } catch {
      #expect(
        error.message == "Too many requests: the limit is 1 documents written per minute and user. Try again in 60 s.")
    }
  }

  /// Strangers can displace only callers who have consumed less than they have.
  @Test func manyCallersDoNotRestoreAnAllowance() {
    let limiter = limiter(RequestRates(addressRequests: 100))
    for _ in 0..<100 { #expect(wait(limiter, "busy", .addressRequests) == 0) }
    for number in 0..<4 * RateLimits.callersMax { _ = wait(limiter, "c\(number)", .addressRequests) }
    #expect(wait(limiter, "busy", .addressRequests) == 1)
  }
}
