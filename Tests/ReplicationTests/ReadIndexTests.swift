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
    let index = ReadIndex(epoch: 3, sequence: 1 << 40, configuration: EntryFeed.ownerOnly)
    var bytes: [UInt8] = []
    index.encode(answering: 7, to: &bytes)
    #expect(bytes.count == ReadIndex.answerBytes)
    let (number, read) = bytes.withUnsafeBytes(ReadIndex.decode)
    #expect(number == 7 && read == index)
  }

  /// A replica can have commits that PostgreSQL lost, with the numbers of others. It has no entry of the owner's epoch then.
  @Test func aReplicaShowsAnIndexOfAnEpochThatItHas() throws {
    let tables = MemoryTables()
    let nodes = try (1...2).map { number in try TestNode(number, Line { tables.perform($0) }) }
    for node in nodes { try node.start() }
    let owner = try TestNode.owner(of: nodes)
    let other = try #require(nodes.first { $0 !== owner })
    for _ in 0..<5 { try owner.increment(.files) }
    let member = try #require(other.member)
    let head = tables.state.withLock { $0.head }
    func shows(_ sequence: UInt64, _ epoch: UInt64) -> Bool {
      member.hasApplied(ReadIndex(epoch: epoch, sequence: sequence, configuration: 1))
    }
    // One more commit confirms the last one.
    try owner.increment(.files)
    try #require(OtherProcess.eventually { shows(head.sequence, head.epoch) })
    #expect(shows(1, head.epoch))
    #expect(!shows(head.sequence, head.epoch + 1) && !shows(head.sequence + 100, head.epoch))
    // The next owner's entries follow all of the former one, so they show what it had acknowledged.
    try owner.stop()
    try other.becomesOwner()
    #expect(shows(head.sequence, head.epoch) && shows(head.sequence, head.epoch + 1))
    try other.stop()
  }
}
