import DocumentModel
import PipelineExpressions
import WireFormat

/// The outcome of an expression on a row, as a tree.
enum Outcome {
  case value(Value)
  case absent
  /// The message of the product. The reference evaluator does not predict it.
  case error(String)

  /// Compiles and evaluates one expression.
  init(
    _ expression: PipelineExpression, fields: MapValue = MapValue(), name: String? = nil,
    now: Timestamp = Timestamp(uncheckedMicroseconds: 1_790_000_000_123_456)
  ) {
    do throws(ExpressionError) {
      let program = try ExpressionCompiler.compile([expression])
      self = Self.evaluate(program, EncodedFields(fields), name: name, now: now)
    } catch {
      self = .error("rejected: \(error.text)")
    }
  }

  private static func evaluate(
    _ program: ExpressionProgram, _ fields: EncodedFields, name: String?, now: Timestamp
  ) -> Outcome {
    let evaluator = ExpressionEvaluator(program, now: now, seed: 1)
    var name = name ?? ""
    return fields.withMap { map in
      name.withUTF8 { utf8 in
        evaluator.begin(ExpressionRow(fields: map, name: utf8.isEmpty ? nil : UnsafeRawBufferPointer(utf8)))
        return Outcome(evaluator.value(0))
      }
    }
  }

  init(_ value: ExpressionValue) {
    switch value {
    case .error(let fault): self = .error(fault.text)
    case .absent: self = .absent
    default:
      var bytes: [UInt8] = []
      guard ExpressionWriter.append(value, to: &bytes),
        let decoded = try? bytes.withRawBytes({ (buffer) throws(WireError) in
          try ValueCodec.decode(EncodedValue(buffer))
        })
      else {
        self = .error("cannot be written")
        return
      }
      self = .value(decoded)
    }
  }

  /// Whether both are the same. Doubles may differ by `tolerance`, but 0 and -0 differ.
  func isSame(as other: Outcome, tolerance: Double = 0) -> Bool {
    switch (self, other) {
    case (.absent, .absent), (.error, .error): true
    case (.value(let a), .value(let b)): Self.isSame(a, b, tolerance)
    default: false
    }
  }

  private static func isSame(_ a: Value, _ b: Value, _ tolerance: Double) -> Bool {
    switch (a, b) {
    case (.double(let x), .double(let y)):
      x.isNaN && y.isNaN || x == y && x.sign == y.sign || tolerance > 0 && (x - y).magnitude <= tolerance
    case (.array(let x), .array(let y)): x.count == y.count && zip(x, y).allSatisfy { isSame($0, $1, tolerance) }
    case (.map(let x), .map(let y)):
      x.entries.count == y.entries.count
        && zip(x.entries, y.entries).allSatisfy {
          $0.key.utf8.elementsEqual($1.key.utf8) && isSame($0.value, $1.value, tolerance)
        }
    default: a == b
    }
  }
}
