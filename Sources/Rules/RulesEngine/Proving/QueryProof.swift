import Basics
import DocumentModel
import WireFormat

/// Authorizes queries. Rules are not filters: a query is allowed only if its own conditions prove that every
/// document it could return is allowed (rules-language.md, section 14).
extension Evaluator {
  /// Authorizes a query by two proofs, the emulator's and a sound one. Both must succeed, so nothing is allowed
  /// that Google's engine denies. For example, only the sound proof concludes `n is number` from a filter for
  /// numbers above 3, so a rule with this condition denies the query.
  func prove(
    _ ruleset: Ruleset, _ request: BorrowedRulesRequest, _ query: Query, lookups: DocumentLookups?,
    explaining: Decision.Explanation, mode: ProofMode
  ) -> Decision {
    guard let program = ruleset.program else { return Decision() }
    var request = request
    if mode == .emulator { request.lookupsMax = max(request.lookupsMax, Self.emulatorLookupsMax) }
    let emulatorDecision = prove(program, request, query, lookups: lookups, explaining, .emulator)
    guard mode == .sound, emulatorDecision.isAllowed else { return emulatorDecision }
    var soundDecision = prove(program, request, query, lookups: lookups, explaining, .sound)
    soundDecision.usesTime = soundDecision.usesTime || emulatorDecision.usesTime
    return soundDecision
  }

  /// Proves a query in one mode: some `allow` statement must allow each alternative of its filter. In `resource`,
  /// only the fields that the alternative constrains are known.
  private func prove(
    _ program: Program, _ request: BorrowedRulesRequest, _ query: Query, lookups: DocumentLookups?,
    _ explaining: Decision.Explanation, _ mode: ProofMode
  ) -> Decision {
    begin(program, request, lookups)
    self.mode = mode
    self.query = query
    isTracing = explaining == .trace
    var decision = Decision()
    let isWhole = !query.includesDescendants && query.collectionID != nil
    let collection = query.collectionID.map { isWhole ? query.parent.appending($0) : query.parent } ?? query.parent
    collection.bytes.withUnsafeBytes { bytes in
      self.request.path = bytes
      // Two more segments: the collection ID for a group, and the document.
      guard preparePath(extra: 2), let disjuncts = Disjuncts.of(query.filter), !disjuncts.isEmpty else { return }
      appendUnknown(query, isWhole: isWhole)
      for disjunct in disjuncts {
        beginEvaluation()
        decision.isAllowed = false
        decision.line = nil
        prove(program, disjunct, isWhole: isWhole, explaining, &decision)
        if !decision.isAllowed { break }
      }
    }
    if !decision.isAllowed { decision.line = nil }
    finish(&decision)
    return decision
  }

  /// The emulator's limit of lookups for a query, twice the documented one.
  private static let emulatorLookupsMax = 20

  /// Appends the collection of a group and the unknown document to the segments of the path.
  private func appendUnknown(_ query: Query, isWhole: Bool) {
    let count = requestPath.count
    guard let base = UnsafeMutablePointer(mutating: requestPath.baseAddress) else { return }
    var end = count
    if !isWhole {
      let group = query.collectionID.flatMap { copied(Array($0.utf8)) } ?? RuleBytes.of("")
      (base + end).initialize(to: PathSegment(group))
      end += 1
      requestPathKnown = 0
    }
    (base + end).initialize(to: PathSegment(RuleBytes.of("")))
    requestPath = UnsafeBufferPointer(start: base, count: end + 1)
  }

  private func prove(
    _ program: Program, _ disjunct: [Disjuncts.Condition], isWhole: Bool, _ explaining: Decision.Explanation,
    _ decision: inout Decision
  ) {
    let unknown = failure(.nullValue)
    let data = resourceData(disjunct)
    var name = UnsafeBufferPointer<PathSegment>(start: nil, count: 0)
    var isLastUnknown = true
    if isWhole, let id = documentID(disjunct), let base = UnsafeMutablePointer(mutating: requestPath.baseAddress) {
      (base + requestPath.count - 1).initialize(to: PathSegment(id))
      name = requestPath
      isLastUnknown = false
    }
    resource = documentValue(data: data, name: name)
    for pattern in program.patterns where pattern.methods.contains(.list) {
      let matches =
        if isWhole {
          PathMatcher.matches(
            pattern, program.segments, requestPath, isLastUnknown: isLastUnknown, unknown: unknown, captures)
        } else {
          PathMatcher.matchesGroup(
            pattern, program.segments, requestPath, segmentsAfterGlobMax: query?.collectionID == nil ? 0 : 2,
            unknown: unknown,
            captures)
        }
      if matches, tryAllows(program, pattern, .list, explaining, &decision) { return }
    }
  }

  /// Returns the document ID that a filter on `__name__` determines, if the document is in the queried collection.
  private func documentID(_ disjunct: [Disjuncts.Condition]) -> UnsafeRawBufferPointer? {
    for condition in disjunct where condition.path.isDocumentName {
      guard case .field(.equal, .reference(let name)) = condition.test else { continue }
      let segments = Array(name.utf8).split(separator: UInt8(ascii: "/"))
      // The name is projects/p/databases/d/documents/…, and the path databases/d/documents/….
      guard segments.count == requestPath.count + 2,
        zip(segments.dropFirst(2).dropLast(), requestPath).allSatisfy({ $0.elementsEqual($1.text) }),
        let id = segments.last
      else { continue }
      return copied(Array(id))
    }
    return nil
  }

  // MARK: Known fields

  /// The constrained fields, as a tree of their paths.
  private final class Known {
    var children: [(name: [UInt8], known: Known)] = []
    /// The operands of equalities. If all are equal, they are the value.
    var literals: [RuleValue] = []
    var constraints: [FieldConstraint] = []

    func child(_ name: [UInt8]) -> Known {
      if let child = children.first(where: { $0.name == name })?.known { return child }
      let child = Known()
      children.append((name, child))
      return child
    }
  }

  /// Returns `resource.data` with the fields that the conditions constrain.
  private func resourceData(_ disjunct: [Disjuncts.Condition]) -> RuleValue {
    let root = Known()
    for condition in disjunct where !condition.path.isDocumentName {
      var known = root
      for name in condition.path.segments { known = known.child(Array(name.utf8)) }
      note(condition.test, known)
    }
    return map(of: root)
  }

  /// Returns a map of the known children and the other entries of `literal`.
  private func map(of known: Known, over literal: RuleValue? = nil) -> RuleValue {
    let base = literal.flatMap { entries($0) }
    let countMax = known.children.count + (base?.count ?? 0)
    guard let entries = arena.take(MapEntry.self, countMax) else { return outOfMemory() }
    var count = 0
    for entry in base ?? UnsafeBufferPointer(start: nil, count: 0)
    where !known.children.contains(where: { entry.key.elementsEqual($0.name) }) {
      (entries + count).initialize(to: entry)
      count += 1
    }
    for (name, child) in known.children {
      guard let key = copied(name) else { return stopFailure }
      (entries + count).initialize(to: MapEntry(key: key, value: value(of: child)))
      count += 1
    }
    let map = UnsafeBufferPointer(start: entries, count: count)
    return mode == .sound ? .partialMap(map) : .map(map)
  }

  private func value(of known: Known) -> RuleValue {
    if known.constraints.isEmpty, let literal = known.literals.first {
      let isOne = known.literals.dropFirst().allSatisfy { equal(literal, $0, .strict) }
      if isOne, mode == .sound || known.children.isEmpty { return literal }
    }
    // A filter on a nested field implies that this field is a map.
    if !known.children.isEmpty {
      return map(of: known, over: mode == .emulator ? known.literals.first { $0.type == .map } : nil)
    }
    // The engine concludes less from an equality beside other filters.
    let all = known.literals.map { FieldConstraint(relation: .same, value: $0) } + known.constraints
    guard let copy = arena.take(FieldConstraint.self, all.count) else { return outOfMemory() }
    let list = UnsafeMutableBufferPointer(start: copy, count: all.count)
    _ = list.initialize(from: all)
    return .constraint(UnsafeBufferPointer(list))
  }

  private func note(_ test: Disjuncts.Test, _ known: Known) {
    func constrain(_ relation: FieldConstraint.Relation, _ value: RuleValue) {
      known.constraints.append(FieldConstraint(relation: relation, value: value))
    }
    func constrainRange(_ relation: FieldConstraint.Relation, _ value: RuleValue) {
      if findsMaps(value) { constrain(.exists, .null) } else { constrain(relation, value) }
    }
    switch test {
    case .unary(.isNull): known.literals.append(.null)
    case .unary(.isNaN):
      if findsMaps(.float(.nan)) { constrain(.exists, .null) } else { known.literals.append(.float(.nan)) }
    case .unary(.isNotNull): constrain(.notEqual, .null)
    case .unary(.isNotNaN): constrain(.notEqual, .float(.nan))
    case .field(let operation, let operand):
      let value = literal(operand)
      switch operation {
      case .equal: noteEqual(value, known)
      case .lessThan: constrainRange(.less, value)
      case .lessThanOrEqual: constrainRange(.lessOrEqual, value)
      case .greaterThan: constrainRange(.greater, value)
      case .greaterThanOrEqual: constrainRange(.greaterOrEqual, value)
      case .notEqual: constrain(.notEqual, value)
      case .arrayContains: constrain(.contains, value)
      case .notIn: constrain(.notIn, value)
      case .in, .arrayContainsAny: break
      }
    }
  }

  /// Records an equality. A query for 1 also finds 1.0, which some operators of rules distinguish. Therefore in a
  /// sound proof a number is known only as a number, and a list or map with numbers only to exist. If the query can
  /// also find BSON numbers, a number is known only to exist.
  private func noteEqual(_ value: RuleValue, _ known: Known) {
    // The emulator knows null and NaN only from the unary filters.
    if mode == .emulator, !equality(value, value, isNegated: false).isTrue || value.type == .null {
      known.constraints.append(FieldConstraint(relation: .exists, value: .null))
      return
    }
    guard mode == .sound, holdsNumbers(value) else {
      known.literals.append(value)
      return
    }
    switch value {
    case .int where !hasBSONTypes, .float where !hasBSONTypes:
      known.constraints.append(FieldConstraint(relation: .same, value: value))
    default: known.constraints.append(FieldConstraint(relation: .exists, value: .null))
    }
  }

  private func literal(_ value: Value) -> RuleValue {
    var bytes: [UInt8] = []
    ValueCodec.append(value, to: &bytes)
    guard let copy = copied(bytes) else { return stopFailure }
    return self.value(EncodedValue(copy))
  }
}
