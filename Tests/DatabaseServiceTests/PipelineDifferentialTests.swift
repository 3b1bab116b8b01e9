import DatabaseService
import DocumentModel
import QueryEngine
import Testing
import TestSupport
import WireFormat

/// A query and the equivalent pipeline (pipelines.md, section 6.1) have the same results in the same order.
@Suite struct PipelineDifferentialTests {
  @Test(arguments: 1...6) func pipelinesMatchQueries(seed: UInt64) throws {
    var generator = QueryGenerator(seed: seed)
    let fixture = try ServiceFixture()
    for start in generator.documents() {
      try fixture.commit(
        Write(.update(EncodedFields(start.fields), mask: nil), key: DocumentKey(uncheckedPath: start.path)))
    }
    var compared = 0
    for _ in 0..<150 {
      var query = generator.query()
      query.start = nil
      query.end = nil
      query.offset = generator.number(0...2)
      if generator.number(0...1) == 0 { query.limit = generator.number(0...6) }
      guard let orders = try? ResolvedQuery(query, in: fixture.id).orders,
        let stages = Self.stages(query, orders)
      else { continue }
      let expected = try fixture.paths(of: query)
      #expect(try fixture.paths(of: stages) == expected, "seed \(seed): \(query)\n\(stages)")
      compared += 1
    }
    #expect(compared > 20, "seed \(seed): only \(compared) queries have an equivalent pipeline")
  }

  /// Returns the stages, or `nil` if the query has none that mean the same.
  private static func stages(_ query: Query, _ orders: [Order]) -> [PipelineCall]? {
    var stages: [PipelineCall] = []
    switch (query.collectionID, query.includesDescendants) {
    case (let id?, false): stages.append(.collection(query.parent.appending(id).text))
    case (let id?, true):
      stages.append(
        PipelineCall("collection_group", [.path(query.parent.isRoot ? "" : "/" + query.parent.text), .text(id)]))
    case (nil, true) where query.parent.isRoot: stages.append(PipelineCall("database"))
    case (nil, _): return nil
    }
    if let filter = query.filter {
      guard let condition = condition(filter) else { return nil }
      stages.append(.matching(condition))
    }
    for order in orders where !order.path.isDocumentName {
      stages.append(.matching(.call("exists", .field(order.path.text))))
    }
    stages.append(
      PipelineCall(
        "sort",
        orders.map { order in
          .entries([
            PipelineArgument.Entry("expression", .field(order.path.text)),
            PipelineArgument.Entry("direction", .text(order.isDescending ? "descending" : "ascending")),
          ])
        }))
    stages.append(PipelineCall("offset", [.int(query.offset)]))
    if let limit = query.limit { stages.append(PipelineCall("limit", [.int(limit)])) }
    return stages
  }

  private static func condition(_ filter: QueryFilter, isInOr: Bool = false) -> PipelineArgument? {
    switch filter {
    case .and(let filters):
      let parts = filters.compactMap { condition($0, isInOr: isInOr) }
      return parts.count == filters.count ? .function(PipelineCall("and", parts)) : nil
    case .or(let filters):
      let parts = filters.compactMap { condition($0, isInOr: true) }
      return parts.count == filters.count ? .function(PipelineCall("or", parts)) : nil
    case .unary(let path, let op):
      let field = PipelineArgument.field(path.text)
      let operand = PipelineArgument.constant(op == .isNaN || op == .isNotNaN ? .double(.nan) : .null)
      let isEqual = op == .isNaN || op == .isNull
      let test = PipelineArgument.call(isEqual ? "equal" : "not_equal", field, operand)
      return isEqual ? existing(field, test) : existing(field, test, notNull(field))
    case .field(let path, let op, let value):
      // An element or operand that is null or NaN has another meaning in queries.
      let operands = if case .array(let elements) = value, takesList(op) { elements } else { [value] }
      guard !operands.contains(where: isNullOrNaN) else { return nil }
      let field = PipelineArgument.field(path.text)
      switch op {
      case .notEqual, .notIn:
        return existing(field, .call(names[op] ?? "", field, .constant(value)), notNull(field))
      case .arrayContains, .arrayContainsAny:
        // A field that is not an array is an error, which ends an `or`. Queries do not find arrays in arrays.
        guard !isInOr, !operands.contains(where: { if case .array = $0 { true } else { false } }) else { return nil }
        return existing(field, .call(names[op] ?? "", field, .constant(value)))
      default: return existing(field, .call(names[op] ?? "", field, .constant(value)))
      }
    }
  }

  private static let names: [FieldOperator: String] = [
    .lessThan: "less_than", .lessThanOrEqual: "less_than_or_equal", .greaterThan: "greater_than",
    .greaterThanOrEqual: "greater_than_or_equal", .equal: "equal", .notEqual: "not_equal",
    .arrayContains: "array_contains", .in: "equal_any", .arrayContainsAny: "array_contains_any",
    .notIn: "not_equal_any",
  ]

  private static func takesList(_ op: FieldOperator) -> Bool {
    op == .in || op == .notIn || op == .arrayContainsAny
  }

  private static func isNullOrNaN(_ value: Value) -> Bool {
    switch value {
    case .null: true
    case .double(let number): number.isNaN
    default: false
    }
  }

  private static func existing(_ field: PipelineArgument, _ tests: PipelineArgument...) -> PipelineArgument {
    .function(PipelineCall("and", [.call("exists", field)] + tests))
  }

  private static func notNull(_ field: PipelineArgument) -> PipelineArgument {
    .call("not_equal", field, .constant(.null))
  }
}
