import Basics
package import DocumentModel

/// Finds comparisons of `request.time` with a date that has passed, such as those of the test rules that consoles
/// offer: `request.time < timestamp.date(2021, 5, 16)`. Since that date, they deny every request.
///
/// Comparisons below `!` are not reported, because they have become true.
struct ExpiredConditions {
  private let source: SourceText
  private let now: Moment
  private var found: [Diagnostic] = []

  /// Returns a warning for each comparison, in the order of the text.
  static func diagnostics(_ tree: RulesetTree, _ source: SourceText, at time: Timestamp) -> [Diagnostic] {
    let seconds = time.microseconds.quotientAndRemainder(dividingBy: 1_000_000)
    var search = ExpiredConditions(
      source: source, now: Moment(seconds: seconds.quotient, nanos: Int32(seconds.remainder) * 1000))
    for function in tree.functions { search.visit(function) }
    for service in tree.services {
      for function in service.functions { search.visit(function) }
      for match in service.matches { search.visit(match) }
    }
    return search.found.sorted { $0.range.lowerBound < $1.range.lowerBound }
  }

  private init(source: SourceText, now: Moment) {
    self.source = source
    self.now = now
  }

  private mutating func visit(_ match: MatchTree) {
    for function in match.functions { visit(function) }
    for member in match.members {
      switch member {
      case .match(let inner): visit(inner)
      case .allow(let allow): if let condition = allow.condition { visit(condition) }
      }
    }
  }

  private mutating func visit(_ function: FunctionTree) {
    for (_, value) in function.lets { visit(value) }
    visit(function.result)
  }

  private mutating func visit(_ expression: Expression) {
    switch expression.kind {
    case .unary(.not, _): return
    case .binary(.less, let time, let end), .binary(.lessOrEqual, let time, let end),
      .binary(.greater, let end, let time), .binary(.greaterOrEqual, let end, let time):
      guard time.dottedPath == "request.time", let end = Self.moment(end), isBefore(end, now) else { break }
      let (day, _) = CivilDate.split(Int(end.seconds))
      let date = CivilDate(daysSince1970: day)
      found.append(
        Diagnostic(
          .warning, "This condition has expired: it is false since \(Self.text(date)).", at: expression.range,
          in: source, suggestion: "write rules that do not depend on the date"))
    default: break
    }
    for child in expression.children { visit(child) }
  }

  private func isBefore(_ a: Moment, _ b: Moment) -> Bool { (a.seconds, a.nanos) < (b.seconds, b.nanos) }

  /// Returns the time that `timestamp.date(y, m, d)` or `timestamp.value(ms)` with constants has.
  private static func moment(_ expression: Expression) -> Moment? {
    guard case .call(let name, let arguments) = expression.kind else { return nil }
    let numbers = arguments.compactMap { if case .integer(let number) = $0.kind { number } else { nil } }
    guard numbers.count == arguments.count else { return nil }
    switch (name.text, numbers.count) {
    case ("timestamp.date", 3):
      let (year, month, day) = (numbers[0], numbers[1], numbers[2])
      guard (1...9999).contains(year), (1...12).contains(month),
        (1...Int64(CivilDate.days(inMonth: Int(month), of: Int(year)))).contains(day)
      else { return nil }
      return Moment(day: CivilDate(year: Int(year), month: Int(month), day: Int(day)).daysSince1970)
    case ("timestamp.value", 1):
      let (seconds, rest) = numbers[0].quotientAndRemainder(dividingBy: 1000)
      guard Moment.timestampSeconds.contains(seconds) else { return nil }
      return Moment.normalized(seconds: seconds, nanos: rest * 1_000_000, isDuration: false)
    default: return nil
    }
  }

  private static func text(_ date: CivilDate) -> String {
    func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let year = String(date.year)
    return "\(String(repeating: "0", count: max(0, 4 - year.count)))\(year)-\(two(date.month))-\(two(date.day))"
  }
}

extension Ruleset {
  /// Returns everything that can be said about a text: each syntax error, or the errors, warnings and lint of the
  /// checker, in the order of the text. Conditions that have expired at `time` are warnings. The text of a compiled
  /// ruleset has no errors.
  package static func diagnostics(of text: String, at time: Timestamp) -> [Diagnostic] {
    let source = SourceText(Array(text.utf8))
    let tree: RulesetTree
    do throws(RulesetError) { tree = try Parser.parse(source) } catch { return Parser.errors(in: source) }
    let all = Checker.check(tree, source) + ExpiredConditions.diagnostics(tree, source, at: time)
    return all.enumerated()
      .sorted { ($0.element.range.lowerBound, $0.offset) < ($1.element.range.lowerBound, $1.offset) }.map(\.element)
  }
}
