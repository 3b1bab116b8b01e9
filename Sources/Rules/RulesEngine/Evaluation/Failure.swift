/// The reason why an expression has no value. Errors are values: operators propagate them, and `&&` and `||` can
/// absorb them.
struct Failure {
  enum Reason: UInt8 {
    case nullValue
    /// `text` is the name of the property.
    case undefinedProperty
    case unknownFunction
    /// `items` are the arguments.
    case argumentCount
    /// No overload accepts `items`.
    case arguments
    /// `items` are the operands of `text`.
    case operands
    /// `items[0]` is not of the type `text`.
    case type
    case divideByZero
    case integerOverflow
    /// `items` are the index and the size.
    case indexOutOfBounds
    /// `items` are the limits.
    case illegalRange
    /// `items[0]` cannot be converted to the type `text`.
    case conversion
    case pattern
    case replacement
    /// The function `text` could not look up `items[0]`.
    case serviceCall
    case unboundVariable
    case unknownVariables
    case emptyBinding
    case pathTemplate
    case pathDecoding
    case emptyPath
    case timestamp
    case timestampYear
    case date
    case duration
    case latlng
    case tooManyExpressions
    case tooMuchMemory
    case tooMuchWork
    /// The query does not determine the value.
    case unknownByQuery
    case damaged
  }

  let reason: Reason
  /// The failed function or method, as an index of ``Builtins/groups``, or -1.
  var group: Int32 = -1
  var text = UnsafeRawBufferPointer(start: nil, count: 0)
  var items = UnsafeBufferPointer<RuleValue>(start: nil, count: 0)

  /// The message in the engine's words (rules-language.md, section 18). Cost: builds a string.
  var message: String {
    let name = String(decoding: text, as: UTF8.self)
    let types = items.map(\.type.rawValue)
    let values = items.map { RuleValueText.plain($0) }
    let moment = "is not valid. Seconds must be in range"
    switch reason {
    case .nullValue: return "Null value error."
    case .undefinedProperty: return "Property \(name) is undefined on object."
    case .unknownFunction: return "Function not found error: Name: [\(name)]."
    case .argumentCount:
      // The receiver of a method is not an argument.
      return "Incorrect number of arguments. Received: \(items.count - (expectsReceiver ? 1 : 0)). Expected: "
        + "\(expected)."
    case .arguments:
      let received =
        expectsReceiver
        ? "\(types[0]).\(name)(\(types.dropFirst().joined(separator: ", ")))"
        : "\(name)(\(types.joined(separator: ", ")))"
      return "Unsupported operation error. Received: \(received). Expected: \(expected)."
    case .operands:
      return "Unsupported operation error. Received: \(Operands.received(name, types)). Expected: "
        + "\(Operands.expected(name, types))."
    case .type: return "Type error. Received: [\(types[0])] Expected: [\(name)]."
    case .divideByZero: return "Divide by zero error."
    case .integerOverflow: return "Integer value is out of the [\(Int64.min), \(Int64.max)] range."
    case .indexOutOfBounds: return "Index out of bound error. Index: [\(values[0])] , size: [\(values[1])]."
    case .illegalRange: return "Illegal range error. From index: [\(values[0])] , To index: [\(values[1])]."
    case .conversion:
      return "Type conversion error. Argument: [\(values[0])], From type: [\(types[0])], To type: [\(name)]."
    case .pattern: return "Invalid regular expression pattern. Pattern: \(name)."
    case .replacement: return "Invalid replacement \(name): it refers to a group that the pattern does not have."
    case .serviceCall: return "Service call error. Function: [\(name)], Argument: [\(values.joined(separator: ", "))]."
    case .unboundVariable: return "Variable \(name) is not bound in path template."
    case .unknownVariables: return "Variable(s) \(name) do not exist in the path template."
    case .emptyBinding: return "Cannot bind empty value to path template variable \(name)."
    case .pathTemplate: return "Invalid Path Template \(name). Empty segment is not allowed."
    case .pathDecoding: return "Unable to decode \(name) to url."
    case .emptyPath: return "Empty Path Template is not allowed."
    case .timestamp:
      return "Timestamp \(moment) [-62,135,596,800, +253,402,300,799]. Nanos must be in range [0, +999,999,999]."
    case .timestampYear:
      return "Timestamp should be between 0001-01-01T00.00.00Z and 9999-12-31T23.59.59Z. year: \(values[0])."
    case .date: return "Date is not valid. year: \(values[0]), month: \(values[1]) day: \(values[2])."
    case .duration:
      return "Duration \(moment) [-315,576,000,000, +315,576,000,000]. Nanos must be in range [-999,999,999, "
        + "+999,999,999]. Nanos must have the same sign as seconds."
    case .latlng:
      return "Latitude should be in [-90,90] range and longitude should be in [-180,180] range. latitude: "
        + "\(values[0]), longitude: \(values[1])."
    case .tooManyExpressions:
      return "Unable to evaluate the expression as the maximum of \(Evaluator.expressionsMax) expressions to "
        + "evaluate has been reached."
    case .tooMuchMemory: return "The expression needs more memory than one decision may use."
    case .tooMuchWork: return "The expression needs more time than one decision may use."
    case .unknownByQuery: return "The query does not determine the value."
    case .damaged: return "The document is damaged."
    }
  }

  private var expectsReceiver: Bool { group >= 0 && Builtins.groups[Int(group)].isMethod }

  private var expected: String {
    guard group >= 0 else { return String(decoding: text, as: UTF8.self) }
    let all = Builtins.groups[Int(group)]
    let receiver = expectsReceiver ? items.first?.type : nil
    return all.signatures.filter { receiver == nil || $0.receiver == receiver }.map(\.text).joined(separator: ", ")
  }
}

/// The signatures of operators in messages.
enum Operands {
  static func received(_ name: String, _ types: [String]) -> String {
    switch (name, types.count) {
    case ("[]", 2): "\(types[0])[\(types[1])]"
    case ("[:]", 3): "\(types[0])[\(types[1]):\(types[2])]"
    case (_, 1): "\(name)\(types[0])"
    case (_, 2): "\(types[0]) \(name) \(types[1])"
    default: name
    }
  }

  static func expected(_ name: String, _ types: [String]) -> String {
    func pairs(_ types: String...) -> String { types.map { "\($0) \(name) \($0)" }.joined(separator: ", ") }
    let first = types.first ?? ""
    switch (name, types.count) {
    case ("!", _): return "!bool"
    case ("-", 1): return "-int, -float, -duration"
    case ("[]", _): return first == "map" ? "map[string]" : "\(first)[int]"
    case ("[:]", _):
      return ["null:null", "null:int", "int:null", "int:int"].map { "\(first)[\($0)]" }.joined(separator: ", ")
    case ("+", _):
      return pairs("int", "float", "string", "duration") + ", duration + timestamp, timestamp + duration"
    case ("-", _): return pairs("int", "float", "duration") + ", timestamp - duration, timestamp - timestamp"
    case ("*", _), ("/", _), ("%", _): return pairs("int", "float")
    default:
      return pairs("string", "bytes", "int", "float", "duration", "timestamp")
        + ", constraint \(name) any, any \(name) constraint"
    }
  }
}
