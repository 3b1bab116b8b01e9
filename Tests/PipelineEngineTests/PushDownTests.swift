import DocumentModel
import DocumentStore
import TestSupport
import Testing
import WireFormat
@testable import PipelineEngine

/// Limits, orders and counts that the source takes over change no result.
@Suite struct PushDownTests {
  private static let fields = ["a", "b", "m.k"]
  private static let values: [Value] = [.integer(1), .double(1.5), .string("a"), .boolean(true), .integer(0)]

  /// Compares each pipeline with the same one behind a stage that the planner cannot see through.
  @Test(arguments: TestSeeds.of("PIPELINE_SEED", otherwise: Array(1...40))) func pushedStagesGiveTheSameRows(
    seed: UInt64
  ) throws {
    var random = SplitMix(seed: seed)
    var generator = QueryGenerator(seed: seed)
    let world = try PipelineWorld()
    try world.set(generator.documents())
    for _ in 0..<25 {
      var stages: [PipelineCall] = []
      for _ in 0..<Int.random(in: 0...2, using: &random) { stages.append(.filter(Self.condition(&random))) }
      let order = random.chance(oneIn: 3) ? nil : random.pick(Self.fields)
      if let order { stages.append(.sort(order, descending: random.chance(oneIn: 2))) }
      if random.chance(oneIn: 3) { stages.append(.offset(Int.random(in: 0...3, using: &random))) }
      if !random.chance(oneIn: 3) { stages.append(.limit(Int.random(in: 0...12, using: &random))) }
      let units = random.pick([1, 40, 8192])
      let isReviewed = random.chance(oneIn: 4)
      let pushed = try world.rows([.c] + stages, isReviewed: isReviewed, units: units)
      let plain = try world.rows([.c, .opaque] + stages)
      // Null and absent are equal in a sort, so rows without the field may change places with those that have null.
      #expect(Self.keys(pushed, order) == Self.keys(plain, order), "seed \(seed): \(stages)")
      let counted = try world.rows([.c] + stages + [.count], isReviewed: isReviewed, units: units)
      #expect(counted == [Row(name: nil, fields: MapValue([("n", .integer(Int64(plain.count)))]))], "seed \(seed)")
    }
  }

  private static func condition(_ random: inout SplitMix) -> PipelineArgument {
    let field = PipelineArgument.field(random.pick(fields))
    if random.chance(oneIn: 4) {
      let exists = PipelineArgument.call("exists", field)
      return random.chance(oneIn: 2) ? exists : .call(random.pick(["and", "or"]), exists, condition(&random))
    }
    let name = random.pick(["equal", "less_than", "greater_than", "less_than_or_equal", "greater_than_or_equal"])
    let one = PipelineArgument.call(name, field, .constant(random.pick(values)))
    guard random.chance(oneIn: 3) else { return one }
    return .call(random.pick(["and", "or"]), one, condition(&random))
  }

  /// The names of the rows, or what the order sees of them.
  private static func keys(_ rows: [Row], _ order: String?) -> [String] {
    rows.map { row in
      guard let order else { return row.name ?? "" }
      var value: Value? = .map(row.fields)
      for name in order.split(separator: ".") {
        if case .map(let map)? = value { value = map[String(name)] } else { value = nil }
      }
      guard let value, value.bracket != .null else { return "null" }
      return row.name ?? ""
    }
  }

  private static let tasks: [QueryModel.Document] = (0..<300).map { number in
    var fields = MapValue([("done", .boolean(number % 2 == 0))])
    if number % 3 != 0 { fields["rank"] = .integer(Int64(number)) }
    return (document("c/d\(number)").path, fields)
  }

  static let analyses: [(stages: [PipelineCall], isReviewed: Bool, parts: [String], documentsMax: Int)] = [
    ([.c, .count], false, ["collection, only counted"], 0),
    ([.c, .count], true, ["- collection (records returned: 300)"], 300),
    (
      [.c, .filter(.call("equal", .field("done"), .constant(.boolean(true)))), .count], false,
      ["collection, where, only counted", "scan entries of c: done == …"], 0
    ),
    ([.c, .limit(5)], false, ["limit 5"], 5),
    ([.c, .sort("rank", descending: true), .offset(2), .limit(5)], false, ["limit 7", "scan entries of c: rank"], 20),
    (
      [
        .c, .filter(.call("greater_than", .field("rank"), .integer(10))), .sort("rank", descending: false), .limit(3),
      ], false, ["limit 3", "scan entries of c: rank"], 3
    ),
    ([.c, .opaque, .sort("rank", descending: true), .limit(5)], false, ["sort, lowest 5"], 300),
    (
      [.c, .filter(.call("exists", .field("rank"))), .sort("rank", descending: true), .limit(5)], false,
      ["limit 5", "scan entries of c: rank"], 12
    ),
    (
      [
        .c,
        .filter(
          .call(
            "and", .call("exists", .field("rank")), .call("equal", .field("done"), .constant(.boolean(true))))),
        .limit(5),
      ], false, ["limit 5"], 12
    ),
  ]

  @Test(arguments: analyses) func explanationShowsTheSource(
    stages: [PipelineCall], isReviewed: Bool, parts: [String], documentsMax: Int
  ) throws {
    let world = try PipelineWorld()
    try world.set(Self.tasks)
    let text = try world.analysis(stages, isReviewed: isReviewed)
    for part in parts { #expect(text.contains(part), "\(text)") }
    let scanned = text.split(separator: "\n").first { $0.contains("entity row scanned") }
    let count = Int(scanned?.split(separator: " ").last ?? "") ?? .max
    #expect(count <= documentsMax, "\(text)")
  }

  /// A declared index gives a descending sort up to its ties, which come in the order of names, also in the past.
  @Test(arguments: TestSeeds.of("PIPELINE_SEED", otherwise: Array(1...8))) func tiesOfADescendingSortComeByName(
    seed: UInt64
  ) throws {
    var random = SplitMix(seed: seed)
    let world = try PipelineWorld(
      IndexConfiguration(
        indexes: [
          IndexDefinition(
            collectionID: "c", scope: .collection,
            fields: [
              .init(FieldPath(field: "done"), .ascending), .init(FieldPath(field: "rank"), .descending),
            ]),
          IndexDefinition(
            collectionID: "c", scope: .collection,
            fields: [.init(FieldPath(field: "rank"), .descending), .init(FieldPath(field: "size"), .ascending)]),
        ]))
    try world.set(
      (0..<250).map { number in
        var fields = MapValue([
          ("done", .boolean(random.chance(oneIn: 2))), ("rank", .integer(Int64(random.next() % 12))),
        ])
        if !random.chance(oneIn: 5) { fields["size"] = .integer(Int64(random.next() % 3)) }
        return (document("c/d\(number)").path, fields)
      })
    let isDone = PipelineCall.filter(.call("equal", .field("done"), .constant(.boolean(true))))
    let hasAll = PipelineCall.filter(.call("and", .call("exists", .field("rank")), .call("exists", .field("size"))))
    func order(_ terms: (String, Bool)...) -> PipelineCall {
      PipelineCall(
        "sort",
        terms.map { term in
          .members(
            ("expression", .field(term.0)),
            ("direction", .constant(.string(term.1 ? "descending" : "ascending"))))
        })
    }
    let cases: [(stages: [PipelineCall], plan: String)] = [
      ([isDone, .filter(.call("exists", .field("rank"))), order(("rank", true)), .limit(20)], "within rank"),
      (
        [isDone, .filter(.call("exists", .field("rank"))), order(("rank", true), ("__name__", false)), .limit(20)],
        "within rank"
      ),
      ([hasAll, order(("rank", true), ("size", false)), .limit(30)], "index"),
      ([hasAll, order(("rank", false), ("size", true)), .offset(3), .limit(30)], "index"),
    ]
    for (stages, plan) in cases {
      let expected = try world.rows([.c, .opaque] + stages)
      for units in [1, 30, 8192] {
        #expect(try world.rows([.c] + stages, units: units) == expected, "seed \(seed): \(stages)")
      }
      let text = try world.analysis([.c] + stages)
      #expect(text.contains(plan), "\(text)")
      // Documents that change while the pipeline runs do not change its rows.
      let execution = try world.execution([.c] + stages)
      var rows: [Row] = []
      for round in 0... where !execution.isAtEnd {
        if round < 20 {
          let fields = MapValue([("done", .boolean(true)), ("rank", .integer(50)), ("size", .integer(0))])
          try world.set([(document("c/d\(random.next() % 300)").path, fields)])
        }
        try world.database.read { reader in
          try execution.slice(reader.snapshot, units: 20) { result in
            rows.append(
              Row(name: result.name.map { String(decoding: $0, as: UTF8.self) }, fields: try result.fields.decoded()))
            return true
          }
        }
        if execution.isAtEnd { break }
      }
      #expect(rows == expected, "seed \(seed): \(stages), while documents change")
    }
  }

  /// Rows without the field of a descending sort come after all others, if the limit leaves room for them.
  @Test func rowsWithoutTheFieldComeLast() throws {
    let world = try PipelineWorld()
    try world.set(Array(Self.tasks.prefix(9)))
    let names = try world.rows([.c, .sort("rank", descending: true), .limit(8)]).map(\.description)
    #expect(names.map { String($0.prefix(2)) } == ["d8", "d7", "d5", "d4", "d2", "d1", "d0", "d3"])
  }

  /// Values that agree as far as an index entry contains them. Names and longer documents decide between them, with
  /// every plan.
  @Test func longValuesSortAlikeWithEveryPlan() throws {
    let long = String(repeating: "x", count: 1600)
    let zeros = String(repeating: "\u{0}", count: 740)
    let values: [Value] = [
      .string(long), .string(long + "a"), .string(long + "b"), .string("y"), .bytes(Array((long + "b").utf8)),
      .bytes(Array((long + "a").utf8)), .array([.string(long), .integer(2)]), .array([.string(long), .integer(1)]),
      .map(MapValue([("k", .string(long)), ("l", .integer(2))])),
      .map(MapValue([("k", .string(long)), ("l", .integer(1))])), .string(zeros + "ab"), .string(zeros + "aab"),
      .string(String(repeating: "x", count: 1495)), .string(String(repeating: "x", count: 1496)),
      .string(String(repeating: "x", count: 1497)), .string(String(repeating: "x", count: 1498)),
      .reference("projects/p/databases/(default)/documents/c/" + long + "b"),
      .reference("projects/p/databases/(default)/documents/c/" + long + "a"),
    ]
    let world = try PipelineWorld()
    try world.set(values.enumerated().map { (document("c/\(100 + $0.offset)").path, MapValue([("a", $0.element)])) })
    let exists = PipelineCall.filter(.call("exists", .field("a")))
    func sort(_ descending: Bool, byName: Bool) -> PipelineCall {
      var sort = PipelineCall.sort("a", descending: descending)
      if byName { sort.arguments += PipelineCall.sort("__name__", descending: true).arguments }
      return sort
    }
    for descending in [false, true] {
      for byName in [false, true] {
        let sort = sort(descending, byName: byName)
        for count in [1, 3, 100] {
          let expected = try world.rows([.c, .opaque, sort, .limit(count)])
          #expect(expected.count == min(count, values.count))
          for stages in [[.c, sort, .limit(count)], [.c, exists, sort, .limit(count)], [.c, exists, sort]] {
            #expect(Array(try world.rows(stages).prefix(count)) == expected, "\(descending) \(byName) \(stages.count)")
          }
        }
      }
    }
  }
}
