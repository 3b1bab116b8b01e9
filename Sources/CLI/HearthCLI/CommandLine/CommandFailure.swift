import DatabaseService
import DocumentModel
import Files
import FixtureTree
import HearthServer
import KeyValue
import PostgresEngine
import WebClient

/// The exit codes other than 0.
enum ExitCode {
  /// An operation was rejected or failed.
  static let failure: Int32 = 1
  /// The verb does not accept the command line.
  static let usage: Int32 = 64
  /// The input data are invalid.
  static let data: Int32 = 65
  /// Another process does the same, so the verb did nothing.
  static let busy: Int32 = 75
}

/// The reason why a verb fails. The message says what failed, where, and what to do.
struct CommandFailure: Error {
  var exitCode: Int32
  var message: String
  /// Whether the same operation may succeed later.
  var isTemporary = false
  /// The status of the server's response, or `nil` if the failure is not a response.
  var httpStatus: Int?
  /// The pause that the server requests, as its header `Retry-After` contains it.
  var retryAfterMilliseconds: Int?

  init(_ exitCode: Int32, _ message: String) {
    self.exitCode = exitCode
    self.message = message
  }

  /// Returns whether a request that failed with this status may succeed later.
  static func isTemporary(httpStatus: Int) -> Bool {
    httpStatus >= 500 && ![501, 507].contains(httpStatus) || [408, 409, 429].contains(httpStatus)
  }

  /// Returns a failure for a wrong command line.
  static func usage(_ message: String) -> CommandFailure { CommandFailure(ExitCode.usage, message) }

  /// Returns a failure for an operation that was rejected or failed.
  static func failed(_ message: String) -> CommandFailure { CommandFailure(ExitCode.failure, message) }

  /// Returns a failure for invalid input data.
  static func data(_ message: String) -> CommandFailure { CommandFailure(ExitCode.data, message) }

  /// Converts an error of any layer to an exit code and a message.
  init(_ error: any Error) {
    switch error {
    case let failure as CommandFailure: self = failure
    case let error as FixtureTreeError: self.init(ExitCode.data, error.description)
    case let error as StorageError: self.init(ExitCode.failure, error.description)
    case FilesError.storage(let error): self.init(ExitCode.failure, error.description)
    case FilesError.system(let operation, let path, let code):
      self.init(ExitCode.failure, StorageError.system(operation: operation, path: path, code: code).description)
    case FilesError.full: self.init(ExitCode.failure, "the file system is full")
    case HearthError.data(let text): self.init(ExitCode.data, text)
    case let error as HearthError: self.init(ExitCode.failure, error.description)
    case PostgresFailure.notAURL: self.init(ExitCode.usage, PostgresFailure.notAURL.description)
    case let error as PostgresFailure: self.init(ExitCode.failure, error.description)
    case let error as ClusterKeyFailure: self.init(ExitCode.failure, error.description)
    case let error as HTTPClientError: self.init(ExitCode.failure, error.description)
    case let error as ModelError: self.init(ExitCode.data, error.description)
    case let error as Status: self.init(ExitCode.failure, error.fault ?? error.message)
    default: self.init(ExitCode.failure, String(describing: error))
    }
  }
}
