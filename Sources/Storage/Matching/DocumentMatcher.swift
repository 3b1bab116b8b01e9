package import DocumentModel
import KeyEncoding
package import WireFormat

/// A prepared filter for stored documents. Operands are encoded once, and values are read in place.
///
/// The semantics are those of firestore-api.md, section 4.3. Use a matcher from one thread at a time: it keeps
/// scratch memory, so matching a document allocates nothing in the steady state.
package struct DocumentMatcher: Sendable {
  private indirect enum Node: Sendable {
    case compare(FieldPath, FieldOperator, Operand)
    case oneOf(FieldPath, [Operand])
    case noneOf(FieldPath, [Operand])
    case contains(FieldPath, [Operand])
    case name(FieldOperator, [[UInt8]])
    case unary(FieldPath, UnaryOperator)
    case all([Node])
    case any([Node])
    case never
  }

  private struct Operand: Sendable {
    var bracket: TypeBracket
    /// The whole value in ``OrderedCode``.
    var code: [UInt8]

    init(_ value: Value) {
      bracket = value.bracket
      code = OrderedCode.encode(value)
    }
  }

  /// Whether the filter includes `__name__`, so that matching needs the document's name.
  package let usesName: Bool

  private let root: Node
  private var scratch: [UInt8] = []
  private var name: [UInt8] = []

  /// Prepares a filter; `nil` matches every document. References in filters on `__name__` are full names in `database`.
  package init(_ filter: QueryFilter?, in database: DatabaseID) {
    root = filter.map { Self.node($0, database) } ?? .all([])
    usesName = Self.usesName(root)
  }

  /// The approximate memory of the matcher, in bytes.
  package var bytes: Int { Self.bytes(root) }

  /// Returns whether a document matches.
  /// - Throws: ``WireError`` if the stored bytes are not valid fields.
  package mutating func matches(_ fields: EncodedMap, at path: ResourcePath) throws(WireError) -> Bool {
    if usesName {
      name.removeAll(keepingCapacity: true)
      NameCode.append(path, to: &name)
    }
    return try matches(root, fields)
  }

  /// Returns whether a document matches, given the ``NameCode`` of its path. Unless ``usesName``, the code is ignored.
  /// - Throws: ``WireError`` if the stored bytes are not valid fields.
  package mutating func matches(_ fields: EncodedMap, named code: [UInt8]) throws(WireError) -> Bool {
    if usesName { name = code }
    return try matches(root, fields)
  }

  // MARK: Preparing

  private static func node(_ filter: QueryFilter, _ database: DatabaseID) -> Node {
    switch filter {
    case .and(let filters): return .all(filters.map { node($0, database) })
    case .or(let filters): return .any(filters.map { node($0, database) })
    case .unary(let path, let op): return .unary(path, op)
    case .field(let path, let op, let value) where path.isDocumentName: return name(op, value, database)
    case .field(let path, let op, let value): return field(path, op, value)
    }
  }

  private static func name(_ op: FieldOperator, _ value: Value, _ database: DatabaseID) -> Node {
    var values = [value]
    if op == .in || op == .notIn, case .array(let elements) = value { values = elements }
    let paths = values.compactMap { NameCode.path(of: $0, in: database) }
    return .name(op, paths)
  }

  private static func field(_ path: FieldPath, _ op: FieldOperator, _ value: Value) -> Node {
    let operand = Operand(value)
    let isNothing = operand.bracket == .null || operand.bracket == .nan
    switch op {
    case .equal, .lessThan, .lessThanOrEqual, .greaterThan, .greaterThanOrEqual:
      // Unary filters test for null and NaN. As operands of these operators they match nothing.
      return isNothing ? .never : .compare(path, op, operand)
    case .notEqual:
      return operand.bracket == .null ? .never : .noneOf(path, [operand])
    case .in:
      return .oneOf(path, elements(value).map(Operand.init).filter { $0.bracket != .null && $0.bracket != .nan })
    case .notIn:
      let operands = elements(value).map(Operand.init)
      return operands.contains { $0.bracket == .null } ? .never : .noneOf(path, operands)
    case .arrayContains:
      return isNothing || operand.bracket == .array ? .never : .contains(path, [operand])
    case .arrayContainsAny:
      return .contains(
        path,
        elements(value).map(Operand.init).filter { $0.bracket != .null && $0.bracket != .nan && $0.bracket != .array })
    }
  }

  private static func elements(_ value: Value) -> [Value] {
    guard case .array(let elements) = value else { return [] }
    return elements
  }

  private static func bytes(_ node: Node) -> Int {
    switch node {
    case .compare(let path, _, let operand): 64 * path.segments.count + 64 + operand.code.count
    case .oneOf(let path, let operands), .noneOf(let path, let operands), .contains(let path, let operands):
      operands.reduce(64 * path.segments.count) { $0 + 64 + $1.code.count }
    case .name(_, let codes): codes.reduce(64) { $0 + 32 + $1.count }
    case .unary(let path, _): 64 * path.segments.count
    case .all(let nodes), .any(let nodes): nodes.reduce(64) { $0 + bytes($1) }
    case .never: 64
    }
  }

  // MARK: Matching

  private static func usesName(_ node: Node) -> Bool {
    switch node {
    case .name: true
    case .all(let nodes), .any(let nodes): nodes.contains(where: usesName)
    default: false
    }
  }

  private mutating func matches(_ node: Node, _ fields: EncodedMap) throws(WireError) -> Bool {
    switch node {
    case .never: return false
    case .all(let nodes):
      for node in nodes where try !matches(node, fields) { return false }
      return true
    case .any(let nodes):
      for node in nodes where try matches(node, fields) { return true }
      return false
    case .name(let op, let codes): return NameCode.matches(name, op, codes)
    case .unary(let field, let op):
      guard let value = try fields.value(at: field) else { return false }
      return try Self.matches(value, op)
    case .compare(let field, let op, let operand):
      guard let value = try fields.value(at: field), try value.bracket == operand.bracket else { return false }
      let order = try compare(value, operand)
      switch op {
      case .lessThan: return order == .less
      case .lessThanOrEqual: return order != .greater
      case .greaterThan: return order == .greater
      case .greaterThanOrEqual: return order != .less
      default: return order == .equal
      }
    case .oneOf(let field, let operands):
      guard let value = try fields.value(at: field) else { return false }
      return try equalsAny(value, operands)
    case .noneOf(let field, let operands):
      guard let value = try fields.value(at: field), try value.bracket != .null else { return false }
      return try !equalsAny(value, operands)
    case .contains(let field, let operands):
      guard let value = try fields.value(at: field), case .array(let array) = try value.content else { return false }
      var elements = array.makeIterator()
      while let element = try elements.next() {
        if try equalsAny(element, operands) { return true }
      }
      return false
    }
  }

  private static func matches(_ value: EncodedValue, _ op: UnaryOperator) throws(WireError) -> Bool {
    let bracket = try value.bracket
    switch op {
    case .isNull: return bracket == .null
    case .isNaN: return bracket == .nan
    case .isNotNull: return bracket != .null
    case .isNotNaN: return bracket != .null && bracket != .nan
    }
  }

  private mutating func compare(_ value: EncodedValue, _ operand: Operand) throws(WireError) -> Ordering {
    scratch.removeAll(keepingCapacity: true)
    try OrderedCode.append(value, to: &scratch, budget: .max)
    return Ordering.bytes(scratch, operand.code)
  }

  private mutating func equalsAny(_ value: EncodedValue, _ operands: [Operand]) throws(WireError) -> Bool {
    let bracket = try value.bracket
    var isEncoded = false
    for operand in operands where operand.bracket == bracket {
      if !isEncoded {
        scratch.removeAll(keepingCapacity: true)
        try OrderedCode.append(value, to: &scratch, budget: .max)
        isEncoded = true
      }
      if scratch == operand.code { return true }
    }
    return false
  }
}
