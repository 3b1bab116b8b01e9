import LogEngine
@testable import Replication
import SharedLog
import Testing
import TestSupport

/// The entries that an owner sends to other nodes.
@Suite struct EntryFeedTests {
  private let log: [SharedEntry]

  init() {
    var entries = [SharedEntry(.takeover, [], after: .init(), epoch: 3, secret: 7)]
    for number in 1...20 as ClosedRange<UInt8> {
      let last = entries[entries.count - 1].position
      entries.append(SharedEntry(.batch, Array(repeating: number, count: 100), after: last, epoch: 3, secret: 7))
    }
    log = entries
  }

  /// The sequences after a sequence that can be sent, or another answer.
  private func sent(_ feed: EntryFeed, after sequence: UInt64, bytesMax: Int = .max) -> String {
    switch feed.entries(after: sequence, in: 3, bytesMax: bytesMax) {
    case .entries(let entries): entries.map { "\($0.position.sequence)" }.joined(separator: " ")
    case .behind: "behind"
    case .over: "over"
    }
  }

  /// A commit that no read of the owner shows must not be shown by another node.
  @Test func entriesAreSentInOrderWhenTheyAreReadable() {
    let feed = EntryFeed()
    #expect(sent(feed, after: 1) == "over")
    feed.begin(with: log[0])
    #expect(sent(feed, after: 1) == "")
    for entry in log[1...3] { feed.append(entry) }
    #expect(feed.head == 4)
    #expect(sent(feed, after: 1) == "")
    feed.noteReadable(3)
    #expect(sent(feed, after: 1) == "")
    feed.noteReadable(2)
    #expect(sent(feed, after: 1) == "2 3")
    #expect(sent(feed, after: 2) == "3")
    feed.noteReadable(4)
    #expect(sent(feed, after: 1, bytesMax: 150) == "2 3")
    #expect(sent(feed, after: 1, bytesMax: 1) == "2")
    #expect(sent(feed, after: 0) == "1 2 3 4")
    feed.end()
    #expect(sent(feed, after: 1) == "over")
    #expect(feed.epoch == nil)
  }

  @Test func onlyTheOwnerOfTheEpochForbidsReads() {
    let feed = EntryFeed()
    feed.begin(with: log[0])
    feed.setOwnerOnly(true, in: 3)
    // Nothing is announced before there is a configuration.
    #expect(feed.announced == nil)
    feed.setConfiguration(5)
    #expect(feed.announced == EntryFeed.ownerOnly && feed.configuration == 5)
    // The recording of an earlier epoch ends.
    feed.setOwnerOnly(false, in: 2)
    #expect(feed.announced == EntryFeed.ownerOnly)
    feed.setOwnerOnly(false, in: 3)
    #expect(feed.announced == 5)
    feed.setOwnerOnly(true, in: 3)
    feed.begin(with: log[0])
    feed.setConfiguration(5)
    #expect(feed.announced == 5)
  }

  @Test func theNewestEntriesAreKept() {
    let feed = EntryFeed(bytesMax: 450)
    feed.begin(with: log[0])
    for entry in log.dropFirst() {
      feed.append(entry)
      feed.noteReadable(entry.position.sequence)
    }
    #expect(sent(feed, after: 1) == "behind")
    #expect(sent(feed, after: 17) == "18 19 20 21")
    #expect(feed.head == 21)
  }

  /// An entry that is not readable yet is kept, however long it is: a stream still has to send it.
  @Test func entriesThatAreNotReadableAreKept() {
    let feed = EntryFeed(bytesMax: 1)
    feed.begin(with: log[0])
    for entry in log.dropFirst() { feed.append(entry) }
    for entry in log.dropFirst().reversed() { feed.noteReadable(entry.position.sequence) }
    #expect(sent(feed, after: 1) == (2...21).map(String.init).joined(separator: " "))
  }

  @Test func entriesOfAnotherEpochAndAfterAGapAreNotAdded() {
    let feed = EntryFeed()
    feed.begin(with: SharedEntry(.takeover, [], after: .init(), epoch: 4, secret: 7))
    feed.append(log[1])
    #expect(feed.head == 1)
    feed.begin(with: log[0])
    feed.append(log[2])
    #expect(feed.head == 1)
  }

  @Test func observersAreNotifiedOfChanges() {
    let feed = EntryFeed()
    let count = Observed(0)
    let observer = feed.observe { count.update { $0 += 1 } }
    feed.begin(with: log[0])
    feed.append(log[1])
    feed.noteReadable(2)
    feed.setConfiguration(5)
    #expect(count.value == 3 && feed.configuration == 5)
    feed.end()
    feed.end()
    #expect(count.value == 4)
    feed.end(observer)
    feed.begin(with: log[0])
    #expect(count.value == 4 && feed.configuration == nil)
  }
}
