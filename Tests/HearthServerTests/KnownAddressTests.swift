import Synchronization
import Testing
import Transport

@testable import HearthServer

/// The way to the owner: directly, or through another node.
@Suite struct KnownAddressTests {
  private static let (owner, next) = (NodeAddress(host: "10.0.0.1", port: 1), NodeAddress(host: "10.0.0.2", port: 1))
  private static let (third, fourth) = (NodeAddress(host: "10.0.0.3", port: 1), NodeAddress(host: "10.0.0.4", port: 1))

  private final class Clock: Sendable {
    let seconds = Mutex<Double>(100)
    func pass(_ seconds: Double) { self.seconds.withLock { $0 += seconds } }
    var now: Int64 { Int64(seconds.withLock { $0 } * 1_000_000) }
  }

  private let clock = Clock()
  private let known: KnownAddress

  init() {
    known = KnownAddress { [clock] in clock.now }
    known.set(Self.owner)
  }

  @Test func aDetourLastsAsLongAsItIsConfirmed() {
    #expect(known.target == .node(Self.owner) && known.detour == nil && !known.hasTrustedDetour)
    #expect(known.confirmDetour(Self.third, to: Self.owner))
    #expect(known.target == .detour(Self.third) && known.address == Self.owner && known.hasTrustedDetour)
    for _ in 0..<5 {
      clock.pass(8)
      #expect(!known.hasTrustedDetour)
      #expect(!known.endDetour(isOverdue: true))
      // It is the same, so nothing changes.
      #expect(!known.confirmDetour(Self.third, to: Self.owner) && known.hasTrustedDetour)
    }
    clock.pass(11)
    #expect(known.endDetour(isOverdue: true) && !known.endDetour())
    #expect(known.target == .node(Self.owner))
  }

  @Test func anotherNodeTakesThePlaceOfOneThatDoesNotConfirm() {
    #expect(known.confirmDetour(Self.third, to: Self.owner))
    clock.pass(2)
    #expect(!known.confirmDetour(Self.fourth, to: Self.owner) && known.detour == Self.third)
    clock.pass(2)
    #expect(known.confirmDetour(Self.fourth, to: Self.owner) && known.detour == Self.fourth)
    #expect(known.endDetour() && known.target == .node(Self.owner))
  }

  @Test func aDetourIsToOneAddress() {
    #expect(!known.confirmDetour(Self.third, to: Self.next) && known.detour == nil)
    #expect(known.confirmDetour(Self.third, to: Self.owner))
    known.set(Self.owner)
    #expect(known.target == .detour(Self.third))
    known.set(Self.next)
    #expect(known.target == .node(Self.next))
    known.set(nil)
    #expect(known.target == .none && !known.confirmDetour(Self.third, to: Self.owner))
  }
}
