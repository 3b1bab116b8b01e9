import KeyValue
import LMDBEngine
import Testing
import TestSupport

/// Runs the contract suite on LMDB on disk and in memory.
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
}
