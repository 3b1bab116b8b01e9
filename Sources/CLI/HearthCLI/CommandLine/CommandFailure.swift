import DatabaseService
import DocumentModel
import Files
import FixtureTree
import HearthServer
import KeyValue
import Transport

/// The exit codes beside 0.
enum ExitCode {
  /// An operation was refused or failed.
  static let failure: Int32 = 1
  /// The command line is not what the verb takes.
  static let usage: Int32 = 64
  /// The input data are not what they should be.
  static let data: Int32 = 65
}

/// Why a verb ends without success: what, where, what to do, in one text.
struct CommandFailure: Error {
  var exitCode: Int32
  var message: String
  /// Whether the same may succeed later.
  var mayPass = false
  /// What a server answered, where one did.
  var httpStatus: Int?

  init(_ exitCode: Int32, _ message: String) {
    self.exitCode = exitCode
    self.message = message
  }

  /// Whether what a server answered with this status may succeed later.
  static func mayPass(httpStatus: Int) -> Bool {
    httpStatus >= 500 && ![501, 507].contains(httpStatus) || [408, 409, 429].contains(httpStatus)
  }

  /// Wrong usage.
  static func usage(_ message: String) -> CommandFailure { CommandFailure(ExitCode.usage, message) }

  /// Refused or failed.
  static func failed(_ message: String) -> CommandFailure { CommandFailure(ExitCode.failure, message) }

  /// Bad input data.
  static func data(_ message: String) -> CommandFailure { CommandFailure(ExitCode.data, message) }

  /// What an error of any layer is to a person.
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
    case let error as HTTPClientError: self.init(ExitCode.failure, error.description)
    case let error as ModelError: self.init(ExitCode.data, error.description)
    case let error as Status: self.init(ExitCode.failure, error.fault ?? error.message)
    default: self.init(ExitCode.failure, String(describing: error))
    }
  }
}
