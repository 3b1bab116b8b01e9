package import DocumentModel
import DocumentStore
package import KeyValue
import WireFormat

/// The aggregations of one query, computed in slices in one pass over its results (firestore-api.md, section 5.1).
///
/// With a sum or an average, a document counts only if it has every aggregated field, because the indexes of
/// production contain only such documents. Memory is constant, except for a query that must sort: no result is kept.
/// Slices are those of ``QueryExecution``.
package final class AggregationExecution {
  /// The results that are aggregated.
  package let results: any QueryResults

  private let aggregations: [Aggregation]
  private let fields: [FieldPath]
  /// The number of results after which no aggregate can change.
  private let countMax: Int
  private var count = 0
  private var numbers: [Accumulator]

  /// Plans the query; see ``ResolvedQuery/results(_:at:_:)``.
  /// - Throws: ``StorageError`` if a read fails.
  package init(
    _ aggregations: [Aggregation], over query: ResolvedQuery, in edition: Edition = .standard,
    _ snapshot: any KeyValueSnapshot, at version: Int64, _ options: PlanOptions = PlanOptions()
  ) throws {
    self.aggregations = aggregations
    fields = Array(Set(aggregations.compactMap(\.field))).sorted()
    numbers = aggregations.map { Accumulator($0.op, sumOfNothing: edition == .standard ? .integer(0) : .null) }
    // A query that only counts can stop at the largest of the counts' limits.
    let bounds = aggregations.map { if case .count(let limit?) = $0.op { limit } else { Int.max } }
    countMax = bounds.max() ?? 0
    var options = options
    options.required = fields
    options.needsDocuments = !fields.isEmpty
    options.addsDistances = false
    // The order of results matters only if a limit or an offset selects some of them.
    options.isOrderNeeded = query.query.limit != nil || query.query.offset > 0
    results = try query.results(snapshot, at: version, options)
  }

  /// The plan in a stable text form, the outermost step first.
  package var planText: String {
    let steps = aggregations.map { aggregation in
      switch aggregation.op {
      case .count(let bound?): "count up to \(bound)"
      case .count(nil): "count"
      case .sum(let path): "sum of \(path.text)"
      case .average(let path): "average of \(path.text)"
      }
    }
    return results.planText.indented(below: steps.joined(separator: ", "))
  }

  /// Whether the query waits for scratch space; see ``QueryResults/wait(_:)``.
  package func wait(_ wake: @escaping @Sendable () -> Void) -> Bool { results.wait(wake) }

  /// Does about `units` of work. Returns the values of the aggregations, in order, after the last slice; otherwise
  /// `nil`.
  /// - Throws: ``StorageError`` if a read fails, ``WireError`` if a stored document is malformed.
  package func slice(_ snapshot: any KeyValueSnapshot, units: Int) throws -> [Value]? {
    if fields.isEmpty, let execution = results as? QueryExecution {
      try execution.count(snapshot, upTo: countMax, units: units)
      count = execution.returned
    } else {
      try results.slice(snapshot, units: units) { _, document in
        let map = EncodedMap(documentFields: document.fields)
        for (index, aggregation) in aggregations.enumerated() {
          guard let field = aggregation.field else { continue }
          try numbers[index].add(try map.value(at: field))
        }
        count += 1
        return count < countMax
      }
    }
    guard results.isAtEnd || count >= countMax else { return nil }
    return numbers.map { $0.result(count: count) }
  }
}

/// The running value of one aggregation.
private struct Accumulator {
  private let op: Aggregation.Operator
  /// The sum of a result without numbers: 0 in the standard edition, null in the enterprise edition.
  private let sumOfNothing: Value
  private var count = 0
  /// The sum of the integers in 128 bits. If an intermediate sum overflows 64 bits but the total does not, the
  /// result is exact.
  private var integers: Int128 = 0
  private var doubles = 0.0
  private var hasDoubles = false

  init(_ op: Aggregation.Operator, sumOfNothing: Value) {
    self.op = op
    self.sumOfNothing = sumOfNothing
  }

  mutating func add(_ value: EncodedValue?) throws {
    switch try value?.content {
    case .integer(let number)?:
      integers += Int128(number)
      count += 1
    case .double(let number)?:
      doubles += number
      hasDoubles = true
      count += 1
    default: break  // Values that are not numbers are ignored.
    }
  }

  func result(count results: Int) -> Value {
    switch op {
    case .count(let limit): .integer(Int64(limit.map { min($0, results) } ?? results))
    case .sum:
      if count == 0 {
        sumOfNothing
      } else if !hasDoubles, let exact = Int64(exactly: integers) {
        .integer(exact)
      } else {
        .double(Double(integers) + doubles)
      }
    case .average: count == 0 ? .null : .double((Double(integers) + doubles) / Double(count))
    }
  }
}
