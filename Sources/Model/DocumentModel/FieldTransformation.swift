/// The six field transforms (firestore-api.md, section 7.2).
package enum FieldTransformation {
  /// Applies a transform to a document's fields and returns the value for its entry in `transform_results`.
  package static func apply(_ transform: FieldTransform, to map: inout MapValue, requestTime: Timestamp) -> Value {
    let stored = map[transform.path]
    let (value, result) = outcome(transform.kind, stored: stored, requestTime: requestTime)
    map.set(value, at: transform.path)
    return result
  }

  private static func outcome(
    _ kind: FieldTransform.Kind, stored: Value?, requestTime: Timestamp
  ) -> (value: Value, result: Value) {
    switch kind {
    case .requestTime: return (.timestamp(requestTime), .timestamp(requestTime))
    case .increment(let operand):
      let sum = sum(stored, operand)
      return (sum, sum)
    case .maximum(let operand):
      let kept = extreme(stored, operand, keepsOperand: .greater)
      return (kept, kept)
    case .minimum(let operand):
      let kept = extreme(stored, operand, keepsOperand: .less)
      return (kept, kept)
    case .appendMissingElements(let operands):
      var elements = elements(of: stored)
      elements.append(contentsOf: ElementSet(operands).elements(missingFrom: elements))
      return (.array(elements), .null)
    case .removeAllFromArray(let operands):
      let removed = ElementSet(operands)
      return (.array(elements(of: stored).filter { removed.position(of: $0) == nil }), .null)
    }
  }

  private static func sum(_ stored: Value?, _ operand: Value) -> Value {
    switch (stored, operand) {
    case (.integer(let a)?, .integer(let b)):
      let (sum, overflowed) = a.addingReportingOverflow(b)
      return .integer(overflowed ? (b > 0 ? .max : .min) : sum)
    case (.integer(let a)?, .double(let b)): return .double(Double(a) + b)
    case (.double(let a)?, .integer(let b)): return .double(a + Double(b))
    case (.double(let a)?, .double(let b)): return .double(a + b)
    default: return operand
    }
  }

  /// Returns the stored number if both are equal, so that 3 does not become 3.0. NaN wins for maximum and for
  /// minimum.
  private static func extreme(_ stored: Value?, _ operand: Value, keepsOperand order: Ordering) -> Value {
    guard let stored, isNumber(stored) else { return operand }
    if case .double(let number) = stored, number.isNaN { return stored }
    if case .double(let number) = operand, number.isNaN { return operand }
    return Value.compare(operand, stored) == order ? operand : stored
  }

  private static func isNumber(_ value: Value) -> Bool {
    switch value {
    case .integer, .double: true
    default: false
    }
  }

  private static func elements(of stored: Value?) -> [Value] {
    guard case .array(let elements)? = stored else { return [] }
    return elements
  }
}

/// The distinct elements among a transform's operands. They are sorted, so that a large array is not compared
/// element by element with every operand. Elements are equal as in queries: 1 equals 1.0, and NaN equals NaN.
private struct ElementSet {
  private var sorted: [(element: Value, place: Int)] = []

  /// Collects the operands. Of equal operands the first one is kept.
  init(_ operands: [Value]) {
    let places = operands.indices.sorted { a, b in
      switch Value.compare(operands[a], operands[b]) {
      case .less: true
      case .equal: a < b
      case .greater: false
      }
    }
    for place in places {
      if let last = sorted.last, Value.compare(last.element, operands[place]) == .equal { continue }
      sorted.append((operands[place], place))
    }
  }

  /// Returns the position of an equal element, or `nil` if no element is equal.
  func position(of element: Value) -> Int? {
    var low = 0
    var high = sorted.count
    while low < high {
      let middle = (low + high) / 2
      switch Value.compare(sorted[middle].element, element) {
      case .less: low = middle + 1
      case .greater: high = middle
      case .equal: return middle
      }
    }
    return nil
  }

  /// Returns the elements that an array lacks, in the order of the operands.
  func elements(missingFrom array: [Value]) -> [Value] {
    var isMissing = Array(repeating: true, count: sorted.count)
    for element in array {
      if let position = position(of: element) { isMissing[position] = false }
    }
    return zip(sorted, isMissing).filter(\.1).map(\.0).sorted { $0.place < $1.place }.map(\.element)
  }
}
