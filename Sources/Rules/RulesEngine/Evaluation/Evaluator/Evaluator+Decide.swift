import Basics
import DocumentModel

/// Authorizes requests: finds the match blocks that apply and evaluates their conditions.
extension Evaluator {
  /// Authorizes access to one document. Cost: no allocation for common conditions, once the evaluator has memory.
  ///
  /// Without `lookups`, `get()` and the other lookups fail. A ruleset without rules for the service denies everything.
  package func decide(
    _ ruleset: Ruleset, _ request: BorrowedRulesRequest, lookups: DocumentLookups? = nil,
    explaining: Decision.Explanation = .none
  ) -> Decision {
    guard let program = ruleset.program else { return Decision() }
    begin(program, request, lookups)
    var decision = Decision()
    isTracing = explaining == .trace
    guard preparePath() else { return Decision() }
    let name = UnsafeBufferPointer(rebasing: requestPath[..<requestPathKnown])
    if request.bucket == nil {
      resource = documentValue(request.resource, name: name)
      newResource = documentValue(request.newResource, name: name)
    } else {
      resource = request.resource.map(RuleValue.encodedFields) ?? .null
      newResource = request.newResource.map(RuleValue.encodedFields) ?? .null
    }
    tryPatterns(program, explaining, &decision)
    finish(&decision)
    return decision
  }

  /// Authorizes access to one document, or a query by proof (see ``ProofMode``).
  package func decide(
    _ ruleset: Ruleset, _ request: RulesRequest, lookups: DocumentLookups? = nil,
    explaining: Decision.Explanation = .none, mode: ProofMode = .sound
  ) -> Decision {
    request.withBorrowed { borrowed in
      writeFields = request.writeFields
      transforms = request.transforms
      defer {
        writeFields = nil
        transforms = nil
      }
      if request.method == .list {
        let query = request.query ?? Query(parent: request.path.parent, collectionID: request.path.id)
        hasBSONTypes = request.edition.hasBSONTypes
        return prove(ruleset, borrowed, query, lookups: lookups, explaining: explaining, mode: mode)
      }
      return decide(ruleset, borrowed, lookups: lookups, explaining: explaining)
    }
  }

  /// Authorizes a request, even a list, by its one document and without a proof. The hosted service's test API does
  /// the same.
  package func decideOverDocument(
    _ ruleset: Ruleset, _ request: RulesRequest, lookups: DocumentLookups? = nil,
    explaining: Decision.Explanation = .none
  ) -> Decision {
    request.withBorrowed { borrowed in
      query = request.query
      return decide(ruleset, borrowed, lookups: lookups, explaining: explaining)
    }
  }

  /// Prepares a decision by a program on a request.
  func begin(_ program: Program, _ request: BorrowedRulesRequest, _ lookups: DocumentLookups?) {
    arena.reset()
    if self.program !== program {
      self.program = program
      if let base = program.nodes.baseAddress { nodes = base }
      if let base = program.operands.baseAddress { operands = base }
      if let base = program.constants.baseAddress { constants = base }
    }
    self.request = request
    self.lookups = lookups
    beginEvaluation()
    workAtStart = requestWork < Self.workMax ? requestWork + Self.cheapWorkMax : Self.workMax
    work = workAtStart
    lookupCount = 0
    usesTime = false
    mode = .sound
  }

  /// Resets the budget of expressions. The alternatives of a query share the budget of work.
  func beginEvaluation() {
    remaining = Self.expressionsMax
    stopped = nil
  }

  /// Begins a request, whose decisions share a budget of work, ``requestWorkMax``. Without a call, each decision has
  /// only its own budget.
  package func beginRequest() { requestWork = Self.requestWorkMax }

  /// The work that is left for the request.
  package var requestWorkLeft: Int { requestWork }

  /// Ends a decision, and releases what it borrowed.
  func finish(_ decision: inout Decision) {
    decision.usesTime = usesTime
    let counted = workAtStart - max(work, 0) - Self.cheapWorkMax
    if counted > 0, requestWork < .max { requestWork = max(0, requestWork - counted) }
    if isTracing {
      decision.trace = trace
      trace.removeAll()
      isTracing = false
    }
    lookups = nil
    query = nil
    request = BorrowedRulesRequest()
  }

  /// Splits the request's path into segments, after `databases/{database}/documents` or `b/{bucket}/o`. Returns
  /// `false` if the arena is full.
  func preparePath(extra: Int = 0) -> Bool {
    let path = request.path
    var count = path.isEmpty ? 3 : 4
    for byte in path where byte == UInt8(ascii: "/") { count += 1 }
    guard let segments = arena.take(PathSegment.self, count + extra) else { return false }
    let isFile = request.bucket != nil
    segments.initialize(to: PathSegment(isFile ? RuleBytes.of("b") : RuleBytes.of("databases")))
    (segments + 1).initialize(to: PathSegment(request.bucket ?? request.database))
    (segments + 2).initialize(to: PathSegment(isFile ? RuleBytes.of("o") : RuleBytes.of("documents")))
    var place = 3
    var start = 0
    if !path.isEmpty {
      for end in 0...path.count where end == path.count || path[end] == UInt8(ascii: "/") {
        (segments + place).initialize(to: PathSegment(UnsafeRawBufferPointer(rebasing: path[start..<end])))
        place += 1
        start = end + 1
      }
    }
    requestPath = UnsafeBufferPointer(start: segments, count: count)
    requestPathKnown = count
    return true
  }

  /// Tries the statements of all blocks that match a document's path, until one allows the request.
  private func tryPatterns(_ program: Program, _ explaining: Decision.Explanation, _ decision: inout Decision) {
    let method = request.method.asSet
    for pattern in program.patterns where !pattern.methods.isDisjoint(with: method) {
      guard
        PathMatcher.matches(
          pattern, program.segments, requestPath, isLastUnknown: false, unknown: .null, captures)
      else { continue }
      if tryAllows(program, pattern, method, explaining, &decision) { return }
    }
  }

  /// Tries the statements of a matching block. Returns whether one allows the request.
  func tryAllows(
    _ program: Program, _ pattern: MatchPattern, _ method: MethodSet, _ explaining: Decision.Explanation,
    _ decision: inout Decision
  ) -> Bool {
    for index in 0..<Int(pattern.allowCount) {
      let allow = program.allows[Int(pattern.firstAllow) + index]
      guard !allow.methods.isDisjoint(with: method) else { continue }
      var result = allow.condition < 0 ? .bool(true) : evaluate(allow.condition, captures)
      // A condition that exceeded a budget fails, even if `||` or `&&` absorbed the failure.
      if stopped != nil { result = stopFailure }
      if explaining >= .outcomes { note(allow, result, &decision) }
      if result.isTrue {
        decision.isAllowed = true
        decision.line = Int(allow.line)
        return true
      }
    }
    return false
  }

  private func note(_ allow: MatchPattern.Allow, _ result: RuleValue, _ decision: inout Decision) {
    let text =
      switch result {
      case .bool(let value): String(value)
      case .failure(let reason): reason.pointee.message
      default: "Type error. Received: [\(result.type.rawValue)] Expected: [bool]."
      }
    decision.outcomes.append(
      Decision.Outcome(line: Int(allow.line), range: Int(allow.start)..<Int(allow.end), result: text))
  }
}
