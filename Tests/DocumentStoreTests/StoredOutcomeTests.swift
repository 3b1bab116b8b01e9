import DocumentModel
import Testing
import TestSupport
@testable import DocumentStore

/// The encoded outcomes of commits, and the digests of their writes.
@Suite struct StoredOutcomeTests {
  private static func random(_ random: inout SplitMix) -> StoredOutcome {
    let version = Timestamp(
      uncheckedMicroseconds: 1_800_000_000_000_000 + Int64.random(in: 0..<1 << 40, using: &random))
    var outcome = CommitOutcome(version: version, results: [])
    for _ in 0..<random.pick([0, 1, 1, 3, 10]) {
      let time = random.pick([version, version, nil, Timestamp(uncheckedMicroseconds: 5), .earliest])
      let values = (0..<random.pick([0, 0, 0, 1, 2, 20])).map { _ in
        random.pick([
          Value.null, .integer(.min), .integer(7), .double(-0.0), .double(.nan), .double(1.5), .timestamp(version),
        ])
      }
      outcome.results.append(WriteResult(updateTime: time, transformResults: values))
    }
    return StoredOutcome(digest: random.next(), outcome: outcome)
  }

  @Test(arguments: [1, 2, 3] as [UInt64]) func outcomesRoundTrip(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    for _ in 0..<100 {
      let stored = Self.random(&random)
      let read = try #require(stored.bytes.withUnsafeBytes { StoredOutcome($0) }, "seed \(seed)")
      // The bytes show what == does not: NaN, and the sign of zero.
      #expect(read.bytes == stored.bytes, "seed \(seed)")
      #expect(read.digest == stored.digest && read.outcome.version == stored.outcome.version, "seed \(seed)")
      #expect(read.outcome.results.map(\.updateTime) == stored.outcome.results.map(\.updateTime), "seed \(seed)")
      #expect(
        read.outcome.results.map(\.transformResults.count) == stored.outcome.results.map(\.transformResults.count))
    }
  }

  /// Damaged bytes are refused or read as another outcome, and cost no more than a few megabytes.
  @Test(arguments: [4, 5, 6] as [UInt64]) func damagedBytesDoNotTrap(seed: UInt64) {
    var random = SplitMix(seed: seed)
    for _ in 0..<500 {
      var bytes = Self.random(&random).bytes
      for _ in 0..<random.pick([1, 2, 5]) {
        let place = Int.random(in: 0..<min(bytes.count, 60), using: &random)
        switch Int.random(in: 0..<3, using: &random) {
        case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
        case 1: bytes.removeSubrange(place...)
        default: bytes.insert(random.pick([0xF0, 0xF3, 0xF7, 0xFF, 0]), at: place)
        }
        if bytes.isEmpty { break }
      }
      _ = bytes.withUnsafeBytes { StoredOutcome($0) }
    }
  }

  @Test func everyPartOfAWriteChangesTheDigest() {
    let increment = FieldTransform(field("n"), .increment(1))
    var variants: [[Write]] = [
      [], [.set("c/a", ("n", 1))], [.set("c/b", ("n", 1))], [.set("c/a", ("n", 2))], [.set("c/a", ("m", 1))],
      [.set("c/a", ("n", 1)), .set("c/a", ("n", 1))], [.merge("c/a", ["n"], ("n", 1))], [.merge("c/a", [], ("n", 1))],
      [.merge("c/a", ["n", "m"], ("n", 1))], [.merge("c/a", ["n.m"], ("n", 1))], [.delete("c/a")],
      [.verify("c/a", if: .exists(true))], [.delete("c/a", if: .exists(true))], [.delete("c/a", if: .exists(false))],
      [.delete("c/a", if: .updateTime(.earliest))], [.delete("c/a", if: .updateTime(.latest))],
    ]
    let kinds: [FieldTransform.Kind] = [
      .requestTime, .increment(1), .increment(2), .increment(.double(1)), .maximum(1), .minimum(1),
      .appendMissingElements([1]), .appendMissingElements([1, 1]), .removeAllFromArray([1]),
    ]
    variants += kinds.map { [.set("c/a", ("n", 1), transforms: [FieldTransform(field("n"), $0)])] }
    variants += [
      [.set("c/a", ("n", 1), transforms: [increment, increment])],
      [.set("c/a", ("n", 1), transforms: [FieldTransform(field("m"), .increment(1))])],
    ]
    #expect(Set(variants.map { CommitDigest.of($0) }).count == variants.count)
    #expect(CommitDigest.of(variants[1]) == CommitDigest.of([.set("c/a", ("n", 1))]))
    // Nodes of different releases compare digests, so they must not change.
    #expect(CommitDigest.of([.set("c/a", ("n", 1), transforms: [increment])]) == 6_595_103_160_198_512_660)
  }

  @Test func idsHaveSixteenBytes() throws {
    let bytes = (0..<16).map { UInt8(240 + $0) }
    let id = try #require(RequestID(bytes: bytes))
    #expect(id.bytes == bytes)
    #expect(RequestID(bytes: bytes.dropLast()) == nil && RequestID(bytes: bytes + [0]) == nil)
    #expect(Set((0..<100).map { id.part($0) } + [id]).count == 101)
  }
}
