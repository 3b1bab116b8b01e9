import Basics
package import DocumentModel
import DocumentStore
import Glibc
import KeyValue
import PipelineEngine
import QueryEngine
import Watch
import WireFormat

/// The error of a failed request: a canonical code and the message that clients receive.
///
/// All errors of the layers below are converted to a status, in this file only.
package struct Status: Error, Equatable, Sendable {
  /// The canonical codes, with their numbers on the wire (firestore-api.md, section 1.4).
  package enum Code: Int, Sendable {
    case cancelled = 1
    case unknown = 2
    case invalidArgument = 3
    case deadlineExceeded = 4
    case notFound = 5
    case alreadyExists = 6
    case permissionDenied = 7
    case resourceExhausted = 8
    case failedPrecondition = 9
    case aborted = 10
    case outOfRange = 11
    case unimplemented = 12
    case `internal` = 13
    case unavailable = 14
    case dataLoss = 15
    case unauthenticated = 16
  }

  package var code: Code
  package var message: String
  /// The details of a fault of the server, for the log only, because they may contain paths of files. `nil` if the
  /// client caused the error.
  package private(set) var fault: String?
  /// The time after which the client may try again, or `nil` if the client chooses it.
  package var retryAfterSeconds: Int?

  package init(_ code: Code, _ message: String) {
    self.code = code
    self.message = message
  }

  /// Creates the status of a fault of the server. Clients receive only the code and a generic message.
  package init(fault: String, _ code: Code = .internal) {
    self.init(code, code == .dataLoss ? Self.damaged : Self.hidden)
    self.fault = fault
  }

  private static let damaged = "Stored data is damaged."
  private static let hidden = "Internal error."
  private static let inDoubt =
    "The log of the server failed. The commit may have been stored: read its documents before you repeat it."
  private static let outOfMemory = "the server is out of memory or file descriptors; try again later"

  /// Converts an error of any layer to the status that a client of `database` receives.
  package init(_ error: any Error, database: DatabaseID?) {
    switch error {
    case let status as Status: self = status
    case let error as ModelError: self.init(.invalidArgument, error.description)
    case let error as WireError: self.init(.invalidArgument, error.description)
    case let error as CommitError: self.init(error, database: database)
    case let error as QuotaError: self.init(.resourceExhausted, error.message)
    case let error as StorageError: self.init(error)
    case let error as ScratchError: self.init(error)
    case let error as QueryError: self.init(.invalidArgument, error.description)
    case let error as PipelineError: self.init(Code(error.code), error.description)
    case WatchError.invalidArgument(let text): self.init(.invalidArgument, text)
    case WatchError.resourceExhausted(let text): self.init(.resourceExhausted, text)
    case WatchError.behind(let text): self.init(.unavailable, text)
    default: self.init(fault: "\(error)")
    }
  }

  private init(_ error: CommitError, database: DatabaseID?) {
    func name(_ key: DocumentKey) -> String {
      database.map { ResourceName(database: $0, path: key.path).text } ?? key.path.text
    }
    switch error {
    case .documentMissing(let key): self.init(.notFound, "No document to update: \(name(key))")
    case .documentExists(let key): self.init(.alreadyExists, "Document already exists: \(name(key))")
    case .existsAfterDelete:
      self.init(.invalidArgument, "Cannot delete then update an entity in the same request.")
    case .createAfterWrite:
      self.init(.invalidArgument, "Cannot upsert then insert an entity in the same request.")
    case .versionMismatch(_, let stored, let required):
      self.init(
        .failedPrecondition,
        "the stored version (\(stored)) does not match the required base version (\(required))")
    case .updateTimeInFuture(let key):
      self.init(
        .invalidArgument, "Invalid base version, it is greater than the stored version: \(name(key))")
    case .aborted(let path):
      self.init(
        .aborted,
        "Too much contention on these documents. Please try again."
          + (path.map { " (\($0.text) has changed)" } ?? ""))
    case .transactionOver(let isReadOnly):
      self.init(
        isReadOnly ? .invalidArgument : .aborted, "The referenced transaction has expired or is no longer valid.")
    case .transactionUnknown: self.init(.invalidArgument, "Invalid transaction.")
    case .transactionReadOnly: self.init(.invalidArgument, "Cannot modify entities in a read-only transaction.")
    case .readTimeInFuture: self.init(.invalidArgument, "The requested 'read_time' cannot be in the future.")
    case .readTimeBeforeDatabase:
      self.init(.invalidArgument, "The requested 'read_time' cannot be before database creation time.")
    case .readTimeTooOld: self.init(.failedPrecondition, "The requested 'read_time' is too old.")
    case .model(let error):
      if case .textAnalysisUnavailable = error {
        self.init(.failedPrecondition, error.description)
      } else {
        self.init(.invalidArgument, error.description)
      }
    case .wire(let error): self.init(.invalidArgument, error.description)
    case .storage(let error): self.init(error)
    case .denied(let text): self.init(.permissionDenied, text)
    case .tooLongForLoop: self.init(fault: "a commit was not planned again on another thread")
    case .idReused:
      self.init(.invalidArgument, "Another request with other writes has the same ID.")
    case .overQuota(let error): self.init(.resourceExhausted, error.message)
    case .overloaded(let limit):
      // Not UNAVAILABLE, which is for a server that stops. Clients retry a commit after both.
      self.init(
        .resourceExhausted,
        "More than \(limit) bytes of commits wait for the disk. Try again with exponential backoff.")
    }
  }

  /// Only failures of the system, a full disk among them, are faults for the log.
  private init(_ error: ScratchError) {
    switch error {
    case .system(_, _, let code):
      let isExhausted = [ENOMEM, EMFILE, ENFILE].contains(code)
      self.init(
        isExhausted ? .resourceExhausted : .internal, isExhausted ? Self.outOfMemory : Self.hidden)
      fault = error.description
    case .diskFull(let path):
      self.init(.resourceExhausted, error.description)
      fault = "\(error.description) Directory: \(path)"
    case .waitedTooLong, .tooManyWaiting, .queryMemory, .queryFile, .allFiles, .revoked:
      self.init(.resourceExhausted, error.description)
    }
  }

  /// Storage errors contain server paths: log them, and send clients only what they can act on.
  private init(_ error: StorageError) {
    let (code, message): (Code, String) =
      switch error {
      case .storageFull, .tooManyReaders, .tooManyDatabases: (.resourceExhausted, error.description)
      case .diskFull: (.resourceExhausted, "no space left on the disk of the server; free some, then try again")
      case .oversized: (.invalidArgument, error.description)
      case .locked, .openLog, .openReplica, .unfinishedCopy:
        (.failedPrecondition, "another process uses the data of this server; stop it, then try again")
      case .unsupportedFormat:
        (.failedPrecondition, "another version of hearth wrote the data of this server; use a newer hearth")
      case .exposed:
        (.failedPrecondition, "other users can read secrets of this server; its log names the file to protect")
      // Out of memory, address space or descriptors: usually too many databases are open.
      case .system(_, _, ENOMEM), .system(_, _, EMFILE), .system(_, _, ENFILE):
        (.resourceExhausted, Self.outOfMemory)
      case .corruption: (.dataLoss, Self.damaged)
      case .system, .rolledBack: (.internal, Self.hidden)
      // Not UNAVAILABLE: server libraries repeat a commit on their own then, which could do it twice.
      case .outcomeUnknown: (.internal, Self.inDoubt)
      case .notOwner: (.unavailable, "this node does not own the database; try again")
      }
    self.init(code, message)
    // An oversized key or value is the client's error, not a fault of the server.
    if code != .invalidArgument { fault = error.description }
  }
}

extension Status.Code {
  fileprivate init(_ code: PipelineError.Code) {
    switch code {
    case .invalidArgument: self = .invalidArgument
    case .failedPrecondition: self = .failedPrecondition
    case .resourceExhausted: self = .resourceExhausted
    case .deadlineExceeded: self = .deadlineExceeded
    case .unimplemented: self = .unimplemented
    }
  }
}
