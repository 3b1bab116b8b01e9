import DocumentModel
import WireFormat

/// Entry points for fuzzing. Each accepts any bytes, must not trap, and returns in bounded time.
package enum ExpressionFuzz {
  /// Builds an expression from bytes: each byte chooses a function, a constant or a field. Compiles it and evaluates it
  /// on a row.
  package static func expression(_ bytes: UnsafeRawBufferPointer) {
    var input = Input(bytes: bytes)
    let expressions = [input.expression(depth: 0), input.expression(depth: 0)]
    guard let program = try? ExpressionCompiler.compile(expressions) else { return }
    row.withMap { evaluate(program, $0) }
  }

  /// Evaluates expressions with arbitrary bytes as the stored fields, and decodes the bytes as states of accumulators.
  package static func storedRow(_ bytes: UnsafeRawBufferPointer) {
    if let storedProgram { evaluate(storedProgram, EncodedMap(documentFields: bytes)) }
    for function in AccumulatorFunction.allCases {
      var rest = bytes
      guard let state = try? Accumulator(function, decoding: &rest) else { continue }
      var merged = Accumulator(function)
      merged.merge(state)
      var out: [UInt8] = []
      merged.appendResult(to: &out)
    }
  }

  /// Parses bytes as a file of the time zone database, and asks for offsets.
  package static func timeZone(_ bytes: UnsafeRawBufferPointer) {
    guard let zone = ZoneRules.parse(Array(bytes)) else { return }
    for seconds in stride(from: Timestamp.earliest.seconds, to: Timestamp.latest.seconds, by: 9_999_999_999) {
      _ = zone.offset(at: seconds)
      _ = zone.time(ofLocal: seconds)
    }
    for part in [TimePart.day, .week(start: 3), .isoYear] {
      _ = LocalTime.truncated(.earliest, to: part, zone)
      _ = LocalTime(.latest, zone).value(of: part)
    }
  }

  private static let row = EncodedFields(
    MapValue([
      ("a", .integer(1)), ("b", .string("text")), ("c", .array([.integer(1), .string("z"), .null])),
      ("d", .map(MapValue([("k", .double(5))]))), ("e", .timestamp(Timestamp(uncheckedMicroseconds: 1))),
      ("f", .vector([1, 2])), ("g", .bytes([0, 255])),
      ("h", .map(MapValue([(BSONType.int32.rawValue, .integer(7))]))),
    ]))

  private static let storedProgram: ExpressionProgram? = {
    let names = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k"]
    let fields = names.map { PipelineExpression.field(FieldPath(field: $0)) }
    var expressions = fields + [.field(FieldPath(segments: ["k", "inner", "deep"])), .call("current_document", [])]
    for function in ExpressionFunction.allCases where function != .scalar && function != .score {
      let count = max(1, function.signature.counts.lowerBound)
      for start in [0, 3, 7] {
        let arguments = (0..<count).map { fields[(start + $0) % fields.count] }
        if (try? ExpressionCompiler.compile([.call(function.name, arguments)])) != nil {
          expressions.append(.call(function.name, arguments))
        }
      }
    }
    return try? ExpressionCompiler.compile(expressions)
  }()

  private static func evaluate(_ program: ExpressionProgram, _ fields: EncodedMap) {
    let evaluator = ExpressionEvaluator(program, now: Timestamp(uncheckedMicroseconds: 0), seed: 1)
    evaluator.begin(ExpressionRow(fields: fields))
    for number in 0..<program.count {
      let value = evaluator.value(number)
      if case .error(let fault) = value { precondition(!fault.text.utf8.isEmpty, "a fault has a text") }
      var out: [UInt8] = []
      guard ExpressionWriter.append(value, to: &out) else { continue }
      var state = Accumulator(.arrayAggDistinct)
      _ = state.add(value)
      var key: [UInt8] = []
      _ = ExpressionWriter.appendGroupKey(value, to: &key)
      out.withUnsafeBytes { buffer in
        let again = ExpressionValue(EncodedValue(buffer))
        let isAbsent = value.types == .absent
        precondition(isAbsent || ExpressionOrder.compare(value, again) == .equal, "a written value stays the same")
      }
    }
  }

  /// The bytes that choose the parts of an expression.
  private struct Input {
    let bytes: UnsafeRawBufferPointer
    var offset = 0
    var parts = 0

    mutating func next() -> Int {
      guard offset < bytes.count else { return 0 }
      defer { offset += 1 }
      return Int(bytes[offset])
    }

    mutating func expression(depth: Int) -> PipelineExpression {
      parts += 1
      let choice = next()
      guard depth < 6, parts < 200, choice >= 64 else { return leaf(choice) }
      let functions = ExpressionFunction.allCases
      let function = functions[(choice - 64 + next()) % functions.count]
      let counts = function.signature.counts
      let count = counts.lowerBound + next() % (min(counts.upperBound - counts.lowerBound, 3) + 1)
      let arguments = (0..<min(count, 8)).map { _ in expression(depth: depth + 1) }
      return .call(function.name, arguments)
    }

    private mutating func leaf(_ choice: Int) -> PipelineExpression {
      switch choice % 16 {
      case 0: return .constant(.null)
      case 1: return .constant(.integer(Int64(next()) - 128))
      case 2: return .constant(.integer(next() < 128 ? .max : .min))
      case 3: return .constant(.double([0, -0.0, .nan, .infinity, 0.5, -1e300][next() % 6]))
      case 4: return .constant(.string(["", "a", "x", "(", "a*", "%_", "\\", "day", "UTC", "GMT+1"][next() % 10]))
      case 5: return .constant(.boolean(next() < 128))
      case 6: return .constant(.array([.integer(Int64(next())), .null, .double(.nan)]))
      case 7: return .constant(.vector([Double(next())]))
      case 8: return .variable("x")
      case 9: return .constant(.timestamp(next() < 128 ? .earliest : .latest))
      case 10: return .constant(.reference("projects/p/databases/d/documents/\(next() < 128 ? "c/d" : "")"))
      default: return .field(FieldPath(field: String(UnicodeScalar(UInt8(97 + choice % 9)))))
      }
    }
  }
}
