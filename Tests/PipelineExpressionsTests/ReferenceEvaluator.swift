import DocumentModel
import Foundation
import PipelineExpressions

/// A naive evaluator of expressions on value trees, written from the dossier (pipelines.md, sections 2 and 4). It
/// shares no code with the product.
///
/// Regular expressions are left out; the facts cover them.
struct ReferenceEvaluator {
  var fields: MapValue
  var now: Timestamp
  var parameters: [String: Value] = [:]

  /// The arguments of one call, after errors were handled.
  typealias Arguments = [Outcome]

  static let failed = Outcome.error("")
  static let null = Outcome.value(.null)

  func evaluate(_ expression: PipelineExpression) -> Outcome {
    switch expression {
    case .constant(let value): return .value(value)
    case .field(let path): return fields[path].map { .value($0) } ?? .absent
    case .variable(let name): return parameters[name].map { .value($0) } ?? Self.failed
    case .array(let items): return call("array", items)
    case .map(let entries):
      return call("map", entries.flatMap { [PipelineExpression.constant(.string($0.key)), $0.value] })
    case .call(let call): return self.call(call.name, call.arguments)
    case .subpipeline: return Self.failed
    }
  }

  private func call(_ name: String, _ arguments: [PipelineExpression]) -> Outcome {
    if let result = lazy(name, arguments) { return result }
    let values = arguments.map(evaluate)
    for value in values {
      if case .error = value { return Self.failed }
    }
    return logic(name, values) ?? arithmetic(name, values) ?? text(name, values) ?? time(name, values)
      ?? array(name, values) ?? map(name, values) ?? other(name, values) ?? Self.failed
  }

  // MARK: Rules

  static func value(_ outcome: Outcome) -> Value? {
    if case .value(let value) = outcome { value } else { nil }
  }

  static func isNothing(_ outcome: Outcome) -> Bool {
    switch outcome {
    case .absent, .value(.null): true
    default: false
    }
  }

  static func isAbsent(_ outcome: Outcome) -> Bool {
    if case .absent = outcome { true } else { false }
  }

  static func boolean(_ flag: Bool) -> Outcome { .value(.boolean(flag)) }

  /// Null propagation: a value that `accept` refuses is an error; else null or absent gives null; else `compute`.
  func propagate(
    _ arguments: Arguments, _ accept: (Int, Value) -> Bool, _ compute: ([Value]) -> Outcome
  ) -> Outcome {
    for (index, argument) in arguments.enumerated() {
      if let value = Self.value(argument), value != .null, !accept(index, value) { return Self.failed }
    }
    if arguments.contains(where: Self.isNothing) { return Self.null }
    return compute(arguments.compactMap(Self.value))
  }

  static func isNumber(_ value: Value) -> Bool {
    switch value {
    case .integer, .double: true
    default: false
    }
  }

  static func isString(_ value: Value) -> Bool { if case .string = value { true } else { false } }
  static func isText(_ value: Value) -> Bool {
    switch value {
    case .string, .bytes: true
    default: false
    }
  }
  static func isArray(_ value: Value) -> Bool { if case .array = value { true } else { false } }
  static func isInteger(_ value: Value) -> Bool { if case .integer = value { true } else { false } }
  static func isMap(_ value: Value) -> Bool {
    guard case .map(let map) = value else { return false }
    return map.vectorComponents == nil
  }
  static func items(_ value: Value) -> [Value] { if case .array(let items) = value { items } else { [] } }
  static func integer(_ outcome: Outcome) -> Int64? {
    if case .value(.integer(let number)) = outcome { number } else { nil }
  }
  static func string(_ outcome: Outcome) -> String? {
    if case .value(.string(let text)) = outcome { text } else { nil }
  }

  static func equal(_ a: Outcome, _ b: Outcome) -> Bool {
    guard let x = value(a), let y = value(b) else { return isAbsent(a) && isAbsent(b) }
    return Value.compare(x, y) == .equal
  }

  // MARK: Functions that evaluate some arguments only

  private func lazy(_ name: String, _ arguments: [PipelineExpression]) -> Outcome? {
    switch name {
    case "and", "or", "nor":
      var isUnknown = false
      for argument in arguments {
        switch evaluate(argument) {
        case .value(.boolean(let flag)):
          if flag != (name == "and") { return Self.boolean(flag != (name == "nor")) }
        case .value(.null), .absent: isUnknown = true
        default: return Self.failed
        }
      }
      return isUnknown ? Self.null : Self.boolean((name == "and") != (name == "nor"))
    case "conditional":
      switch evaluate(arguments[0]) {
      case .value(.boolean(true)): return evaluate(arguments[1])
      case .value(.boolean(false)), .value(.null), .absent: return evaluate(arguments[2])
      default: return Self.failed
      }
    case "switch_on":
      var rest = arguments[...]
      while rest.count >= 2 {
        switch evaluate(rest.removeFirst()) {
        case .value(.boolean(true)): return evaluate(rest.removeFirst())
        case .value(.boolean(false)), .value(.null), .absent: rest.removeFirst()
        default: return Self.failed
        }
      }
      return rest.first.map(evaluate) ?? Self.failed
    case "if_null", "coalesce":
      var results: [Outcome] = []
      for argument in arguments {
        results.append(evaluate(argument))
        if let last = results.last, !Self.isNothing(last) { return last }
      }
      if name == "if_null" { return results.last ?? .absent }
      return results.allSatisfy(Self.isAbsent) ? .absent : Self.null
    case "if_absent":
      let first = evaluate(arguments[0])
      return Self.isAbsent(first) ? evaluate(arguments[1]) : first
    case "is_error", "if_error":
      let first = evaluate(arguments[0])
      guard case .error = first else { return name == "is_error" ? Self.boolean(false) : first }
      return name == "is_error" ? Self.boolean(true) : evaluate(arguments[1])
    case "array_filter", "array_transform": return lambda(name, arguments)
    default: return nil
    }
  }

  private func lambda(_ name: String, _ arguments: [PipelineExpression]) -> Outcome {
    let array = evaluate(arguments[0])
    if Self.isNothing(array) { return Self.null }
    guard let value = Self.value(array), Self.isArray(value) else { return Self.failed }
    var results: [Value] = []
    for (index, item) in Self.items(value).enumerated() {
      var inner = self
      for (place, argument) in arguments.dropFirst().dropLast().enumerated() {
        guard case .constant(.string(let parameter)) = argument else { return Self.failed }
        inner.parameters[parameter] = place == 0 ? item : .integer(Int64(index))
      }
      let result = inner.evaluate(arguments[arguments.count - 1])
      switch (name, result) {
      case (_, .error): return Self.failed
      case ("array_filter", .value(.boolean(true))): results.append(item)
      case ("array_filter", .value(.boolean(false))), ("array_filter", .value(.null)), ("array_filter", .absent): break
      case ("array_filter", _): return Self.failed
      case (_, .absent): results.append(.null)
      case (_, .value(let value)): results.append(value)
      }
    }
    return .value(.array(results))
  }

  // MARK: Comparison and logic

  private func logic(_ name: String, _ values: Arguments) -> Outcome? {
    switch name {
    case "equal": return Self.boolean(Self.equal(values[0], values[1]))
    case "not_equal": return Self.boolean(!Self.equal(values[0], values[1]))
    case "less_than", "less_than_or_equal", "greater_than", "greater_than_or_equal":
      guard let order = strict(values[0], values[1]) else { return Self.boolean(false) }
      switch name {
      case "less_than": return Self.boolean(order == .less)
      case "less_than_or_equal": return Self.boolean(order != .greater)
      case "greater_than": return Self.boolean(order == .greater)
      default: return Self.boolean(order != .less)
      }
    case "cmp":
      let order = Value.compare(Self.value(values[0]) ?? .null, Self.value(values[1]) ?? .null)
      return .value(.integer(order == .less ? -1 : order == .equal ? 0 : 1))
    case "xor":
      let flags = values.map { value -> Bool? in if case .value(.boolean(let flag)) = value { flag } else { nil } }
      for (value, flag) in zip(values, flags) where flag == nil && !Self.isNothing(value) { return Self.failed }
      if flags.contains(nil) { return Self.null }
      return Self.boolean(flags.count { $0 == true } % 2 == 1)
    case "not":
      return propagate(values, { _, value in if case .boolean = value { true } else { false } }) {
        Self.boolean($0[0] == .boolean(false))
      }
    case "equal_any", "not_equal_any":
      if Self.isNothing(values[1]) { return Self.null }
      guard let list = Self.value(values[1]), Self.isArray(list) else { return Self.failed }
      let isFound = Self.items(list).contains { Self.equal(values[0], .value($0)) }
      return Self.boolean(isFound == (name == "equal_any"))
    case "maximum" where values.count > 1, "minimum" where values.count > 1:
      return extreme(values.filter { !Self.isNothing($0) }.compactMap(Self.value), isGreatest: name == "maximum")
    case "exists": return Self.boolean(!Self.isAbsent(values[0]))
    case "is_absent": return Self.boolean(Self.isAbsent(values[0]))
    default: return nil
    }
  }

  private func strict(_ a: Outcome, _ b: Outcome) -> Ordering? {
    guard let x = Self.value(a), let y = Self.value(b) else {
      return Self.isAbsent(a) && Self.isAbsent(b) ? .equal : nil
    }
    return x.bracket == y.bracket ? Value.compare(x, y) : nil
  }

  /// The greatest or least value, the first one of equals.
  func extreme(_ values: [Value], isGreatest: Bool) -> Outcome {
    guard var best = values.first else { return Self.null }
    for value in values.dropFirst() where Value.compare(value, best) == (isGreatest ? .greater : .less) { best = value }
    return .value(best)
  }

  // MARK: Types, references, vectors

  private func other(_ name: String, _ values: Arguments) -> Outcome? {
    switch name {
    case "type", "is_type":
      let type = Self.value(values[0]).map(Self.typeName)
      if name == "type" { return .value(type.map { .string($0) } ?? .null) }
      guard let wanted = Self.string(values[1]), Self.typeNames.contains(wanted) else { return Self.failed }
      guard let value = Self.value(values[0]) else { return Self.null }
      return Self.boolean(wanted == type || wanted == "number" && Self.isNumber(value))
    case "document_id", "collection_id":
      return propagate(values, { _, value in if case .reference = value { true } else { false } }) { values in
        guard case .reference(let text) = values[0] else { return Self.failed }
        let parts = text.split(separator: "/")
        return .value(.string(String(parts[parts.count - (name == "document_id" ? 1 : 2)])))
      }
    case "vector_length", "euclidean_distance", "dot_product", "manhattan_distance":
      let isVector: (Int, Value) -> Bool = { _, value in
        if case .map(let map) = value { map.vectorComponents != nil } else { false }
      }
      return propagate(values, isVector) { distance(name, $0.map(Self.components)) }
    default: return nil
    }
  }

  private func distance(_ name: String, _ vectors: [[Double]]) -> Outcome {
    if name == "vector_length" { return .value(.integer(Int64(vectors[0].count))) }
    guard vectors[0].count == vectors[1].count else { return Self.failed }
    let pairs = zip(vectors[0], vectors[1])
    switch name {
    case "euclidean_distance":
      return .value(.double(pairs.reduce(0) { $0 + ($1.0 - $1.1) * ($1.0 - $1.1) }.squareRoot()))
    case "dot_product": return .value(.double(pairs.reduce(0) { $0 + $1.0 * $1.1 }))
    default: return .value(.double(pairs.reduce(0) { $0 + abs($1.0 - $1.1) }))
    }
  }

  private static func components(_ value: Value) -> [Double] {
    guard case .map(let map) = value else { return [] }
    return (map.vectorComponents ?? []).map { if case .double(let number) = $0 { number } else { .nan } }
  }

  private static let typeNames: Set<String> = [
    "null", "boolean", "int64", "float64", "timestamp", "string", "bytes", "reference", "geo_point", "array", "map",
    "vector", "number", "int32", "decimal128", "max_key", "min_key", "object_id", "regex", "bson_timestamp",
    "request_timestamp",
  ]

  private static func typeName(_ value: Value) -> String {
    switch value {
    case .null: "null"
    case .boolean: "boolean"
    case .integer: "int64"
    case .double: "float64"
    case .timestamp: "timestamp"
    case .string: "string"
    case .bytes: "bytes"
    case .reference: "reference"
    case .geoPoint: "geo_point"
    case .array: "array"
    case .map(let map): map.vectorComponents == nil ? "map" : "vector"
    }
  }
}
