/// A compiled ruleset: flat arrays of nodes, constants and match patterns. Immutable and shared between threads.
///
/// The arrays are reached through pointers, so that evaluation neither counts references nor checks what the
/// compiler has already established.
final class Program: @unchecked Sendable {
  // Sound because everything is written in `init` and never again, and freed when nobody holds the program.

  /// What an expression does; operands are numbers of other nodes.
  enum Operation: UInt8 {
    /// `a`: a constant.
    case constant
    /// `a`: a capture of the enclosing match blocks.
    case capture
    /// `a`: a parameter or `let` of the function.
    case local
    case request, resource
    /// A name that nothing is bound to.
    case unknownVariable
    /// `a`: base; `b`: constant of the name; `c`: ``RequestObject`` member, or -1.
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
    /// `a`: first operand, `b`: count, `c`: group of ``Builtins``; `pattern`: compiled literal pattern, or -1.
    case callBuiltin
    /// `a`: first operand (the receiver), `b`: count with it, `c`: group of ``Builtins``.
    case callMethod
    /// `c`: constant of the name. `a`: receiver, or -1.
    case unknownFunction
    /// `a`: first operand, `b`: count, `c`: constant of the expected signature.
    case wrongCount
  }

  /// One expression.
  struct Node {
    var operation: Operation
    /// What evaluating it costs of the budget, without its operands.
    var cost: UInt16 = 1
    var pattern: Int32 = -1
    var a: Int32 = -1
    var b: Int32 = -1
    var c: Int32 = -1
    /// Where it stands in the source.
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
    /// The nodes of the lets among the operands; their values come behind the parameters.
    var firstLet: Int32 = 0
    var letCount: Int32 = 0
    var parameterCount: Int32
    var result: Int32 = -1
  }

  let version: Int
  /// The match blocks that allow something, in the order of the text.
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
  /// The patterns and functions as they are written.
  let patternTexts: [String]
  let functionNames: [String]
  /// What the constants point to.
  private let storage: ConstantStorage

  /// What the compiler collects.
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

/// Owns the bytes that constants of a program point to.
final class ConstantStorage {
  private var buffers: [UnsafeMutableRawBufferPointer] = []
  private var texts: [[UInt8]: UnsafeRawBufferPointer] = [:]

  /// A copy of some bytes that lives as long as the storage; equal bytes share one.
  func text(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
    if let known = texts[bytes] { return known }
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: bytes.count, alignment: 16)
    copy.copyBytes(from: bytes)
    buffers.append(copy)
    texts[bytes] = UnsafeRawBufferPointer(copy)
    return UnsafeRawBufferPointer(copy)
  }

  /// A copy of segments that lives as long as the storage.
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

/// The full pattern of one match block with what it allows.
struct MatchPattern {
  enum Segment {
    case literal(UnsafeRawBufferPointer)
    /// Binds the capture of that number.
    case capture(Int)
    case glob(Int)
  }

  /// `allow` for some methods.
  struct Allow {
    let methods: MethodSet
    /// The node of the condition; -1 for always.
    let condition: Int32
    /// The 1-based line of the statement.
    let line: Int32
    /// Where the statement stands.
    let start: Int32
    let end: Int32
  }

  let firstSegment: Int32
  let segmentCount: Int32
  /// Where the glob stands among the segments; -1 where there is none.
  let globIndex: Int32
  /// The fewest segments a path needs.
  let segmentsMin: Int32
  let captureCount: Int32
  let firstAllow: Int32
  let allowCount: Int32
  /// All methods that some statement names.
  let methods: MethodSet
}

/// Some of the methods that rules tell apart.
struct MethodSet: OptionSet, Sendable {
  let rawValue: UInt8
  static let get = MethodSet(rawValue: 1)
  static let list = MethodSet(rawValue: 2)
  static let create = MethodSet(rawValue: 4)
  static let update = MethodSet(rawValue: 8)
  static let delete = MethodSet(rawValue: 16)
  static let read: MethodSet = [.get, .list]
  static let write: MethodSet = [.create, .update, .delete]

  /// The methods of a word behind `allow`; case does not matter.
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
