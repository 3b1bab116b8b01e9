package import DocumentModel
import RegularExpressions

/// Compiled expressions: flat arrays of nodes, constants and field paths. Immutable and shared between threads.
///
/// One program contains all expressions of a stage, so that a field that several of them read is located once for each
/// row. Nodes are trivial, and an ``ExpressionEvaluator`` executes them without allocating. The arrays are accessed
/// through pointers, without bounds checks. The compiler has checked every number in them.
package final class ExpressionProgram: @unchecked Sendable {
  // `@unchecked` is safe: only the compiler writes the contents, before it returns the program.

  /// The operation of a node.
  enum Operation: UInt8 {
    /// `a`: a constant.
    case constant
    /// `a`: a field path.
    case field
    /// `a`: a variable of a `let` stage.
    case variable
    /// `a`: a parameter of `array_filter` or `array_transform`.
    case parameter
    case name, createTime, updateTime
    /// `a`: first operand, `b`: count. `c`: the compiled literal pattern, the literal time zone, the set of a constant
    /// array or the first parameter, or -1.
    case call
    /// `a`: number of a nested pipeline, `b`: 1 for `scalar`, 0 for `array`.
    case subpipeline
  }

  /// One expression.
  struct Node {
    var operation: Operation
    var function: ExpressionFunction = .add
    var mode: ExpressionFunction.Mode = .lazy
    var a: Int32 = -1
    var b: Int32 = 0
    var c: Int32 = -1
  }

  /// A field path: the UTF-8 bytes of its names, in ``ExpressionProgram/names``.
  struct Path {
    let first: Int32
    let count: Int32
  }

  /// The nodes of the expressions, in the order that the compiler received them.
  let roots: [Int32]
  let nodes: UnsafeMutableBufferPointer<Node>
  let operands: UnsafeMutableBufferPointer<Int32>
  let constants: UnsafeMutableBufferPointer<ExpressionValue>
  let paths: UnsafeMutableBufferPointer<Path>
  let names: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>
  /// The accepted types of each argument of propagating functions, eight for each function.
  let types: UnsafeMutableBufferPointer<ValueTypes>
  let patterns: [Pattern]
  let zones: [ZoneRules]
  /// The items of long constant arrays in `equal_any` and `not_equal_any`, as group keys.
  private(set) var sets: [KeySet] = []
  let parameterCount: Int
  /// The greatest number of arguments that wait at the same time.
  let stackCount: Int
  private let storage: ConstantBytes

  /// Whether an expression reads `__name__`, `__create_time__`, `__update_time__` or all of them.
  package let usesName: Bool
  /// Whether an expression reads the creation time or the update time.
  package let usesTimes: Bool
  /// Whether an expression reads the whole row, with `current_document`.
  package let usesWholeRow: Bool
  /// The paths of the fields that the expressions read, without repeats. A row needs no other fields unless
  /// ``usesWholeRow``.
  package let fields: [FieldPath]
  /// The numbers of the nested pipelines that the expressions run.
  package let subpipelines: [Int]

  /// The number of expressions.
  package var count: Int { roots.count }

  /// The contents of a program while it is compiled.
  struct Parts {
    var roots: [Int32] = []
    var nodes: [Node] = []
    var operands: [Int32] = []
    var constants: [ExpressionValue] = []
    var fields: [FieldPath] = []
    var patterns: [Pattern] = []
    var zones: [ZoneRules] = []
    var parameterCount = 0
    var stackCount = 0
    var usesName = false
    var usesTimes = false
    var usesWholeRow = false
    var subpipelines: [Int] = []
    let storage = ConstantBytes()
  }

  /// The number of argument types that the program keeps for each function. Later arguments have the last type.
  static let typesPerFunction = 4

  init(_ parts: Parts) {
    roots = parts.roots
    nodes = Self.copy(parts.nodes)
    operands = Self.copy(parts.operands)
    constants = Self.copy(parts.constants)
    var paths: [Path] = []
    var names: [UnsafeRawBufferPointer] = []
    for field in parts.fields {
      paths.append(Path(first: Int32(names.count), count: Int32(field.segments.count)))
      for segment in field.segments { names.append(parts.storage.keep(Array(segment.utf8))) }
    }
    self.paths = Self.copy(paths)
    self.names = Self.copy(names)
    types = Self.copy(
      ExpressionFunction.allCases.flatMap { function in
        let types = function.signature.types
        return (0..<Self.typesPerFunction).map { types[min($0, types.count - 1)] }
      })
    patterns = parts.patterns
    zones = parts.zones
    parameterCount = parts.parameterCount
    stackCount = parts.stackCount
    usesName = parts.usesName
    usesTimes = parts.usesTimes
    usesWholeRow = parts.usesWholeRow
    fields = parts.fields
    subpipelines = parts.subpipelines
    storage = parts.storage
  }

  deinit {
    nodes.deallocate()
    operands.deallocate()
    constants.deallocate()
    paths.deallocate()
    names.deallocate()
    types.deallocate()
  }

  /// The items from which a constant array is searched by a set.
  private static let setItemsMin = 8

  /// Makes a set of each long constant array that `equal_any` or `not_equal_any` searches.
  func collectSets() {
    for index in nodes.indices {
      let node = nodes[index]
      guard node.operation == .call, node.function == .equalAny || node.function == .notEqualAny else { continue }
      let array = nodes[Int(operands[Int(node.a) + 1])]
      guard array.operation == .constant, constants[Int(array.a)].types == .array else { continue }
      var set = KeySet()
      var key: [UInt8] = []
      var isWhole = true
      var items = ExpressionItems(constants[Int(array.a)])
      while let item = items.next() {
        key.removeAll(keepingCapacity: true)
        isWhole = isWhole && ExpressionWriter.appendGroupKey(item, to: &key)
        _ = key.withUnsafeBytes { set.insert($0) }
      }
      guard isWhole, set.count >= Self.setItemsMin else { continue }
      sets.append(set)
      nodes[index].c = Int32(sets.count - 1)
    }
  }

  private static func copy<Element>(_ elements: [Element]) -> UnsafeMutableBufferPointer<Element> {
    let buffer = UnsafeMutableBufferPointer<Element>.allocate(capacity: elements.count)
    _ = buffer.initialize(from: elements)
    return buffer
  }
}

/// The owner of the bytes that a program's constants and names point to.
final class ConstantBytes {
  private var buffers: [UnsafeMutableRawBufferPointer] = []

  /// Returns a copy of the bytes that lives as long as the owner.
  func keep(_ bytes: [UInt8]) -> UnsafeRawBufferPointer {
    let copy = UnsafeMutableRawBufferPointer.allocate(byteCount: max(bytes.count, 1), alignment: 16)
    copy.copyBytes(from: bytes)
    buffers.append(copy)
    return UnsafeRawBufferPointer(start: copy.baseAddress, count: bytes.count)
  }

  deinit {
    for buffer in buffers { buffer.deallocate() }
  }
}
