import KeyValue
import LogEngine
import Testing
import TestSupport

@Suite struct CommitBatchTests {
  /// The form is on disk: the format, then each operation with its lengths.
  @Test func theFormIsFixed() {
    var batch = CommitBatch()
    batch.append(put: [1, 2], [3])
    batch.append(remove: [4])
    batch.append(removeRange: [5], [6, 7])
    batch.append(put: [8], Bytes(repeating: 9, count: 200))
    #expect(
      batch.bytes
        == [1] + [1, 2, 1, 1, 2, 3] + [2, 1, 4] + [3, 1, 2, 5, 6, 7] + [1, 1, 0xC8, 1, 8]
        + Bytes(repeating: 9, count: 200))
    #expect(batch.operations == 4)
  }

  @Test(arguments: [1, 2, 3] as [UInt64])
  func randomOperationsRoundTrip(seed: UInt64) throws {
    var random = SplitMix(seed: seed)
    for _ in 0..<200 {
      var batch = CommitBatch()
      for _ in 0..<(random.next() % 10) {
        let (a, b) = (Self.bytes(&random), Self.bytes(&random))
        switch random.next() % 3 {
        case 0: batch.append(put: a, b)
        case 1: batch.append(remove: a)
        default: batch.append(removeRange: a, b)
        }
      }
      #expect(try CommitBatch(checking: batch.bytes) == batch, "seed \(seed)")
      // A batch that is cut short is refused, or has fewer operations.
      for count in 0..<batch.bytes.count {
        let short = try? CommitBatch(checking: Bytes(batch.bytes.prefix(count)))
        #expect(short.map { $0.operations < batch.operations } ?? true, "seed \(seed), \(count) bytes")
      }
    }
  }

  private static func bytes(_ random: inout SplitMix) -> Bytes {
    (0..<(1 + random.next() % (random.chance(oneIn: 9) ? 300 : 5))).map { _ in UInt8(truncatingIfNeeded: random.next())
    }
  }

  @Test(
    arguments: [
      ([], "it is empty"),
      ([2], "its format is 2"),
      ([1, 4], "operation 4 is unknown"),
      ([1, 2], "it ends in a length"),
      ([1, 2, 0x80], "it ends in a length"),
      ([1, 2, 0], "a key has 0 bytes"),
      ([1, 2, 2, 7], "it ends 1 bytes early"),
      ([1, 2, 0x81, 0, 7], "a length is not in its shortest form"),
      ([1, 1, 1, 0xFF, 0xFF, 0xFF, 0xFF, 0x0F, 7], "a value has 4294967295 bytes"),
      ([1, 2, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "a length has more than 5 bytes"),
      ([1, 2, 0x81, 0x80, 2, 7], "a key has 32769 bytes"),
      ([1, 3, 0x82, 0x80, 2, 0, 7], "a bound has 32770 bytes"),
    ] as [(Bytes, String)])
  func damagedBytesAreRefused(_ bytes: Bytes, problem: String) {
    #expect(throws: CommitBatchError(offset: bytes.count > 1 ? 1 : 0, problem: problem)) {
      try CommitBatch(checking: bytes)
    }
  }

  @Test func longBoundsAreCutWithoutEffect() throws {
    var batch = CommitBatch()
    batch.append(removeRange: [1], Bytes(repeating: 2, count: 100_000))
    #expect(try CommitBatch(checking: batch.bytes) == batch)
    #expect(batch.bytes.count == 1 + 1 + 1 + 3 + 1 + KeyValueLimits.keyBytesMax + 1)
  }
}

extension CommitBatch {
  mutating func append(put key: Bytes, _ value: Bytes) {
    key.withUnsafeBytes { key in value.withUnsafeBytes { put(key, $0) } }
  }

  mutating func append(remove key: Bytes) { key.withUnsafeBytes { remove($0) } }

  mutating func append(removeRange lower: Bytes, _ upper: Bytes) {
    lower.withUnsafeBytes { lower in upper.withUnsafeBytes { removeRange(from: lower, to: $0) } }
  }
}
