package import DocumentModel

/// An expression of a pipeline as a tree, made from the values of a request.
///
/// It is checked and compiled by ``ExpressionCompiler``. Rows are never evaluated with this tree.
package indirect enum PipelineExpression: Equatable, Sendable {
  /// A value without expressions inside.
  case constant(Value)
  /// A field of the row. `__name__`, `__create_time__` and `__update_time__` are the metadata of its document.
  case field(FieldPath)
  /// A variable of an enclosing `let` stage, or a parameter of an enclosing `array_filter` or `array_transform`.
  case variable(String)
  /// A function call.
  case call(FunctionCall)
  /// A nested pipeline, by a number that the caller assigns. It is legal only as the argument of `array` and `scalar`.
  case subpipeline(Int)
  /// An array with expressions inside.
  case array([PipelineExpression])
  /// A map with expressions inside.
  case map([Entry])

  /// An entry of a map.
  package struct Entry: Equatable, Sendable {
    package let key: String
    package let value: PipelineExpression

    package init(key: String, value: PipelineExpression) {
      self.key = key
      self.value = value
    }
  }

  /// A call of a function by its name on the wire.
  package struct FunctionCall: Equatable, Sendable {
    package let name: String
    package let arguments: [PipelineExpression]
    /// The names of the options. No function has options.
    package let options: [String]

    package init(name: String, arguments: [PipelineExpression], options: [String] = []) {
      self.name = name
      self.arguments = arguments
      self.options = options
    }
  }

  /// Creates a function call without options.
  package static func call(_ name: String, _ arguments: [PipelineExpression]) -> PipelineExpression {
    .call(FunctionCall(name: name, arguments: arguments))
  }

  /// Parses the path of a field reference. Dots separate names, and a name between backticks can contain dots. Other
  /// characters need no quotes, because clients send what the user typed (pipelines.md, section 1.2).
  ///
  /// Returns `nil` if a name is empty or a quote is not closed.
  package static func fieldPath(_ text: String) -> FieldPath? {
    var names: [String] = []
    var name: [UInt8] = []
    var rest = Array(text.utf8)[...]
    while true {
      name.removeAll()
      if rest.first == UInt8(ascii: "`") {
        rest.removeFirst()
        guard takeQuoted(&rest, into: &name) else { return nil }
      } else {
        while let byte = rest.first, byte != UInt8(ascii: ".") {
          name.append(byte)
          rest.removeFirst()
        }
      }
      guard !name.isEmpty, name.count <= Limits.fieldNameBytesMax, names.count < ExpressionLimits.valueDepthMax else {
        return nil
      }
      names.append(String(decoding: name, as: UTF8.self))
      guard let separator = rest.popFirst() else { return FieldPath(segments: names) }
      guard separator == UInt8(ascii: ".") else { return nil }
    }
  }

  private static func takeQuoted(_ rest: inout ArraySlice<UInt8>, into name: inout [UInt8]) -> Bool {
    while let byte = rest.popFirst() {
      if byte == UInt8(ascii: "`") { return true }
      if byte == UInt8(ascii: "\\") {
        guard let escaped = rest.popFirst() else { return false }
        name.append(escaped)
      } else {
        name.append(byte)
      }
    }
    return false
  }
}
