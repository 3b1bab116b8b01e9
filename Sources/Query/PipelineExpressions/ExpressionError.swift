/// The reason that an expression is rejected before it is evaluated.
///
/// The caller adds the number of the stage and reports it as INVALID_ARGUMENT.
package enum ExpressionError: Error, Equatable, Sendable {
  case unknownFunction(String)
  /// The function is one that only `aggregate` or `search` can call.
  case misplacedFunction(String, stage: String)
  case wrongArgumentCount(function: String, expected: String, found: Int)
  case unknownOption(function: String, option: String)
  case unknownVariable(String)
  case unknownField(String)
  /// An argument that must be a constant has another form or an illegal value. The first argument has the number 1.
  case invalidArgument(function: String, argument: Int, reason: String)
  /// A nested pipeline is not the argument of `array` or `scalar`.
  case misplacedPipeline
  case tooDeep
  case tooLarge

  /// The message for the client.
  package var text: String {
    switch self {
    case .unknownFunction(let name): "unknown function '\(name)'"
    case .misplacedFunction(let name, let stage): "function '\(name)' is only allowed in a stage '\(stage)'"
    case .wrongArgumentCount(let name, let expected, let found):
      "function '\(name)' takes \(expected), but was given \(found)"
    case .unknownOption(let name, let option): "function '\(name)' has no option '\(option)'"
    case .unknownVariable(let name): "unknown variable '\(name)'"
    case .unknownField(let name): "field path '\(name)' is not valid"
    case .invalidArgument(let name, let argument, let reason):
      "argument \(argument) of function '\(name)' \(reason)"
    case .misplacedPipeline: "a nested pipeline is only allowed as the argument of 'array' and 'scalar'"
    case .tooDeep: "expressions are nested more than \(ExpressionLimits.depthMax) levels deep"
    case .tooLarge: "the expressions of a stage have more than \(ExpressionLimits.nodesMax) parts"
    }
  }
}
