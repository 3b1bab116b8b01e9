/// The condition of a hosting rule on the path of a request: a glob or a regular expression.
struct PathPattern: Sendable {
  private enum Form {
    case path([UInt8])
    case glob(prefix: [UInt8], PathExpression, exceptions: [PathExpression], isNegated: Bool)
    /// A regular expression, which may match a part of the path.
    case regex(PathExpression)
  }

  /// The reason why a pattern is not in force.
  struct Failure: Error { let text: String }

  private let form: Form

  /// Compiles a glob.
  ///
  /// - Parameter hasCaptures: whether `:name` captures a segment.
  /// - Throws: ``Failure`` if it is not valid or too large.
  init(glob text: String, hasCaptures: Bool = false) throws(Failure) {
    let glob: Glob
    do throws(Glob.Failure) { glob = try Glob(text, hasCaptures: hasCaptures) } catch {
      throw Failure(text: "the glob is not valid: \(error.text)")
    }
    if let path = glob.exactPath {
      form = .path(path)
      return
    }
    let expressions = ([nil] + (0..<glob.negationCount).map { $0 }).map {
      PathExpression(glob.expression(negation: $0))
    }
    let compiled = expressions.compactMap { $0 }
    guard compiled.count == expressions.count, let first = compiled.first else {
      throw Failure(text: "the glob is not valid or too large")
    }
    form = .glob(
      prefix: glob.isNegated ? [] : glob.prefix, first, exceptions: Array(compiled.dropFirst()),
      isNegated: glob.isNegated)
  }

  /// Compiles a regular expression.
  /// - Throws: ``Failure`` if RE2 rejects it or it is too large.
  init(regex text: String) throws(Failure) {
    guard let expression = PathExpression(text) else {
      throw Failure(text: "the regular expression is not valid in RE2's syntax, or too large")
    }
    form = .regex(expression)
  }

  /// The path that the pattern matches, if it matches only one.
  var exactPath: [UInt8]? {
    if case .path(let path) = form { path } else { nil }
  }

  /// The expression with the captured parts of the path, or `nil` if the pattern captures nothing.
  var expression: PathExpression? {
    switch form {
    case .path: nil
    case .glob(_, let expression, _, _), .regex(let expression): expression
    }
  }

  /// Whether a path matches.
  func matches(_ path: [UInt8]) -> Bool {
    switch form {
    case .path(let own): path == own
    case .regex(let expression): expression.matches(path)
    case .glob(let prefix, let expression, let exceptions, let isNegated):
      path.starts(with: prefix)
        && (expression.matches(path) && !exceptions.contains { $0.matches(path) }) != isNegated
    }
  }
}

/// Rules in the order of the configuration.
///
/// Cost of a search: one look-up for all rules that match a single path, and a comparison with the literal start of
/// each other rule before that.
struct RuleList<Rule: Sendable>: Sendable {
  private var rules: [Rule] = []
  private var exact: [[UInt8]: [Int]] = [:]
  private var others: [(number: Int, pattern: PathPattern)] = []

  var isEmpty: Bool { rules.isEmpty }

  /// Adds a rule after the others.
  mutating func append(_ rule: Rule, when pattern: PathPattern) {
    if let path = pattern.exactPath {
      exact[path, default: []].append(rules.count)
    } else {
      others.append((rules.count, pattern))
    }
    rules.append(rule)
  }

  /// Returns the first rule that matches and for which `body` returns a value.
  func first<Value>(for path: [UInt8], _ body: (Rule) -> Value?) -> Value? {
    var waiting = (exact[path] ?? [])[...]
    for (number, pattern) in others {
      while let next = waiting.first, next < number {
        if let value = body(rules[next]) { return value }
        waiting.removeFirst()
      }
      if pattern.matches(path), let value = body(rules[number]) { return value }
    }
    for next in waiting { if let value = body(rules[next]) { return value } }
    return nil
  }

  /// Calls `body` with each rule that matches, in order.
  func forEach(for path: [UInt8], _ body: (Rule) -> Void) {
    _ = first(for: path) { rule -> Void? in
      body(rule)
      return nil
    }
  }
}
