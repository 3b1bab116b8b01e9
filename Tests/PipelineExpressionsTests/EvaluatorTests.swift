import DocumentModel
import PipelineExpressions
import Testing
import TestSupport
import WireFormat

/// Rows, metadata, variables, nested pipelines and limits.
@Suite struct EvaluatorTests {
  private static let name = "projects/p/databases/(default)/documents/c/d"

  @Test func metadataAreFieldsOfTheRow() throws {
    let program = try ExpressionCompiler.compile([
      .field(FieldPath(field: "__name__")), .field(FieldPath(field: "__create_time__")),
      .field(FieldPath(field: "__update_time__")), .field(FieldPath(field: "__path__")), .call("current_document", []),
    ])
    #expect(program.usesName && program.usesTimes && program.usesWholeRow)
    let fields = EncodedFields(MapValue([("A", .integer(1)), ("__a", .integer(2)), ("b", .integer(3))]))
    let (created, updated) = (Timestamp(uncheckedMicroseconds: 1), Timestamp(uncheckedMicroseconds: 2))
    let evaluator = ExpressionEvaluator(program, now: created, seed: 1)
    fields.withMap { map in
      Array(Self.name.utf8).withUnsafeBytes { name in
        evaluator.begin(ExpressionRow(fields: map, name: name, createTime: created, updateTime: updated))
        #expect(Outcome(evaluator.value(0)).isSame(as: .value(.reference(Self.name))))
        #expect(Outcome(evaluator.value(1)).isSame(as: .value(.timestamp(created))))
        #expect(Outcome(evaluator.value(2)).isSame(as: .value(.timestamp(updated))))
        #expect(Outcome(evaluator.value(3)).isSame(as: .absent))
        let all = MapValue([
          ("A", .integer(1)), ("__a", .integer(2)), ("__create_time__", .timestamp(created)),
          ("__name__", .reference(Self.name)), ("__update_time__", .timestamp(updated)), ("b", .integer(3)),
        ])
        #expect(Outcome(evaluator.value(4)).isSame(as: .value(.map(all))))
      }
    }
  }

  @Test func aRowWithoutMetadataHasNone() {
    #expect(Outcome(.field(FieldPath(field: "__name__"))).isSame(as: .absent))
    #expect(Outcome(.call("current_document", [])).isSame(as: .value(.map(MapValue()))))
  }

  @Test func fieldPathsDoNotLeadIntoVectors() {
    let fields = MapValue([("v", .vector([1])), ("m", .map(MapValue([("a.b", .integer(1))])))])
    #expect(Outcome(.field(FieldPath(segments: ["v", "value"])), fields: fields).isSame(as: .absent))
    #expect(Outcome(.field(FieldPath(segments: ["m", "a.b"])), fields: fields).isSame(as: .value(.integer(1))))
  }

  @Test func variablesAreReadByPosition() throws {
    let program = try ExpressionCompiler.compile(
      [.call("add", [.variable("x"), .variable("y")]), .call("exists", [.variable("z")])],
      variables: ["x": 1, "y": 0, "z": 2])
    let evaluator = ExpressionEvaluator(program, now: .earliest, seed: 1)
    let values: [ExpressionValue] = [.integer(2), .double(0.5), .absent]
    values.withUnsafeBufferPointer { variables in
      var row = ExpressionRow(fields: EncodedMap(mapValue: UnsafeRawBufferPointer(start: nil, count: 0)))
      row.variables = variables
      evaluator.begin(row)
      #expect(Outcome(evaluator.value(0)).isSame(as: .value(.double(2.5))))
      #expect(Outcome(evaluator.value(1)).isSame(as: .value(.boolean(false))))
    }
  }

  @Test func innerParametersHideOuterOnes() {
    let inner = PipelineExpression.call(
      "array_transform",
      [.constant(.array([.integer(10)])), .constant(.string("x")), .call("add", [.variable("x"), .variable("y")])])
    let outer = PipelineExpression.call(
      "array_transform",
      [
        .constant(.array([.integer(1), .integer(2)])), .constant(.string("x")), .constant(.string("y")),
        .call("array_concat", [inner, .call("array", [.variable("x")])]),
      ])
    let expected: Value = .array([
      .array([.integer(10), .integer(1)]), .array([.integer(11), .integer(2)]),
    ])
    #expect(Outcome(outer).isSame(as: .value(expected)))
  }

  /// Answers nested pipelines with a constant.
  private final class Runner: SubpipelineRunner {
    var calls: [(Int, Bool)] = []
    var result: Value? = .array([.integer(1)])

    func run(_ number: Int, isScalar: Bool, for row: ExpressionRow, into out: inout [UInt8]) -> Bool {
      calls.append((number, isScalar))
      guard let result else { return false }
      ValueCodec.append(result, to: &out)
      return true
    }
  }

  @Test func nestedPipelinesRunForEachRow() throws {
    let program = try ExpressionCompiler.compile([
      .call("array_length", [.call("array", [.subpipeline(7)])]), .call("scalar", [.subpipeline(8)]),
    ])
    #expect(program.subpipelines == [7, 8])
    let runner = Runner()
    let evaluator = ExpressionEvaluator(program, now: .earliest, seed: 1, runner: runner)
    let row = ExpressionRow(fields: EncodedMap(mapValue: UnsafeRawBufferPointer(start: nil, count: 0)))
    evaluator.begin(row)
    #expect(Outcome(evaluator.value(0)).isSame(as: .value(.integer(1))))
    runner.result = nil
    #expect(Outcome(evaluator.value(1)).isSame(as: .error("")))
    #expect(runner.calls.map(\.0) == [7, 8] && runner.calls.map(\.1) == [false, true])
  }

  @Test func randomNumbersDifferByCallAndRepeatBySeed() throws {
    let program = try ExpressionCompiler.compile([.call("rand", [])])
    func numbers(_ seed: UInt64) -> [Double] {
      let evaluator = ExpressionEvaluator(program, now: .earliest, seed: seed)
      return (0..<20).compactMap { _ in if case .double(let number) = evaluator.value(0) { number } else { nil } }
    }
    let first = numbers(1)
    #expect(Set(first).count == 20 && first.allSatisfy { (0..<1).contains($0) })
    #expect(first == numbers(1) && first != numbers(2))
  }

  @Test func errorKeepsItsMessage() {
    guard case .error(let text) = Outcome(.call("error", [.constant(.string("no stock"))])) else {
      Issue.record("error() must fail")
      return
    }
    #expect(text == "no stock")
    let fallback = PipelineExpression.call("if_error", [.call("error", [.constant(.string("x"))]), .constant(.null)])
    #expect(Outcome(fallback).isSame(as: .value(.null)))
  }

  @Test func aRowThatNeedsTooMuchMemoryFails() throws {
    let long = PipelineExpression.call("string_repeat", [.field(FieldPath(field: "s")), .constant(.integer(1 << 20))])
    let parts = (0..<100).map { _ in long }
    let program = try ExpressionCompiler.compile([.call("if_error", [.call("string_concat", parts), .constant(.null)])])
    let fields = EncodedFields(MapValue([("s", .string("x"))]))
    let evaluator = ExpressionEvaluator(program, now: .earliest, seed: 1)
    fields.withMap { evaluator.begin(ExpressionRow(fields: $0)) }
    #expect(Outcome(evaluator.value(0)).isSame(as: .error("")))
    #expect(evaluator.exhaustion?.reason == .memory)
  }

  @Test func aRowThatNeedsTooMuchWorkFails() throws {
    let all = Value.array((0..<60_000).map { .integer(Int64($0)) })
    let others = Value.array((0..<60_000).map { .integer(Int64(-1 - $0)) })
    let call = PipelineExpression.call(
      "array_contains_any", [.field(FieldPath(field: "a")), .field(FieldPath(field: "b"))])
    let program = try ExpressionCompiler.compile([call])
    let fields = EncodedFields(MapValue([("a", all), ("b", others)]))
    let evaluator = ExpressionEvaluator(program, now: .earliest, seed: 1)
    fields.withMap { map in
      evaluator.begin(ExpressionRow(fields: map))
      #expect(Outcome(evaluator.value(0)).isSame(as: .error("")))
    }
    #expect(evaluator.exhaustion?.reason == .work)
  }

  private static let zones: [(time: String, part: String, zone: String, start: String)] = [
    // The clocks of Berlin skip an hour and later repeat one.
    ("2025-03-30T12:00:00Z", "day", "Europe/Berlin", "2025-03-29T23:00:00Z"),
    ("2025-10-26T12:00:00Z", "day", "Europe/Berlin", "2025-10-25T22:00:00Z"),
    ("2025-10-26T00:30:00Z", "hour", "Europe/Berlin", "2025-10-26T00:00:00Z"),
    // The tables of the time zone database end before this year.
    ("2100-07-01T12:00:00Z", "day", "Europe/Berlin", "2100-06-30T22:00:00Z"),
    ("2100-01-01T12:00:00Z", "day", "America/New_York", "2100-01-01T05:00:00Z"),
    // A day that began at one o'clock, and one that no clock showed.
    ("2017-10-15T12:00:00Z", "day", "America/Sao_Paulo", "2017-10-15T03:00:00Z"),
    ("2025-07-01T12:34:56Z", "hour", "Asia/Kathmandu", "2025-07-01T12:15:00Z"),
    ("2025-07-01T12:34:56Z", "day", "GMT+06:32:43", "2025-06-30T17:27:17Z"),
    ("2025-07-01T12:34:56Z", "day", "MST", "2025-07-01T07:00:00Z"),
    ("2021-01-02T12:00:00Z", "isoyear", "UTC", "2019-12-30T00:00:00Z"),
    ("0001-01-01T12:00:00Z", "day", "UTC", "0001-01-01T00:00:00Z"),
  ]

  @Test(arguments: zones.indices) func timesAreTruncatedInTheirZone(_ index: Int) throws {
    let test = Self.zones[index]
    func time(_ text: String) throws -> Value { .timestamp(try #require(Timestamp(rfc3339: Array(text.utf8)))) }
    let call = PipelineExpression.call(
      "timestamp_trunc",
      [.constant(try time(test.time)), .constant(.string(test.part)), .constant(.string(test.zone))])
    #expect(Outcome(call).isSame(as: .value(try time(test.start))))
  }
}
