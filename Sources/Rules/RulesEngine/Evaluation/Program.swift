import RegularExpressions

/// A compiled ruleset: flat arrays of nodes, constants and match patterns. Immutable and shared between threads.
///
/// An operation is a case of ``Operation``, and one evaluator executes all of them. Operations are not separate types,
/// for three reasons:
/// - No allocation. Nodes and values are trivial, so evaluating a node copies a few words. A tree of operation
///   objects would count references at every step and call each operation through a witness table.
/// - Budgets. Every expression passes through ``Evaluator/evaluate(_:_:)``, which charges its cost and stops once
///   the budget of expressions, work or memory is used up. No operation can bypass it.
/// - Traces. The same function records the value of each node by its number. Explanations, coverage and tests read
///   these records, and no operation needs code for them.
///
/// The arrays are accessed through pointers, without reference counting and bounds checks. The compiler has already
/// checked every number in them.
final class Program: @unchecked Sendable {
  // `@unchecked` is safe: only `init` writes the contents, and they are freed with the last reference to the program.

  /// The operation of a node. `a`, `b` and `c` are the numbers of other nodes, unless noted otherwise.
  enum Operation: UInt8 {
    /// `a`: a constant.
    case constant
    /// `a`: a capture of the enclosing match blocks.
    case capture
    /// `a`: a parameter or `let` of the function.
    case local
    case request, resource
    /// A name that is not defined.
    case unknownVariable
    /// `a`: base, `b`: constant of the name, `c`: number of the ``RequestProperty``, or -1.
    case member
    /// `a`: base, `b`: index.
    case index
    /// `a`: base, `b`: from, `c`: to.
    case range
    /// `a`, `b`: operands.
    case and, or, `in`, equal, notEqual, less, lessOrEqual, greater, greaterOrEqual
    case add, subtract, multiply, divide, remainder
    case not, negate
    /// `a`: operand; `b`: index in ``RuleType/allCases``.
    case isType
    /// `a`: condition, `b`, `c`: branches.
    case conditional
    /// `a`: first operand, `b`: count.
    case list
    /// `a`: first operand, `b`: count of keys and values together.
    case map
    /// `a`: first path part, `b`: count.
    case path
    /// `a`: first operand, `b`: count, `c`: function of the ruleset.
    case callFunction
    /// `a`: first operand, `b`: count, `c`: group of ``Builtins``.
    case callBuiltin
    /// `a`: first operand (the receiver), `b`: count with the receiver, `c`: group of ``Builtins``, `pattern`: compiled
    /// literal pattern, or -1.
    case callMethod
    /// `a`: first operand, `b`: count, `c`: constant of the name, `pattern`: 0 for a function, -1 for a method.
    case unknownFunction
    /// `a`: first operand, `b`: count, `c`: constant of the expected signature.
    case wrongCount
  }

  /// One expression.
  struct Node {
    var operation: Operation
    /// The charge to the budget of expressions, without the operands.
    var cost: UInt16 = 1
    var pattern: Int32 = -1
    var a: Int32 = -1
    var b: Int32 = -1
    var c: Int32 = -1
    /// The place in the source, in bytes.
    var start: Int32 = 0
    var end: Int32 = 0
  }

  /// One segment of a path literal.
  enum PathPart {
    case constant(PathSegment)
    case value(node: Int32)
  }

  /// A function of the ruleset.
  struct Function {
    /// The nodes of the lets, in ``Program/operands``. In a frame, their values follow the parameters.
    var firstLet: Int32 = 0
    var letCount: Int32 = 0
    var parameterCount: Int32
    var result: Int32 = -1
  }

  let version: Int
  /// The match blocks with an `allow` statement, in the order of the text.
  let patterns: UnsafeMutableBufferPointer<MatchPattern>
  let segments: UnsafeMutableBufferPointer<MatchPattern.Segment>
  let allows: UnsafeMutableBufferPointer<MatchPattern.Allow>
  let functions: UnsafeMutableBufferPointer<Function>
  let nodes: UnsafeMutableBufferPointer<Node>
  /// The operands of calls, lists and maps.
  let operands: UnsafeMutableBufferPointer<Int32>
  let constants: UnsafeMutableBufferPointer<RuleValue>
  let pathParts: UnsafeMutableBufferPointer<PathPart>
  let regularExpressions: [Pattern]
  /// The patterns and functions as in the source.
  let patternTexts: [String]
  let functionNames: [String]
  /// Owns the bytes that the constants point to.
  private let storage: ConstantStorage

  /// The contents of a program while it is compiled.
  struct Parts {
    var version = 2
    var patterns: [MatchPattern] = []
    var segments: [MatchPattern.Segment] = []
    var allows: [MatchPattern.Allow] = []
    var functions: [Function] = []
    var nodes: [Node] = []
    var operands: [Int32] = []
    var constants: [RuleValue] = []
    var pathParts: [PathPart] = []
    var regularExpressions: [Pattern] = []
    var patternTexts: [String] = []
    var functionNames: [String] = []
    let storage = ConstantStorage()
  }

  init(_ parts: Parts) {
    version = parts.version
    patterns = Self.copy(parts.patterns)
    segments = Self.copy(parts.segments)
    allows = Self.copy(parts.allows)
    functions = Self.copy(parts.functions)
    nodes = Self.copy(parts.nodes)
    operands = Self.copy(parts.operands)
    constants = Self.copy(parts.constants)
    pathParts = Self.copy(parts.pathParts)
    regularExpressions = parts.regularExpressions
    patternTexts = parts.patternTexts
    functionNames = parts.functionNames
    storage = parts.storage
  }

  deinit {
    patterns.deallocate()
    segments.deallocate()
    allows.deallocate()
    functions.deallocate()
    nodes.deallocate()
    operands.deallocate()
    constants.deallocate()
    pathParts.deallocate()
  }

  private static func copy<Element>(_ elements: [Element]) -> UnsafeMutableBufferPointer<Element> {
    let buffer = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
    _ = buffer.initialize(from: elements)
    return buffer
  }
}

/// The owner of the bytes that a program's constants point to.
final class ConstantStorage {
  private var buffers: [UnsafeMutableRawBufferPointer] = []
  private var texts: [[UInt8]: UnsafeRawBufferPointer] = [:]

  /// Returns a copy of the bytes that lives as long as the storage. Equal bytes share one copy.
  func text(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
    if let known = texts[bytes] { return known }
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
    copy.copyBytes(from: bytes)
    buffers.append(copy)
    texts[bytes] = UnsafeRawBufferPointer(copy)
    return UnsafeRawBufferPointer(copy)
  }

  /// Returns a copy of the segments that lives as long as the storage.
  func segments(_ segments: [PathSegment]) -> UnsafeBufferPointer<PathSegment> {
    let copy = UnsafeMutableRawBufferPointer.allocate(
      byteCount: segments.count * MemoryLayout<PathSegment>.stride, alignment: 16)
    buffers.append(copy)
    let bound = copy.bindMemory(to: PathSegment.self)
    _ = bound.initialize(from: segments)
    return UnsafeBufferPointer(bound)
  }

  deinit {
    for buffer in buffers { buffer.deallocate() }
  }
}

/// The full path pattern of a match block, and its `allow` statements.
struct MatchPattern {
  enum Segment {
    case literal(UnsafeRawBufferPointer)
    /// Binds the capture of this number.
    case capture(Int)
    case glob(Int)
  }

  /// An `allow` statement.
  struct Allow {
    let methods: MethodSet
    /// The node of the condition, or -1 if the statement always allows.
    let condition: Int32
    /// The 1-based line of the statement.
    let line: Int32
    /// The place of the statement, in bytes.
    let start: Int32
    let end: Int32
  }

  let firstSegment: Int32
  let segmentCount: Int32
  /// The index of the glob among the segments, or -1 if the pattern has no glob.
  let globIndex: Int32
  /// The least number of segments of a matching path.
  let segmentsMin: Int32
  let captureCount: Int32
  let firstAllow: Int32
  let allowCount: Int32
  /// The methods of all statements.
  let methods: MethodSet
}

/// A set of methods.
struct MethodSet: OptionSet, Sendable {
  let rawValue: UInt8
  static let get = MethodSet(rawValue: 1)
  static let list = MethodSet(rawValue: 2)
  static let create = MethodSet(rawValue: 4)
  static let update = MethodSet(rawValue: 8)
  static let delete = MethodSet(rawValue: 16)
  static let read: MethodSet = [.get, .list]
  static let write: MethodSet = [.create, .update, .delete]

  /// The methods of a word after `allow`, or `nil` for an unknown word. Case is ignored.
  init?(word: String) {
    switch word.lowercased() {
    case "get": self = .get
    case "list": self = .list
    case "create": self = .create
    case "update": self = .update
    case "delete": self = .delete
    case "read": self = .read
    case "write": self = .write
    default: return nil
    }
  }

  init(rawValue: UInt8) { self.rawValue = rawValue }
}
