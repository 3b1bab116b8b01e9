import DatabaseService
import Glibc
import KeyValueStore
import Testing

@Suite struct StatusTests {
  @Test(arguments: [ENOMEM, EMFILE, ENFILE]) func whatRunsOutIsExhausted(code: Int32) {
    let status = Status(StorageError.system(operation: "open", path: "x", code: code), database: nil)
    #expect(status.code == .resourceExhausted)
  }

  @Test func otherFailuresOfTheSystemAreInternal() {
    #expect(Status(StorageError.system(operation: "open", path: "x", code: EIO), database: nil).code == .internal)
  }
}
