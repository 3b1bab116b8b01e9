import DocumentModel
import DocumentStore
import Testing
import TestSupport
import WireFormat

/// The effects of writes on a document: operations, masks, transforms.
@Suite struct WriteTests {
  struct Case: CustomTestStringConvertible {
    var name: String
    /// The document before the write, or `nil` if it does not exist.
    var before: MapValue?
    var write: Write
    var after: MapValue?
    var results: [Value] = []

    init(_ name: String, _ before: MapValue?, _ write: Write, _ after: MapValue?, _ results: [Value] = []) {
      (self.name, self.before, self.write, self.after, self.results) = (name, before, write, after, results)
    }

    var testDescription: String { name }
  }

  private static func m(_ entries: (String, Value)...) -> MapValue { MapValue(entries) }
  private static func transform(_ transforms: FieldTransform...) -> Write {
    Write(.update(.none, mask: FieldMask([])), key: document("c/x"), transforms: transforms)
  }
  private static func f(_ path: String, _ kind: FieldTransform.Kind) -> FieldTransform {
    FieldTransform(field(path), kind)
  }

  static let operations: [Case] = [
    Case("set creates", nil, .set("c/x", ("a", 1)), m(("a", 1))),
    Case("set replaces", m(("a", 1), ("b", 2)), .set("c/x", ("c", 3)), m(("c", 3))),
    Case("set without fields", m(("a", 1)), .set("c/x"), m()),
    Case("delete", m(("a", 1)), .delete("c/x"), nil),
    Case("delete of a missing document", nil, .delete("c/x"), nil),
    Case("verify keeps", m(("a", 1)), .verify("c/x"), m(("a", 1))),
    Case(
      "merge sets and keeps", m(("a", 1), ("b", 2)), .merge("c/x", ["a"], ("a", 9), ("z", 9)), m(("a", 9), ("b", 2))),
    Case("merge deletes", m(("a", 1), ("b", 2)), .merge("c/x", ["a"]), m(("b", 2))),
    Case("merge creates", nil, .merge("c/x", ["a", "q"], ("a", 1)), m(("a", 1))),
    Case("empty mask changes nothing", m(("a", 1)), .merge("c/x", [], ("a", 2)), m(("a", 1))),
    Case("empty mask creates", nil, .merge("c/x", [], ("a", 2)), m()),
    Case(
      "nested merge keeps siblings", m(("a", map(("x", 1), ("y", 2)))), .merge("c/x", ["a.x"], ("a", map(("x", 5)))),
      m(("a", map(("x", 5), ("y", 2))))),
    Case(
      "nested deletion leaves the map", m(("a", map(("x", 1)))), .merge("c/x", ["a.x"]), m(("a", map()))),
    Case(
      "set through a scalar", m(("a", 1)), .merge("c/x", ["a.b.c"], ("a", map(("b", map(("c", 2)))))),
      m(("a", map(("b", map(("c", 2))))))),
    Case("deletion through a scalar", m(("a", 1)), .merge("c/x", ["a.b"]), m(("a", 1))),
    Case("deletion through a missing field", m(("b", 1)), .merge("c/x", ["a.b.c"]), m(("b", 1))),
    Case(
      "the shorter of overlapping paths wins", m(("a", map(("b", 1), ("c", 2)))),
      .merge("c/x", ["a.b", "a"], ("a", map(("b", 3)))), m(("a", map(("b", 3))))),
    Case(
      "quoted names", m(("a.b", 1), ("a", map(("b", 2)))), .merge("c/x", ["`a.b`"], ("a.b", 7)),
      m(("a.b", 7), ("a", map(("b", 2))))),
    Case(
      "canonically equivalent names differ", m(("\u{E9}", 1)), .merge("c/x", ["`e\u{301}`"], ("e\u{301}", 2)),
      m(("e\u{301}", 2), ("\u{E9}", 1))),
    Case(
      "array elements are not fields", m(("a", [1, 2])), .merge("c/x", ["a.b"], ("a", map(("b", 2)))),
      m(("a", map(("b", 2))))),
  ]

  static let transforms: [Case] = [
    Case("increment int", m(("a", 1)), transform(f("a", .increment(2))), m(("a", 3)), [3]),
    Case("increment creates", nil, transform(f("a", .increment(2))), m(("a", 2)), [2]),
    Case("increment of text", m(("a", "x")), transform(f("a", .increment(2))), m(("a", 2)), [2]),
    Case(
      "increment saturates", m(("a", .integer(.max))), transform(f("a", .increment(1))), m(("a", .integer(.max))),
      [.integer(.max)]),
    Case(
      "increment saturates below", m(("a", .integer(.min + 1))), transform(f("a", .increment(-5))),
      m(("a", .integer(.min))), [.integer(.min)]),
    Case("int and double", m(("a", 1)), transform(f("a", .increment(0.5))), m(("a", 1.5)), [1.5]),
    Case("double and int", m(("a", 0.5)), transform(f("a", .increment(1))), m(("a", 1.5)), [1.5]),
    Case("double and double", m(("a", 0.5)), transform(f("a", .increment(0.5))), m(("a", 1.0)), [1.0]),
    Case(
      "NaN stays", m(("a", .double(.nan))), transform(f("a", .increment(1))), m(("a", .double(.nan))), [.double(.nan)]),
    Case(
      "infinities", m(("a", .double(.infinity))), transform(f("a", .increment(.double(-.infinity)))),
      m(("a", .double(.nan))), [.double(.nan)]),
    Case(
      "nested increment", m(("a", map(("b", 1), ("c", 1)))), transform(f("a.b", .increment(1))),
      m(("a", map(("b", 2), ("c", 1)))), [2]),
    Case("increment through a scalar", m(("a", 7)), transform(f("a.b", .increment(1))), m(("a", map(("b", 1)))), [1]),
    Case(
      "twice the same field", m(("a", 1)), transform(f("a", .increment(1)), f("a", .increment(2))), m(("a", 4)), [2, 4]),
    Case("maximum takes", m(("a", 1)), transform(f("a", .maximum(2.5))), m(("a", 2.5)), [2.5]),
    Case("maximum keeps", m(("a", 3)), transform(f("a", .maximum(2.5))), m(("a", 3)), [3]),
    Case("maximum of equals keeps", m(("a", 3)), transform(f("a", .maximum(3.0))), m(("a", 3)), [3]),
    Case("maximum of equal doubles keeps", m(("a", 3.0)), transform(f("a", .maximum(3))), m(("a", 3.0)), [3.0]),
    Case("maximum keeps the zero", m(("a", -0.0)), transform(f("a", .maximum(0))), m(("a", -0.0)), [-0.0]),
    Case("maximum of a missing field", nil, transform(f("a", .maximum(-3))), m(("a", -3)), [-3]),
    Case("maximum of text", m(("a", "z")), transform(f("a", .maximum(-3))), m(("a", -3)), [-3]),
    Case(
      "maximum with NaN", m(("a", 3)), transform(f("a", .maximum(.double(.nan)))), m(("a", .double(.nan))),
      [.double(.nan)]),
    Case(
      "maximum of NaN", m(("a", .double(.nan))), transform(f("a", .maximum(9))), m(("a", .double(.nan))),
      [.double(.nan)]),
    Case("minimum takes", m(("a", 3)), transform(f("a", .minimum(2.5))), m(("a", 2.5)), [2.5]),
    Case("minimum keeps", m(("a", 1)), transform(f("a", .minimum(2.5))), m(("a", 1)), [1]),
    Case("minimum of equals keeps", m(("a", 3.0)), transform(f("a", .minimum(3))), m(("a", 3.0)), [3.0]),
    Case(
      "minimum with NaN", m(("a", 3)), transform(f("a", .minimum(.double(.nan)))), m(("a", .double(.nan))),
      [.double(.nan)]),
    Case(
      "minimum of NaN", m(("a", .double(.nan))), transform(f("a", .minimum(9))), m(("a", .double(.nan))),
      [.double(.nan)]),
    Case(
      "maximum compares exactly", m(("a", .integer(1 << 53 + 1))), transform(f("a", .maximum(.double(0x1p53)))),
      m(("a", .integer(1 << 53 + 1))), [.integer(1 << 53 + 1)]),
    Case(
      "append to a missing field", nil, transform(f("a", .appendMissingElements([1, 2, 1]))), m(("a", [1, 2])),
      [.null]),
    Case("append to text", m(("a", "x")), transform(f("a", .appendMissingElements([1]))), m(("a", [1])), [.null]),
    Case(
      "append missing elements", m(("a", [1, "x"])), transform(f("a", .appendMissingElements([1.0, "y", "x", 2]))),
      m(("a", [1, "x", "y", 2])), [.null]),
    Case(
      "NaN is NaN, null is null", m(("a", [.double(.nan), .null])),
      transform(f("a", .appendMissingElements([.double(.nan), .null]))), m(("a", [.double(.nan), .null])), [.null]),
    Case(
      "equal inside maps", m(("a", [map(("k", 1))])), transform(f("a", .appendMissingElements([map(("k", 1.0))]))),
      m(("a", [map(("k", 1))])), [.null]),
    Case("append no elements", nil, transform(f("a", .appendMissingElements([]))), m(("a", [])), [.null]),
    Case(
      "stored duplicates stay", m(("a", [1, 1])), transform(f("a", .appendMissingElements([2]))), m(("a", [1, 1, 2])),
      [.null]),
    Case(
      "remove every equal", m(("a", [1, 2, 1.0, "1"])), transform(f("a", .removeAllFromArray([1]))),
      m(("a", [2, "1"])),
      [.null]),
    Case("remove from a missing field", nil, transform(f("a", .removeAllFromArray([1]))), m(("a", [])), [.null]),
    Case("remove from text", m(("a", "x")), transform(f("a", .removeAllFromArray([1]))), m(("a", [])), [.null]),
    Case(
      "canonical equivalents differ", m(("a", ["\u{E9}"])), transform(f("a", .removeAllFromArray(["e\u{301}"]))),
      m(("a", ["\u{E9}"])), [.null]),
    Case(
      "after the update of the same write", m(("a", 10)),
      .merge("c/x", ["a"], ("a", 1), transforms: [f("a", .increment(5))]), m(("a", 6)), [6]),
    Case(
      "after a replacement", m(("a", 10), ("b", 1)), .set("c/x", ("b", 2), transforms: [f("a", .increment(5))]),
      m(("a", 5), ("b", 2)), [5]),
  ]

  @Test(arguments: operations + transforms) func everyWriteHasItsEffect(_ test: Case) throws {
    let before = test.before.map { EncodedFields($0) }
    let effect = try WriteApplication.apply(test.write, to: before, requestTime: Timestamp(uncheckedMicroseconds: 1))
    #expect(try effect.fields?.decoded() == test.after)
    #expect(effect.transformResults == test.results)
    // The same write in a commit.
    let db = try TestDatabase()
    if let before { try db.commit(Write(.update(before, mask: nil), key: document("c/x"))) }
    let outcome = try db.commit(test.write)
    #expect(try db.get("c/x")?.fields == test.after)
    #expect(outcome.results.first?.transformResults == test.results)
  }

  @Test func serverTimestampsOfOneCommitAreEqual() throws {
    let db = try TestDatabase(time: SteppedTime(1_800_000_000_123_456))
    let outcome = try db.commit(
      .set("c/x", transforms: [Self.f("a", .requestTime), Self.f("b.c", .requestTime)]),
      .merge("c/y", [], transforms: [Self.f("a", .requestTime)]))
    let time = Value.timestamp(Timestamp(uncheckedMicroseconds: 1_800_000_000_123_000))
    #expect(outcome.results.map(\.transformResults) == [[time, time], [time]])
    #expect(try db.get("c/x")?.fields == Self.m(("a", time), ("b", map(("c", time)))))
    #expect(try db.get("c/y")?.fields == Self.m(("a", time)))
    #expect(outcome.version.microseconds >= 1_800_000_000_123_000)
  }

  @Test func serverTimestampsOfOneMillisecondAscend() throws {
    let db = try TestDatabase(time: SteppedTime(1_800_000_000_123_456))
    let write = Write.set("c/x", transforms: [Self.f("a", .requestTime)])
    let times = try (0..<3).map { _ in try db.commit(write).results[0].transformResults[0] }
    #expect(times == (0..<3).map { .timestamp(Timestamp(uncheckedMicroseconds: 1_800_000_000_123_000 + $0)) })
  }

  /// Compares random masks with an independent implementation.
  @Test func randomMasksMatchASimpleImplementation() throws {
    let seed: UInt64 = 0x3A5C
    var random = SplitMix(seed: seed)
    let names = ["a", "b", "c"]
    func tree(_ depth: Int, _ random: inout SplitMix) -> MapValue {
      var map = MapValue()
      for name in names where random.chance(oneIn: 2) {
        map[name] =
          depth > 0 && random.chance(oneIn: 2) ? .map(tree(depth - 1, &random)) : .integer(random.pick([1, 2, 3]))
      }
      return map
    }
    /// Returns every leaf and every empty map by its path.
    func flat(_ map: MapValue, _ prefix: [String] = []) -> [[String]: Value] {
      var result: [[String]: Value] = [:]
      for (key, value) in map.entries {
        if case .map(let inner) = value, !inner.entries.isEmpty {
          result.merge(flat(inner, prefix + [key])) { $1 }
        } else {
          result[prefix + [key]] = value
        }
      }
      return result
    }
    for round in 0..<2000 {
      let (before, body) = (tree(2, &random), tree(2, &random))
      let paths = (0..<random.pick([1, 2, 3])).map { _ in
        FieldPath(segments: (0..<random.pick([1, 2, 3])).map { _ in random.pick(names) })
      }
      let write = Write(.update(EncodedFields(body), mask: FieldMask(paths)), key: document("c/x"))
      let effect = try WriteApplication.apply(
        write, to: EncodedFields(before), requestTime: Timestamp(uncheckedMicroseconds: 0))
      let after = try #require(effect.fields).decoded()
      // Paths in the mask have the body's values. Other paths are unchanged.
      for path in FieldMask(paths).paths {
        try #require(after[path] == body[path], "seed \(seed) round \(round) path \(path.text)")
      }
      for (segments, value) in flat(before) {
        let path = FieldPath(segments: segments)
        let isTouched = paths.contains { $0.isPrefix(of: path) || path.isPrefix(of: $0) }
        if !isTouched { try #require(after[path] == value, "seed \(seed) round \(round) path \(path.text)") }
      }
    }
  }
}
