import DatabaseService
import DocumentModel
import Glibc
import HearthServer
import KeyValueStore
import Testing

@Suite struct StatusTests {
  @Test(arguments: [ENOMEM, EMFILE, ENFILE]) func whatRunsOutIsExhausted(code: Int32) {
    let status = Status(StorageError.system(operation: "open", path: "x", code: code), database: nil)
    #expect(status.code == .resourceExhausted)
  }

  @Test func whatIsServedIsTold() throws {
    let server = try TestServer(.production)
    let id = try #require(DatabaseID(project: "p", database: "other"))
    let message =
      "The database other does not exist for project p. "
      + "In production hearth serves the (default) database of the project that --project names."
    #expect(throws: Status(.notFound, message)) { try server.server.service.database(id) }
  }

  @Test func otherFailuresOfTheSystemAreInternal() {
    #expect(Status(StorageError.system(operation: "open", path: "x", code: EIO), database: nil).code == .internal)
  }
}
