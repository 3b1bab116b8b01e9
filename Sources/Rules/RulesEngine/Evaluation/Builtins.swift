/// A function or method of the language.
enum Builtin: UInt8, CaseIterable {
  // Functions.
  case get, exists, getAfter, existsAfter, debug
  case toInt, toFloat, toString, toPath
  case mathAbs, mathCeil, mathFloor, mathRound, mathSqrt, mathPow, mathIsNaN
  case crc32, crc32c, md5, sha256
  case timestampDate, timestampOfMillis, timestampOfText
  case durationValue, durationTime, durationAbs
  case latlngValue
  // Methods.
  case stringSize, lower, upper, trim, matches, split, replace, toUTF8
  case bytesSize, toBase64, toHexString
  case year, month, day, hours, minutes, seconds, nanos, dayOfWeek, dayOfYear, date, time, toMillis
  case durationSeconds, durationNanos
  case latitude, longitude, distance
  case bind
  case listSize, listHasAll, listHasAny, listHasOnly, concat, removeAll, toSet, join
  case setSize, union, intersection, difference, setHasAll, setHasAny, setHasOnly
  case mapSize, keys, values, mapGet, diff
  case addedKeys, removedKeys, changedKeys, unchangedKeys, affectedKeys
  /// `hasAny` of a field that a query constrains.
  case constraintHasAny
  case contains
}

/// One overload of a function or method.
struct Signature: Sendable {
  /// The type of the receiver; `nil` for functions.
  let receiver: RuleType?
  let parameters: [RuleType]
  let builtin: Builtin
  /// The signature as messages show it: `list.hasAll(list)`.
  let text: String
}

/// All overloads of one name. A call is resolved among them by its argument types.
struct SignatureGroup: Sendable {
  let name: String
  let isMethod: Bool
  fileprivate(set) var signatures: [Signature]
}

/// The functions and methods of the language, by name.
enum Builtins {
  /// The names before the dot of functions such as `math.abs`.
  static let packages: Set<String> = ["math", "duration", "timestamp", "latlng", "hashing"]

  /// The overloads of the two tables below, grouped by name. Built once.
  static let groups: [SignatureGroup] = {
    var groups: [SignatureGroup] = []
    func add(_ text: String, _ builtin: Builtin, isMethod: Bool) {
      let full = String(text.prefix { $0 != "(" })
      let parameters = text.drop { $0 != "(" }.dropFirst().dropLast().split(separator: ",")
        .map { RuleType(rawValue: String($0.drop { $0 == " " })) ?? .any }
      let name = isMethod ? String(full.drop { $0 != "." }.dropFirst()) : full
      let receiver = isMethod ? RuleType(rawValue: String(full.prefix { $0 != "." })) : nil
      let signature = Signature(receiver: receiver, parameters: parameters, builtin: builtin, text: text)
      if let index = groups.firstIndex(where: { $0.name == name && $0.isMethod == isMethod }) {
        groups[index].signatures.append(signature)
      } else {
        groups.append(SignatureGroup(name: name, isMethod: isMethod, signatures: [signature]))
      }
    }
    for (text, builtin) in functions { add(text, builtin, isMethod: false) }
    for (text, builtin) in methods { add(text, builtin, isMethod: true) }
    return groups
  }()

  /// Returns the group of a function (`math.abs`) or a method (`size`), as an index of ``groups``.
  static func group(_ name: String, isMethod: Bool) -> Int? { (isMethod ? methodIndex : functionIndex)[name] }

  private static let functionIndex = index(isMethod: false)
  private static let methodIndex = index(isMethod: true)

  private static func index(isMethod: Bool) -> [String: Int] {
    var index: [String: Int] = [:]
    for (number, group) in groups.enumerated() where group.isMethod == isMethod { index[group.name] = number }
    return index
  }

  /// The group of `in`.
  static let inGroup = Int32(group("in", isMethod: true) ?? 0)

  private static let functions: [(String, Builtin)] = [
    ("get(path)", .get), ("exists(path)", .exists), ("getAfter(path)", .getAfter),
    ("existsAfter(path)", .existsAfter), ("debug(any)", .debug),
    ("int(int)", .toInt), ("int(float)", .toInt), ("int(string)", .toInt),
    ("float(int)", .toFloat), ("float(float)", .toFloat), ("float(string)", .toFloat),
    ("string(int)", .toString), ("string(float)", .toString), ("string(null)", .toString),
    ("string(string)", .toString), ("string(bool)", .toString), ("string(path)", .toString),
    ("path(string)", .toPath),
    ("math.abs(int)", .mathAbs), ("math.abs(float)", .mathAbs), ("math.ceil(float)", .mathCeil),
    ("math.floor(float)", .mathFloor), ("math.round(float)", .mathRound), ("math.sqrt(float)", .mathSqrt),
    ("math.pow(float, float)", .mathPow), ("math.isNaN(float)", .mathIsNaN),
    ("hashing.crc32(bytes)", .crc32), ("hashing.crc32(string)", .crc32),
    ("hashing.crc32c(bytes)", .crc32c), ("hashing.crc32c(string)", .crc32c),
    ("hashing.md5(bytes)", .md5), ("hashing.md5(string)", .md5),
    ("hashing.sha256(bytes)", .sha256), ("hashing.sha256(string)", .sha256),
    ("timestamp.date(int, int, int)", .timestampDate), ("timestamp.value(int)", .timestampOfMillis),
    ("timestamp.value(string)", .timestampOfText),
    ("duration.value(int, string)", .durationValue), ("duration.time(int, int, int, int)", .durationTime),
    ("duration.abs(duration)", .durationAbs),
    ("latlng.value(float, float)", .latlngValue),
  ]

  private static let methods: [(String, Builtin)] = [
    ("string.size()", .stringSize), ("string.lower()", .lower), ("string.upper()", .upper),
    ("string.trim()", .trim), ("string.matches(string)", .matches), ("string.split(string)", .split),
    ("string.replace(string, string)", .replace), ("string.toUtf8()", .toUTF8),
    ("bytes.size()", .bytesSize), ("bytes.toBase64()", .toBase64), ("bytes.toHexString()", .toHexString),
    ("timestamp.year()", .year), ("timestamp.month()", .month), ("timestamp.day()", .day),
    ("timestamp.hours()", .hours), ("timestamp.minutes()", .minutes), ("timestamp.seconds()", .seconds),
    ("timestamp.nanos()", .nanos), ("timestamp.dayOfWeek()", .dayOfWeek), ("timestamp.dayOfYear()", .dayOfYear),
    ("timestamp.date()", .date), ("timestamp.time()", .time), ("timestamp.toMillis()", .toMillis),
    ("duration.seconds()", .durationSeconds), ("duration.nanos()", .durationNanos),
    ("latlng.latitude()", .latitude), ("latlng.longitude()", .longitude), ("latlng.distance(latlng)", .distance),
    ("path.bind(map)", .bind),
    ("list.size()", .listSize), ("list.hasAll(list)", .listHasAll), ("list.hasAny(list)", .listHasAny),
    ("list.hasOnly(list)", .listHasOnly), ("list.concat(list)", .concat), ("list.removeAll(list)", .removeAll),
    ("list.toSet()", .toSet), ("list.join(string)", .join),
    ("set.size()", .setSize), ("set.union(set)", .union), ("set.intersection(set)", .intersection),
    ("set.difference(set)", .difference), ("set.hasAll(set)", .setHasAll), ("set.hasAll(list)", .setHasAll),
    ("set.hasAny(set)", .setHasAny), ("set.hasAny(list)", .setHasAny), ("set.hasOnly(set)", .setHasOnly),
    ("set.hasOnly(list)", .setHasOnly),
    ("map.size()", .mapSize), ("map.keys()", .keys), ("map.values()", .values), ("map.get(string, any)", .mapGet),
    ("map.get(list, any)", .mapGet), ("map.diff(map)", .diff),
    ("map_diff.addedKeys()", .addedKeys), ("map_diff.removedKeys()", .removedKeys),
    ("map_diff.changedKeys()", .changedKeys), ("map_diff.unchangedKeys()", .unchangedKeys),
    ("map_diff.affectedKeys()", .affectedKeys),
    ("constraint.hasAny(list)", .constraintHasAny),
    // An operator in the syntax, but messages call it a method.
    ("map.in(string)", .contains),
  ]
}
