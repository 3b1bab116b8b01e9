/// The reason that the evaluation of an expression failed on a row. It is trivial; the text is made on demand.
package struct ExpressionFault {
  /// The kinds of failures.
  package enum Reason: UInt8 {
    /// An argument has a wrong type.
    case type
    /// An argument is out of range or otherwise illegal.
    case argument
    case overflow
    case divisionByZero
    case invalidPattern
    case unknownZone
    /// `switch_on` found no match and has no default.
    case noCase
    /// `array_slice` and `substring` have a negative length.
    case negativeLength
    /// A map has the same key twice.
    case repeatedKey
    case differentDimensions
    case zeroVector
    /// `error` was called.
    case raised
    /// The nested pipeline failed. The runner of nested pipelines knows why.
    case subpipeline
    /// A value is nested too deeply.
    case depth
    /// The values of the row need more memory than ``ExpressionLimits/rowBytesMax``.
    case memory
    /// The row needs more work than ``ExpressionLimits/rowWorkMax``.
    case work
    /// Stored bytes are not canonical.
    case damaged
  }

  package let reason: Reason
  /// The function that failed, or `nil` if no function did.
  let function: ExpressionFunction?
  /// The number of the argument, from 1, or 0 if the failure is not about one argument.
  let argument: UInt8
  /// The message of `error`, in the evaluator's arena.
  let message: UnsafePointer<UnsafeRawBufferPointer>?

  init(
    _ reason: Reason, in function: ExpressionFunction? = nil, argument: Int = 0,
    message: UnsafePointer<UnsafeRawBufferPointer>? = nil
  ) {
    self.reason = reason
    self.function = function
    self.argument = UInt8(clamping: argument)
    self.message = message
  }

  /// The message for the client. It is valid as long as the value that contains the fault.
  package var text: String {
    if let message { return String(decoding: message.pointee, as: UTF8.self) }
    guard let function else { return cause }
    return argument == 0 ? "\(function.name): \(cause)" : "\(function.name): argument \(argument) \(cause)"
  }

  private var cause: String {
    switch reason {
    case .type: argument == 0 ? "the arguments have different types" : "has the wrong type"
    case .argument: argument == 0 ? "an argument is out of range" : "is out of range"
    case .overflow: "the result is out of range"
    case .divisionByZero: "division by zero"
    case .invalidPattern: argument == 0 ? "the pattern is not valid" : "is not a valid pattern"
    case .unknownZone: argument == 0 ? "unknown time zone" : "is not a known time zone"
    case .noCase: "all switch cases evaluate to false, and no default provided"
    case .negativeLength: "length must be non-negative"
    case .repeatedKey: "the map has the same key twice"
    case .differentDimensions: "the vectors have different dimensions"
    case .zeroVector: "the cosine distance of a vector of zeros is not defined"
    case .raised: "an error was raised"
    case .subpipeline: "the nested pipeline failed"
    case .depth: "the value is nested too deeply"
    case .memory: "the values of a row need too much memory"
    case .work: "a row needs too much computation"
    case .damaged: "the stored document is damaged"
    }
  }

  /// Whether the row exceeded a limit of the server. Then the whole call fails with RESOURCE_EXHAUSTED, even if the
  /// pipeline catches errors.
  package var isExhaustion: Bool { reason == .memory || reason == .work }
}
