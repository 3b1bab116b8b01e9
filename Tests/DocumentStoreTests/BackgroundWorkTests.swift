import Testing

@testable import DocumentStore

/// Requests for work on indexes while other work ends.
@Suite struct BackgroundWorkTests {
  private let work = BackgroundWork(batch: IndexBatch(), observer: nil)

  /// New indexes can come after the last batch has found that nothing is left.
  @Test func aRequestDuringTheWorkIsNotForgotten() {
    #expect(work.beginIndexing())
    #expect(!work.beginIndexing())
    #expect(!work.endIndexing())
    // The work looks once more, and ends.
    #expect(work.endIndexing())
    #expect(work.beginIndexing())
    #expect(work.endIndexing())
  }

  @Test func stoppedWorkEndsAtOnce() {
    #expect(work.beginIndexing())
    #expect(!work.beginIndexing())
    work.stop()
    #expect(work.endIndexing())
    #expect(!work.beginIndexing())
  }
}
