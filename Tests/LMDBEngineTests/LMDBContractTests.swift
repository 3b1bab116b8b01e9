import KeyValue
import LMDBEngine
import LogEngine
import Testing
import TestSupport

/// Runs the contract suite on LMDB, on disk and in memory, and on LMDB with a commit log.
@Suite struct LMDBContractTests {
  @Test(arguments: KeyValueContract.cases)
  func aStoreInMemoryMeetsTheContract(_ contract: KeyValueContract.Case) throws {
    let store = try LMDBStore.open(.inMemory())
    try contract.check(store)
  }

  @Test(arguments: KeyValueContract.cases)
  func aStoreOnDiskMeetsTheContract(_ contract: KeyValueContract.Case) throws {
    let directory = try TemporaryDirectory()
    let store = try LMDBStore.open(LMDBOptions(path: directory.file("data.mdb")))
    try contract.check(store)
  }

  /// Tables of 1 byte are flushed after every commit; the others never, or now and then.
  @Test(arguments: KeyValueContract.cases, [1, 40_000, 1 << 30])
  func aStoreWithALogMeetsTheContract(_ contract: KeyValueContract.Case, memtableBytesMax: Int) throws {
    let directory = try TemporaryDirectory()
    var settings = LoggedStoreSettings()
    settings.memtableBytesMax = memtableBytesMax
    settings.flushOperationsMax = 7
    let store = try LoggedStore.open(LMDBOptions(path: directory.file("data.mdb")), settings: settings)
    try contract.check(store)
  }
}
