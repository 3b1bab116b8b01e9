import DocumentModel
import PipelineExpressions
import Testing
import TestSupport
import WireFormat

/// Accumulators over the rows of a group, whole and in parts.
@Suite struct AccumulatorTests {
  /// A missing value is absent.
  private static let cases: [(AccumulatorFunction, [Value?], Value)] = [
    (.count, [], .integer(0)), (.count, [.integer(1), .null, nil, .string("a")], .integer(2)),
    (.countIf, [.boolean(true), .boolean(false), .null, nil, .integer(1), .boolean(true)], .integer(2)),
    (.countDistinct, [], .integer(0)),
    (
      .countDistinct, [.integer(1), .double(1), .double(-0.0), .integer(0), .null, nil, .double(.nan), .double(.nan)],
      .integer(3)
    ),
    (.sum, [], .integer(0)), (.sum, [.string("a"), nil], .integer(0)),
    (.sum, [.integer(1), .integer(2), .string("a")], .integer(3)), (.sum, [.integer(1), .double(0.5)], .double(1.5)),
    (.sum, [.integer(.max), .integer(1)], .double(0x1p63)),
    (.sum, [.integer(.max), .integer(1), .integer(-1)], .integer(.max)),
    (.sum, [.double(4.2), .double(4.6)], .double(8.8)), (.sum, [.integer(1), .double(.nan)], .double(.nan)),
    (.average, [], .null), (.average, [.null], .null), (.average, [.integer(1), .integer(2)], .double(1.5)),
    (.average, [.double(4.2), .double(4.6)], .double(4.4)),
    (.minimum, [], .null), (.minimum, [.null, nil, .string("b"), .string("a"), .integer(9)], .integer(9)),
    (.maximum, [.string("b"), .string("a"), .integer(9)], .string("b")),
    (.maximum, [.integer(1), .double(1.5), .double(.nan)], .double(1.5)),
    (.minimum, [.array([.integer(2)]), .array([.integer(1), .integer(5)])], .array([.integer(1), .integer(5)])),
    (.first, [], .null), (.first, [nil, .integer(1)], .null), (.first, [.integer(2), .integer(1)], .integer(2)),
    (.last, [.integer(2), .string("x")], .string("x")), (.last, [.integer(2), nil], .null),
    (.arrayAgg, [], .array([])),
    (.arrayAgg, [.integer(1), nil, .null, .integer(1)], .array([.integer(1), .null, .null, .integer(1)])),
    (
      .arrayAggDistinct, [.string("b"), .string("a"), nil, .null, .string("b"), .integer(1), .double(1)],
      .array([.string("b"), .string("a"), .null, .integer(1)])
    ),
  ]

  private static func state(_ function: AccumulatorFunction, _ values: ArraySlice<Value?>) -> Accumulator {
    var state = Accumulator(function)
    for value in values {
      guard let value else {
        let isAdded = state.add(.absent)
        #expect(isAdded)
        continue
      }
      var bytes: [UInt8] = []
      ValueCodec.append(value, to: &bytes)
      let isAdded = bytes.withUnsafeBytes { state.add(ExpressionValue(EncodedValue($0))) }
      #expect(isAdded)
    }
    return state
  }

  private static func result(_ state: Accumulator) throws -> Outcome {
    var bytes: [UInt8] = []
    state.appendResult(to: &bytes)
    return try .value(bytes.withUnsafeBytes { try ValueCodec.decode(EncodedValue($0)) })
  }

  @Test(arguments: cases.indices) func resultsAreExact(_ index: Int) throws {
    let (function, values, expected) = Self.cases[index]
    #expect(try Self.result(Self.state(function, values[...])).isSame(as: .value(expected)))
  }

  @Test(arguments: cases.indices) func partsOfAGroupMergeToTheSameResult(_ index: Int) throws {
    let (function, values, expected) = Self.cases[index]
    for cut in 0...values.count {
      var bytes: [UInt8] = []
      Self.state(function, values[..<cut]).encode(to: &bytes)
      Self.state(function, values[cut...]).encode(to: &bytes)
      try bytes.withUnsafeBytes { buffer in
        var rest = buffer
        var first = try Accumulator(function, decoding: &rest)
        first.merge(try Accumulator(function, decoding: &rest))
        #expect(rest.isEmpty)
        #expect(try Self.result(first).isSame(as: .value(expected)), "cut at \(cut)")
      }
    }
  }

  @Test func countWithoutAnArgumentCountsRows() throws {
    var state = Accumulator(.count)
    state.addRow()
    state.addRow()
    #expect(try Self.result(state).isSame(as: .value(.integer(2))))
  }

  @Test func errorsAreReported() throws {
    let program = try ExpressionCompiler.compile([.call("divide", [.constant(.integer(1)), .constant(.integer(0))])])
    let value = ExpressionEvaluator(program, now: .earliest, seed: 1).value(0)
    for function in AccumulatorFunction.allCases {
      var state = Accumulator(function)
      let isAdded = state.add(value)
      #expect(isAdded == (function == .countIf))
    }
  }

  @Test func damagedStatesAreRefused() {
    var bytes: [UInt8] = []
    Self.state(.arrayAgg, [.string("a"), .string("b")]).encode(to: &bytes)
    for length in 0..<bytes.count {
      bytes[..<length].withUnsafeBytes { buffer in
        var rest = buffer
        #expect(throws: WireError.self) { _ = try Accumulator(.arrayAgg, decoding: &rest) }
      }
    }
  }

  @Test func keySetsHoldEachKeyOnce() {
    var set = KeySet()
    for round in 0..<2 {
      for number in 0..<5000 {
        let isNew = Array("key\(number)".utf8).withUnsafeBytes { set.insert($0) }
        #expect(isNew == (round == 0))
      }
    }
    var keys: [String] = []
    set.forEach { keys.append(String(decoding: $0, as: UTF8.self)) }
    #expect(keys == (0..<5000).map { "key\($0)" } && set.count == 5000)
  }
}
