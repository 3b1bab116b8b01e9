import LogEngine
import SharedLog
import Testing

/// One append until its outcome is certain, and the notes of takeovers.
@Suite struct EntryAppendTests {
  /// The entry may have been appended and truncated since, so its absence proves nothing.
  @Test func aTruncatedLogLeavesTheOutcomeUnknown() throws {
    let entry = SharedEntry(.batch, [1], after: LogPosition(sequence: 4, epoch: 2, chain: 5), epoch: 2, secret: 7)
    var append = EntryAppend(entry, behind: LogPosition(sequence: 4, epoch: 2, chain: 5))
    #expect(append.receive(.refused(found: nil)) == .refused)
    append = EntryAppend(entry, behind: LogPosition(sequence: 4, epoch: 2, chain: 5))
    #expect(append.receive(nil) == .perform(append.request))
    #expect(append.receive(.refused(found: nil)) == .unknown)
    #expect(append.receive(.refused(found: LogPosition(sequence: 5, epoch: 3, chain: 9))) == .refused)
    #expect(append.receive(.refused(found: entry.position)) == .perform(.settle(entry.position)))
    #expect(append.receive(.settled) == .appended)
  }

  @Test func takeoverNotesHaveOneForm() {
    let note = TakeoverNote(owner: NodeSession(node: 3, session: 1 << 40), floor: -5)
    #expect(TakeoverNote(note.body) == note)
    #expect(TakeoverNote([1, 2, 3]) == nil)
  }
}
