import ClusterTesting
import LogEngine
@testable import Replication
import SharedLog
import Synchronization
import Testing
import TestSupport

/// The answers of an owner to the question how far the log is.
@Suite struct ReadIndexTests {
  @Test func anAnswerIsReadAsItWasWritten() {
    let position = LogPosition(sequence: 1 << 40, epoch: 3, chain: .max - 1)
    let index = ReadIndex(position, configuration: EntryFeed.ownerOnly)
    var bytes: [UInt8] = []
    index.encode(answering: 7, to: &bytes)
    #expect(bytes.count == ReadIndex.answerBytes)
    let (number, read) = bytes.withUnsafeBytes(ReadIndex.decode)
    #expect(number == 7 && read == index)
  }

  private static func position(_ sequence: UInt64, chain: UInt64? = nil) -> LogPosition {
    LogPosition(sequence: sequence, epoch: 1, chain: chain ?? sequence &* 0x9E37_79B9)
  }

  @Test func theNewestPositionsAreKnown() {
    var positions = AppliedPositions()
    #expect(positions.comparison(with: Self.position(1)) == .ahead)
    // A replica that has nothing yet.
    #expect(!positions.isLast(LogPosition()))
    positions.append(LogPosition())
    #expect(positions.isLast(LogPosition()) && positions.comparison(with: Self.position(1)) == .ahead)
    for sequence in 5...1000 as ClosedRange<UInt64> { positions.append(Self.position(sequence)) }
    let kept = UInt64(AppliedPositions.countMax)
    for (sequence, expected) in [
      (1001, .ahead), (1000, .reached), (1000 - kept + 1, .reached), (1000 - kept, .unknown), (4, .unknown),
    ] as [(UInt64, ReadIndex.Comparison)] {
      #expect(positions.comparison(with: Self.position(sequence)) == expected, "\(sequence)")
    }
    // Another entry with the number of an applied one.
    #expect(positions.comparison(with: Self.position(990, chain: 1)) == .unknown)
    // After a gap, only what follows it is known.
    positions.append(Self.position(2000))
    #expect(positions.comparison(with: Self.position(1000)) == .unknown)
    #expect(positions.isLast(Self.position(2000)) && !positions.isLast(Self.position(2000, chain: 1)))
    positions.removeAll()
    #expect(positions.comparison(with: Self.position(2000)) == .ahead)
  }

  @Test func aReplicaReachesAnIndexByTheSameEntriesOnly() throws {
    let tables = MemoryTables()
    let nodes = try (1...2).map { number in try TestNode(number, Line { tables.perform($0) }) }
    for node in nodes { try node.start() }
    let owner = try TestNode.owner(of: nodes)
    let other = try #require(nodes.first { $0 !== owner })
    for _ in 0..<5 { try owner.increment(.files) }
    let member = try #require(other.member)
    func compared(_ position: LogPosition) -> ReadIndex.Comparison {
      member.comparison(with: ReadIndex(position, configuration: 1))
    }
    let index = try #require(owner.member?.readPosition(in: 1))
    #expect(index == tables.state.withLock { $0.head })
    #expect(member.readPosition(in: 1) == nil && owner.member?.readPosition(in: 2) == nil)
    // One more commit confirms the last one.
    try owner.increment(.files)
    try #require(OtherProcess.eventually { compared(index) == .reached })
    var position = index
    position.chain += 1
    #expect(compared(position) == .unknown)
    position.sequence += 100
    #expect(compared(position) == .ahead)
    // A node that was the owner has applied its own commits, too.
    try other.stop()
    let last = try #require(owner.member?.readPosition(in: 1))
    owner.member?.afterApplying {}
    try #require(
      OtherProcess.eventually {
        owner.member?.comparison(with: ReadIndex(last, configuration: 1)) == .reached
      })
    try owner.stop()
  }
}
