/// The reason why a pipeline is invalid or cannot be completed. ``description`` names the stage and is the text that
/// clients receive.
package struct PipelineError: Error, Equatable, Sendable, CustomStringConvertible {
  /// The status that the client receives.
  package enum Code: Sendable {
    case invalidArgument
    case failedPrecondition
    case resourceExhausted
    case deadlineExceeded
    case unimplemented
  }

  package let code: Code
  /// The stages that contain the error, from the outermost: the number of the stage in its pipeline, from 1, and its
  /// name. Empty if the error is in the request itself.
  private var stages: [(number: Int, name: String)] = []
  private let reason: String

  init(_ reason: String, _ code: Code = .invalidArgument) {
    self.reason = reason
    self.code = code
  }

  /// Whether the error names a stage.
  var isPlaced: Bool { !stages.isEmpty }

  /// Returns the error inside a stage.
  func inside(_ number: Int, _ name: String) -> PipelineError {
    var error = self
    error.stages.insert((number, name), at: 0)
    return error
  }

  package static func == (a: PipelineError, b: PipelineError) -> Bool {
    a.code == b.code && a.description == b.description
  }

  package var description: String {
    stages.map { "Stage \($0.number) (\($0.name)): " }.joined() + reason
  }
}
