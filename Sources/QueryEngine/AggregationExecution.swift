package import DocumentModel
import DocumentStore
package import KeyValueStore
import WireFormat

/// Runs the aggregations of one query in one pass over its results (firestore-api.md, section 5.1).
///
/// Beside a sum or an average only documents that hold every aggregated field count, as the service's indexes make it.
/// Memory is bounded: no result is kept.
package final class AggregationExecution {
  /// The results that are aggregated.
  package let results: any QueryResults
  private let aggregations: [Aggregation]

  /// Plans the query; `version` is `nil` to read what the snapshot shows.
  package init(
    _ aggregations: [Aggregation], over query: ResolvedQuery, _ snapshot: any KeyValueSnapshot, at version: Int64?
  ) throws {
    self.aggregations = aggregations
    results = try query.results(
      snapshot, at: version, requiring: Array(Set(aggregations.compactMap(\.field))).sorted(), inOrder: false)
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

  /// The numbers, in the order of the aggregations.
  /// - Throws: what reading throws.
  package func run() throws -> [Value] {
    let fields = aggregations.compactMap(\.field)
    var numbers = aggregations.map { Accumulator($0.op) }
    // A count alone stops at its bound.
    let countMax = fields.isEmpty ? aggregations.compactMap(Self.bound).max() : nil
    let isBounded = countMax != nil && aggregations.allSatisfy { Self.bound($0) != nil }
    var count = 0
    while let (_, document) = try results.next() {
      let map = EncodedMap(documentFields: document.fields)
      for (index, aggregation) in aggregations.enumerated() {
        let value = try aggregation.field.flatMap { try map.value(at: $0) }
        try numbers[index].add(value)
      }
      count += 1
      if isBounded, let countMax, count >= countMax { break }
    }
    return numbers.map(\.result)
  }

  private static func bound(_ aggregation: Aggregation) -> Int? {
    guard case .count(let limit?) = aggregation.op else { return nil }
    return limit
  }
}

/// One number under way.
private struct Accumulator {
  private let op: Aggregation.Operator
  private var count = 0
  /// The integers' sum in 128 bits, so that an overflow on the way that cancels out leaves the exact sum.
  private var integers: Int128 = 0
  private var doubles = 0.0
  private var hasDoubles = false

  init(_ op: Aggregation.Operator) { self.op = op }

  mutating func add(_ value: EncodedValue?) throws {
    guard case .count = op else {
      switch try value?.content {
      case .integer(let number)?:
        integers += Int128(number)
        count += 1
      case .double(let number)?:
        doubles += number
        hasDoubles = true
        count += 1
      default: break  // What is no number takes no part.
      }
      return
    }
    count += 1
  }

  var result: Value {
    switch op {
    case .count(let limit): .integer(Int64(limit.map { min($0, count) } ?? count))
    case .sum:
      if !hasDoubles, let exact = Int64(exactly: integers) {
        .integer(exact)
      } else {
        .double(Double(integers) + doubles)
      }
    case .average: count == 0 ? .null : .double((Double(integers) + doubles) / Double(count))
    }
  }
}
