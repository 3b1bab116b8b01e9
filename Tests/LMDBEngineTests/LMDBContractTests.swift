import KeyValue
import LMDBEngine
import Testing

/// The contract suite, run by LMDB on disk and in memory.
@Suite struct LMDBContractTests {
  @Test(arguments: KeyValueContract.cases)
  func inMemory(_ contract: KeyValueContract.Case) throws {
    let store = try LMDBStore.open(.inMemory())
    try contract.check(store)
  }

  @Test(arguments: KeyValueContract.cases)
  func onDisk(_ contract: KeyValueContract.Case) throws {
    let directory = try TemporaryDirectory()
    let store = try LMDBStore.open(LMDBOptions(path: directory.file("data.mdb")))
    try contract.check(store)
  }
}
