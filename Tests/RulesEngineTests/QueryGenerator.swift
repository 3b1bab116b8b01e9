import DocumentModel
import TestSupport

/// A generator of random queries of one collection, and of random conditions on the same fields.
struct QueryGenerator {
  private var random: SplitMix

  init(seed: UInt64) { random = SplitMix(seed: seed) }

  private static let fields = ["n", "s", "l", "b"]

  /// Returns a value that occurs in queries, documents and rules.
  mutating func value(of field: String) -> Value {
    switch field {
    case "n": random.pick([.integer(1), .integer(3), .double(1), .double(2.5), .integer(5), .double(.nan), .null])
    case "s": random.pick([.string("a"), .string("b"), .string("\u{10000}"), .string("\u{ffff}"), .string(""), .null])
    case "b": random.pick([.boolean(true), .boolean(false), .null, .integer(1)])
    default:
      random.pick([
        .array([.integer(1), .string("a")]), .array([.double(1)]), .array([.string("a"), .string("b")]), .array([]),
        .null,
      ])
    }
  }

  /// Returns a document's fields, of which some are missing.
  mutating func document() -> MapValue {
    var fields = MapValue()
    for name in Self.fields where !random.chance(oneIn: 4) { fields[name] = value(of: name) }
    if random.chance(oneIn: 3) { fields["secret"] = .boolean(true) }
    if random.chance(oneIn: 3) { fields["m"] = .map(MapValue([("k", value(of: "n"))])) }
    if random.chance(oneIn: 3) { fields["m"] = .map(MapValue([("k", value(of: "n")), ("o", value(of: "s"))])) }
    return fields
  }

  /// Returns a filter that Firestore accepts, or `nil`.
  mutating func filter() -> QueryFilter? {
    if random.chance(oneIn: 6) { return nil }
    var filters: [QueryFilter] = []
    var hasRange = false
    for _ in 0..<Int.random(in: 1...3, using: &random) { filters.append(comparison(&hasRange)) }
    if filters.count > 1, !hasRange, random.chance(oneIn: 5) { return .or(filters) }
    return filters.count == 1 ? filters[0] : .and(filters)
  }

  private mutating func comparison(_ hasRange: inout Bool) -> QueryFilter {
    let field = random.pick(["n", "s", "l", "b", "m.k", "n", "s", "m"])
    let path = FieldPath(segments: field.split(separator: ".").map(String.init))
    let operand = field == "m" ? Value.map(MapValue([("k", nonNull("n"))])) : nonNull(field == "m.k" ? "n" : field)
    switch Int.random(in: 0..<11, using: &random) {
    case 2 where !hasRange && field != "l":
      hasRange = true
      let operation = random.pick([FieldOperator.lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual])
      return .field(path, operation, operand)
    case 3 where !hasRange:
      hasRange = true
      return .field(path, .notEqual, operand)
    case 4 where field == "l":
      return .field(path, .arrayContains, random.pick([.integer(1), .double(1), .string("a"), .string("b")]))
    case 5 where field != "m":
      return .field(path, .in, .array([operand, nonNull(field == "m.k" ? "n" : field)]))
    case 6: return .unary(path, .isNull)
    case 7 where !hasRange:
      hasRange = true
      return .unary(path, .isNotNull)
    case 8 where !hasRange && field != "m":
      hasRange = true
      return .field(path, .notIn, .array([operand, nonNull(field == "m.k" ? "n" : field)]))
    case 9 where field == "l": return .field(path, .arrayContainsAny, .array([.integer(1), .string("a")]))
    case 10 where field == "n": return .unary(path, .isNaN)
    default: return .field(path, .equal, operand)
    }
  }

  private mutating func nonNull(_ field: String) -> Value {
    while true {
      let value = value(of: field)
      switch value {
      case .null: continue
      case .double(let number) where number.isNaN: continue
      default: return value
      }
    }
  }

  /// Returns a condition on `resource.data`.
  mutating func condition(depth: Int = 0) -> String {
    func pick(_ texts: String...) -> String { random.pick(texts) }
    if depth < 2, random.chance(oneIn: 3) {
      let left = condition(depth: depth + 1)
      let right = condition(depth: depth + 1)
      return pick("(\(left) && \(right))", "(\(left) || \(right))", "!(\(left))", "(\(left) ? \(right) : false)")
    }
    let number = pick("1", "1.0", "2.5", "3", "5", "0")
    let text = pick("'a'", "'b'", "''", "'\\uffff'", "'\\ud800\\udc00'")
    let field = pick("n", "s", "l", "b", "m.k", "m")
    let name = pick("n", "s", "l", "b", "m")
    let operation = pick("==", "!=", "<", "<=", ">", ">=")
    let type = pick("int", "number", "string", "list", "bool", "float", "map")
    return pick(
      "resource.data.n \(operation) \(number)", "resource.data.m.k \(operation) \(number)",
      "resource.data.s \(operation) \(text)", "resource.data.b == true", "resource.data.b",
      "resource.data.\(field) != null",
      "resource.data.\(field) == null", "resource.data.\(field) is \(type)", "\(number) in resource.data.l",
      "\(text) in resource.data.l", "resource.data.l.hasAny([\(text), \(number)])", "resource.data.n in [1, 3]",
      "resource.data.s in ['a', 'b']", "'secret' in resource.data", "resource.data.get('secret', false) == false",
      "resource.data.keys().hasOnly(['n', 's'])", "resource.data.keys().hasAny(['secret'])",
      "resource.data.size() == 1",
      "resource.data.n + 1 > 2", "resource.data.s.size() == 1", "resource.data.l[0] == 1", "resource.data.l.size() > 0",
      "resource.data == {'n': 1}", "\(number) \(operation) resource.data.n", "resource.data.m == {'k': 1}",
      "resource.data.get(['m', 'k'], 0) == 1", "'k' in resource.data.m", "resource.data.n == resource.data.n",
      "resource.data.diff({'n': 1}).affectedKeys().hasOnly([])", "resource == null", "resource.id == 'a'", "id == 'a'",
      "request.query.limit <= 10", "resource.data.s.matches('[ab]')", "string(resource.data.b) == 'true'",
      "resource.data.l == ['a', 'b']", "[resource.data.n] == [1]", "{'z': resource.data.m.k} != {'z': 1}",
      "[resource.data.s].hasAny(['a'])", "resource.data.m is map", "resource.data.m != {'k': 1}",
      "resource.data.l.hasAny([1])",
      "resource.data.keys().hasAll(['n', 'secret'])", "'\(name)' in resource.data.keys()",
      "resource.data.keys().hasAll(['\(name)'])", "resource.data.keys().hasAny(['\(name)', 'secret'])",
      "resource.data.keys().hasAll([])", "resource.data.keys().toSet().hasAll(['\(name)'].toSet())",
      "resource.data.keys().toSet().hasAny(['\(name)'])", "'\(name)' in resource.data.keys().toSet()",
      "['\(name)'].hasOnly(resource.data.keys())", "['\(name)', 'n'].hasAny(resource.data.keys())",
      "['\(name)'].toSet().hasOnly(resource.data.keys().toSet())", "['\(name)'].hasAll(resource.data.keys())",
      "resource.data.m.keys().hasAll(['k'])", "resource.data.m.keys().hasAny(['o', 'k'])",
      "resource.data.get('m', {}).keys().hasAll(['k'])", "resource.data.keys() == ['\(name)']",
      "resource.data.keys() != ['n']", "resource.data.keys() != null", "resource.data.keys() is list",
      "resource.data.keys().size() > 0", "resource.data.keys().size() < 2", "resource.data.keys()[0] == 'n'",
      "resource.data.keys().join(',') == '\(name)'", "resource.data.keys().concat(['z']).size() < 3",
      "resource.data.keys().removeAll(['n', 's']).size() == 0", "resource.data.keys().hasAny(resource.data.keys())",
      "resource.data.keys().toSet().difference(['n'].toSet()).size() == 0",
      "resource.data.keys().toSet().intersection(['s'].toSet()).size() == 0",
      "[resource.data.keys(), ['n']].toSet().size() == 2", "resource.data.l != resource.data.keys()",
      "resource.data.l.hasAny(resource.data.keys())", "{'a': resource.data.keys()} != {'a': ['n']}",
      "resource.data.keys()[0:1] != ['b']", "resource.data.keys() in [['n'], ['s']]",
      "[resource.data.n].toSet().size() == 1", "[resource.data.b].concat([1]).size() == 2",
      "resource.data.l.toSet() == [1, 'a'].toSet()", "resource.data.n is int")
  }
}
