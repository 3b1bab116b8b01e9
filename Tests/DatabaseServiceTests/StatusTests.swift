import Callers
import DatabaseService
import DocumentModel
import DocumentStore
import Glibc
import KeyValue
import Testing
import TestSupport
import WireFormat

/// The conversion of errors of all layers to the status that clients receive.
@Suite struct StatusTests {
  @Test(arguments: [ENOMEM, EMFILE, ENFILE]) func exhaustedResourcesAreResourceExhausted(code: Int32) {
    let status = Status(StorageError.system(operation: "open", path: "x", code: code), database: nil)
    #expect(status.code == .resourceExhausted)
  }

  private static let path = "/srv/people/data.mdb"

  /// Clients learn what they can do. Only the log contains the path.
  @Test(arguments: [
    (StorageError.storageFull(limitBytes: 1 << 20), Status.Code.resourceExhausted, "--map-size"),
    (.diskFull(path: path), .resourceExhausted, "no space left"),
    (.tooManyReaders(limit: 10), .resourceExhausted, "10 reader slots"),
    (.corruption(path: path, detail: "torn"), .dataLoss, "damaged"),
    (.locked(path: path, holder: "hearth, process 7"), .failedPrecondition, "another process"),
    (.unsupportedFormat(path: path, found: "9", supported: "1"), .failedPrecondition, "a newer hearth"),
    (.exposed(path: path), .failedPrecondition, "secrets"),
    (.openReplica(path: path), .failedPrecondition, "another process"),
    (.notOwner(of: path, owner: "10.0.0.1:8090"), .unavailable, "try again"),
    (.system(operation: "open", path: path, code: EMFILE), .resourceExhausted, "try again later"),
    (.system(operation: "write", path: path, code: EIO), .internal, "Internal error."),
  ])
  func pathsAppearOnlyInTheLog(error: StorageError, code: Status.Code, text: String) {
    for status in [Status(error, database: nil), Status(CommitError.storage(error), database: nil)] {
      #expect(status.code == code)
      #expect(status.message.contains(text), "\(status.message)")
      #expect(!status.message.contains("/"), "\(status.message)")
      #expect(status.fault == error.description)
    }
  }

  @Test func oversizedEntryIsAnInvalidArgument() {
    let status = Status(StorageError.oversized(keyBytes: 1, valueBytes: 2), database: nil)
    #expect(status.code == .invalidArgument && status.fault == nil)
  }

  @Test func unknownDatabaseNamesTheServedOne() throws {
    let id = try #require(DatabaseID(project: "p", database: "other"))
    let message =
      "The database other does not exist for project p. "
      + "In production hearth serves the databases that its configuration declares, by default (default)."
    #expect(throws: Status(.notFound, message)) {
      try ServiceFixture().service.getDocument(document("c/x"), in: id, as: ServiceFixture.admin) { _, _ in }
    }
  }

  @Test func otherSystemErrorsAreInternal() {
    #expect(Status(StorageError.system(operation: "open", path: "x", code: EIO), database: nil).code == .internal)
  }
}
