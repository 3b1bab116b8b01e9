import TestSupport

/// A generator of random expressions. Most of their operands have a suitable type.
struct ExpressionGenerator {
  private var random: SplitMix
  private enum Kind: CaseIterable {
    case bool, int, float, string, bytes, list, map, set, path, timestamp, duration, latlng, mapDiff, any
  }

  init(seed: UInt64) { random = SplitMix(seed: seed) }

  /// Returns the next expression.
  mutating func next() -> String { make(random.pick(Kind.allCases), depth: 0) }

  private mutating func pick(_ texts: String...) -> String { random.pick(texts) }

  private mutating func make(_ kind: Kind, depth: Int) -> String {
    if random.chance(oneIn: 14) { return make(random.pick(Kind.allCases), depth: depth + 1) }
    if depth > 3 || random.chance(oneIn: 4) { return leaf(kind) }
    let next = depth + 1
    func m(_ kind: Kind, _ generator: inout ExpressionGenerator) -> String { generator.make(kind, depth: next) }
    switch kind {
    case .any: return make(random.pick(Kind.allCases), depth: next)
    case .bool: return bool(next)
    case .int: return int(next)
    case .float: return float(next)
    case .string: return string(next)
    case .bytes:
      return random.chance(oneIn: 2)
        ? "\(m(.string, &self)).toUtf8()" : "hashing.\(pick("md5", "crc32", "crc32c", "sha256"))(\(m(.string, &self)))"
    case .list: return list(next)
    case .map: return map(next)
    case .set:
      switch Int.random(in: 0..<4, using: &random) {
      case 0: return "\(m(.list, &self)).toSet()"
      case 1: return "\(m(.set, &self)).\(pick("union", "intersection", "difference"))(\(m(.set, &self)))"
      default:
        let method = pick("addedKeys", "removedKeys", "changedKeys", "unchangedKeys", "affectedKeys")
        return "\(m(.mapDiff, &self)).\(method)()"
      }
    case .path:
      switch Int.random(in: 0..<5, using: &random) {
      case 0: return "path(\(m(.string, &self)))"
      case 1: return "/a/$(\(m(pickKind(.string, .int, .path, .any), &self)))/b"
      case 2: return "(\(m(.path, &self)))[\(index()):\(index())]"
      case 3:
        return "(/a/{x}/{y=**}).bind({'x': \(m(.string, &self)), 'y': \(pick("/p/q", "request.path", "/a/{x}", "1"))})"
      default: return leaf(.path)
      }
    case .timestamp:
      switch Int.random(in: 0..<5, using: &random) {
      case 0: return "(\(m(.timestamp, &self)) \(pick("+", "-")) \(m(.duration, &self)))"
      case 1: return "\(m(.timestamp, &self)).date()"
      case 2: return "timestamp.value(\(m(.int, &self)))"
      case 3: return "timestamp.date(\(pick("2020", "1999", "1", "9999", "2023")), \(int(1, 13)), \(int(1, 31)))"
      default: return leaf(.timestamp)
      }
    case .duration:
      switch Int.random(in: 0..<5, using: &random) {
      case 0: return "(\(m(.duration, &self)) \(pick("+", "-")) \(m(.duration, &self)))"
      case 1: return "(\(m(.timestamp, &self)) - \(m(.timestamp, &self)))"
      case 2:
        return "duration.value(\(m(.int, &self)), \(pick("'s'", "'ms'", "'ns'", "'d'", "'w'", "'h'", "'m'", "'y'")))"
      case 3:
        return "duration.time(\(int(-30, 30)), \(int(-70, 70)), \(int(-70, 70)), \(int(-2_000_000_000, 2_000_000_000)))"
      default:
        return pick(
          "-(\(m(.duration, &self)))", "duration.abs(\(m(.duration, &self)))", "\(m(.timestamp, &self)).time()")
      }
    case .latlng: return "latlng.value(\(m(pickKind(.int, .float), &self)), \(m(pickKind(.int, .float), &self)))"
    case .mapDiff: return "\(m(.map, &self)).diff(\(m(.map, &self)))"
    }
  }

  private mutating func pickKind(_ kinds: Kind...) -> Kind { random.pick(kinds) }

  private mutating func int(_ low: Int, _ high: Int) -> String { String(Int.random(in: low...high, using: &random)) }

  private mutating func index() -> String { pick("0", "1", "2", "3", "-1", "") }

  private mutating func leaf(_ kind: Kind) -> String {
    switch kind {
    case .any: leaf(random.pick(Kind.allCases.filter { $0 != .any }))
    case .bool: pick("true", "false", "null", "resource == null", "'a' in resource.data", "(1 / 0 == 1)")
    case .int:
      pick(
        "0", "1", "-1", "2", "7", "100", "9223372036854775807", "-9223372036854775808", "resource.data.a",
        "resource.data.m.k", "resource.data.zz", "1700000000123", "3")
    case .float:
      pick(
        "0.0", "1.0", "-1.5", "2.5", "(0.0 / 0.0)", "(1.0 / 0.0)", "123456789.125", "0.001", "resource.data.f", "-0.0",
        "3.0")
    case .string:
      pick(
        "'a'", "''", "'abc'", "'A b,c'", "'5'", "'1.5'", "'é'", "'\\u00e9\\n'", "'日本'", "resource.data.s", "id",
        "'a/b'", "'x-y-x'", "'null'", "' pad '", "'a.b'", "'2020-01-01T00:00:00Z'", "request.method")
    case .bytes: pick("b'abc'", "b''", "b'\\xff\\x00'", "resource.data.b")
    case .list:
      pick(
        "[]", "[1]", "[1, 2, 3]", "['a', 'b']", "[1, 1.0, 'a']", "[null]", "[[1], [1.0]]", "resource.data.l", "['k']",
        "['a', 'zz']", "[{'a': 1}]")
    case .map:
      pick(
        "{}", "{'a': 1}", "{'a': 1, 'b': 2}", "{'b': 2.0, 'a': 1.0}", "{'k': {'a': [1]}}", "resource.data",
        "resource.data.m", "{'k': 5}", "resource", "{'a': null}")
    case .set: pick("[].toSet()", "[1, 2].toSet()", "['a', 'b'].toSet()", "[1.0].toSet()", "['k'].toSet()")
    case .path:
      pick("/a/b", "request.path", "resource.__name__", "resource.data.r", "/a/{x}", "path('a/b')", "(/a/b/c)")
    case .timestamp: pick("resource.data.t", "timestamp.date(2024, 2, 29)", "timestamp.value(0)", "timestamp.value(-1)")
    case .duration: pick("duration.value(1, 's')", "duration.value(-1500, 'ms')", "duration.time(1, 2, 3, 4)")
    case .latlng: pick("latlng.value(0, 0)", "latlng.value(37.5, -122.25)", "resource.data.g", "latlng.value(90, 180)")
    case .mapDiff: pick("{'a': 1}.diff({'a': 2, 'b': 3})", "resource.data.diff({'a': 1})", "{}.diff({})")
    }
  }

  private mutating func bool(_ depth: Int) -> String {
    func m(_ kind: Kind, _ generator: inout ExpressionGenerator) -> String { generator.make(kind, depth: depth) }
    let any = random.pick(Kind.allCases)
    switch Int.random(in: 0..<14, using: &random) {
    case 0: return "(\(m(.bool, &self)) && \(m(.bool, &self)))"
    case 1: return "(\(m(.bool, &self)) || \(m(.bool, &self)))"
    case 2: return "!(\(m(.bool, &self)))"
    case 3, 4: return "(\(m(any, &self)) \(pick("==", "!=")) \(m(any, &self)))"
    case 5: return "(\(m(any, &self)) \(pick("<", "<=", ">", ">=")) \(m(any, &self)))"
    case 6: return "(\(m(.any, &self)) in \(m(pickKind(.list, .set, .map), &self)))"
    case 7:
      let type = pick(
        "bool", "bytes", "duration", "float", "int", "latlng", "list", "map", "map_diff", "number", "path", "set",
        "string", "timestamp")
      return "(\(m(.any, &self)) is \(type))"
    case 8: return "\(m(.list, &self)).\(pick("hasAll", "hasAny", "hasOnly"))(\(m(.list, &self)))"
    case 9:
      return "\(m(.set, &self)).\(pick("hasAll", "hasAny", "hasOnly"))(\(m(pickKind(.set, .list), &self)))"
    case 10: return "\(m(.string, &self)).matches(\(pattern()))"
    case 11: return "(\(m(.bool, &self)) ? \(m(.bool, &self)) : \(m(.bool, &self)))"
    case 12: return "math.isNaN(\(m(pickKind(.int, .float), &self)))"
    default: return "(\(m(any, &self)) == \(m(random.pick(Kind.allCases), &self)))"
    }
  }

  private mutating func pattern() -> String {
    pick(
      "'a'", "'.*'", "'[a-z]+'", "'(a)(b)?'", "'\\\\d+'", "'\\\\w'", "'^a'", "'a|b'", "'(?i)A'", "','", "'[^a]'", "''",
      "'a*'",
      "'(?P<n>.)'", "'\\\\s'", "'\\\\.'", "'b$'", "id")
  }

  private mutating func int(_ depth: Int) -> String {
    func m(_ kind: Kind, _ generator: inout ExpressionGenerator) -> String { generator.make(kind, depth: depth) }
    switch Int.random(in: 0..<9, using: &random) {
    case 0, 1: return "(\(m(.int, &self)) \(pick("+", "-", "*", "/ ", "%")) \(m(.int, &self)))"
    case 2: return "-(\(m(.int, &self)))"
    case 3: return "int(\(m(pickKind(.int, .float, .string), &self)))"
    case 4: return "\(m(pickKind(.string, .bytes, .list, .set, .map), &self)).size()"
    case 5: return "math.\(pick("abs", "round"))(\(m(pickKind(.int, .float), &self)))"
    case 6:
      let part = pick(
        "year", "month", "day", "hours", "minutes", "seconds", "nanos", "dayOfWeek", "dayOfYear", "toMillis")
      return "\(m(.timestamp, &self)).\(part)()"
    case 7: return "(\(m(.duration, &self))).\(pick("seconds", "nanos"))()"
    default: return "(\(m(.bool, &self)) ? \(m(.int, &self)) : \(m(.int, &self)))"
    }
  }

  private mutating func float(_ depth: Int) -> String {
    func m(_ kind: Kind, _ generator: inout ExpressionGenerator) -> String { generator.make(kind, depth: depth) }
    switch Int.random(in: 0..<6, using: &random) {
    case 0, 1: return "(\(m(.float, &self)) \(pick("+", "-", "*", "/ ", "%")) \(m(pickKind(.int, .float), &self)))"
    case 2: return "float(\(m(pickKind(.int, .float, .string), &self)))"
    case 3: return "math.\(pick("ceil", "floor", "sqrt", "abs"))(\(m(pickKind(.int, .float), &self)))"
    case 4: return "math.pow(\(m(pickKind(.int, .float), &self)), \(m(pickKind(.int, .float), &self)))"
    default: return "\(m(.latlng, &self)).\(pick("latitude()", "longitude()", "distance(\(m(.latlng, &self)))"))"
    }
  }

  private mutating func string(_ depth: Int) -> String {
    func m(_ kind: Kind, _ generator: inout ExpressionGenerator) -> String { generator.make(kind, depth: depth) }
    switch Int.random(in: 0..<10, using: &random) {
    case 0: return "(\(m(.string, &self)) + \(m(.string, &self)))"
    case 1: return "\(m(.string, &self)).\(pick("lower", "upper", "trim"))()"
    case 2:
      return "\(m(.string, &self)).replace(\(pattern()), \(pick("'-'", "''", "'$0'", "'[$1]'", "'a\\\\$'", "id")))"
    case 3: return "string(\(m(pickKind(.int, .float, .bool, .string, .path), &self)))"
    case 4: return "\(m(.list, &self)).join(\(m(.string, &self)))"
    case 5: return "\(m(.bytes, &self)).\(pick("toBase64", "toHexString"))()"
    case 6: return "\(m(.string, &self))[\(pick("0", "1", "2", "-1"))]"
    case 7: return "\(m(.string, &self))[\(index()):\(index())]"
    case 8: return "(\(m(.path, &self)))[\(pick("0", "1", "2", "-1", "'x'"))]"
    default: return "(\(m(.bool, &self)) ? \(m(.string, &self)) : \(m(.string, &self)))"
    }
  }

  private mutating func list(_ depth: Int) -> String {
    func m(_ kind: Kind, _ generator: inout ExpressionGenerator) -> String { generator.make(kind, depth: depth) }
    switch Int.random(in: 0..<8, using: &random) {
    case 0: return "[\(m(.any, &self)), \(m(.any, &self))]"
    case 1: return "\(m(.list, &self)).concat(\(m(.list, &self)))"
    case 2: return "\(m(.list, &self)).removeAll(\(m(.list, &self)))"
    case 3: return "\(m(.list, &self))[\(index()):\(index())]"
    case 4: return "\(m(.string, &self)).split(\(pattern()))"
    case 5: return "\(m(.map, &self)).\(pick("keys", "values"))()"
    case 6: return "\(m(.list, &self))[\(pick("0", "1", "-1"))]"
    default: return "[\(m(.string, &self))]"
    }
  }

  private mutating func map(_ depth: Int) -> String {
    func m(_ kind: Kind, _ generator: inout ExpressionGenerator) -> String { generator.make(kind, depth: depth) }
    switch Int.random(in: 0..<4, using: &random) {
    case 0: return "{\(m(.string, &self)): \(m(.any, &self)), 'a': \(m(.any, &self))}"
    case 1: return "\(m(.map, &self)).get(\(pick("'a'", "'k'", "['k', 'a']", "['a']", "[]", "id")), \(m(.any, &self)))"
    case 2: return "\(m(.map, &self))[\(pick("'a'", "'k'", "id"))]"
    default: return "\(m(.map, &self)).\(pick("a", "k", "data"))"
    }
  }
}
