import Basics
import DocumentModel
import KeyValue
import LMDBEngine
import Synchronization
import Testing
import TestSupport
@testable import DocumentStore

/// The outcomes of a group of commits whose write transaction fails. The steps of the writer are those of the test.
@Suite struct CommitOutcomeTests {
  private let queues = SteppedQueues(seed: 1)
  private let store: WatchedStore
  private let database: TestDatabase

  init() throws {
    store = WatchedStore(try LMDBStore.open(.inMemory(mapBytes: 64 << 20)))
    database = try TestDatabase(store, queues: queues.queues)
    store.forget()
  }

  /// Submits commits that the writer takes as one group, and returns their outcomes.
  private func commitTogether(_ count: Int) -> [Result<CommitOutcome, CommitError>] {
    let results = Mutex<[Result<CommitOutcome, CommitError>]>([])
    for number in 0..<count {
      database.database.commit(CommitRequest([.set("c/\(number)", ("a", 1))])) { result in
        results.withLock { $0.append(result) }
      }
    }
    #expect(results.withLock { $0.isEmpty })
    queues.runAll()
    return results.withLock { $0 }
  }

  private func stored() throws -> [Bool] { try (0..<3).map { try database.get("c/\($0)") != nil } }

  @Test func aGroupIsOneTransaction() throws {
    let results = commitTogether(3)
    #expect(try results.map { try $0.get().version }.count == 3)
    #expect(store.writes == 1)
    #expect(try stored() == [true, true, true])
  }

  /// The commits might be in the log: to repeat one could do it twice.
  @Test func aGroupWithAnUnknownOutcomeIsNotRepeated() throws {
    let failure = StorageError.outcomeUnknown(path: "log", detail: "fdatasync failed")
    store.failures.withLock { $0 = [failure] }
    let results = commitTogether(3)
    #expect(results == Array(repeating: .failure(.storage(failure)), count: 3))
    #expect(store.writes == 1)
    #expect(try stored() == [false, false, false])
    // Nobody may conclude from the store that they were not committed.
    #expect(throws: failure) { try database.database.lastMark() }
  }

  @Test func aGroupOfAnotherOwnerIsNotRepeated() throws {
    let failure = StorageError.notOwner(of: "p", owner: "http://b")
    store.failures.withLock { $0 = [failure] }
    #expect(commitTogether(3) == Array(repeating: .failure(.storage(failure)), count: 3))
    #expect(store.writes == 1)
    #expect(try database.database.lastMark() == 0)
  }

  @Test func aGroupThatCertainlyFailedIsTriedOneByOne() throws {
    let failure = StorageError.storageFull(limitBytes: 1)
    // The group fails, then the second of its commits.
    store.failures.withLock { $0 = [failure, nil, failure] }
    let results = commitTogether(3)
    #expect(results.map { (try? $0.get()) != nil } == [true, false, true])
    #expect(store.writes == 4)
    #expect(try stored() == [true, false, true])
  }
}
