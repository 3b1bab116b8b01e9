import Basics
package import DocumentModel
import RegularExpressions
import WireFormat

/// Evaluates the expressions of a program, for one row at a time.
///
/// Evaluation never traps. For any program and row it ends with a value and stays within the limits of
/// ``ExpressionLimits``. An evaluator reuses its memory from row to row, so that the steady state does not allocate.
/// Use it on one thread at a time.
package final class ExpressionEvaluator {
  let program: ExpressionProgram
  let now: Timestamp
  private let runner: (any SubpipelineRunner)?
  var arena = Arena(bytesMax: ExpressionLimits.rowBytesMax)
  var row = ExpressionRow(fields: EncodedMap(mapValue: UnsafeRawBufferPointer(start: nil, count: 0)))
  var work = ExpressionLimits.rowWorkMax
  /// The fault once the row has exceeded a limit. After that, every expression fails.
  package private(set) var exhaustion: ExpressionFault?

  let nodes: UnsafeMutablePointer<ExpressionProgram.Node>
  let operands: UnsafeMutablePointer<Int32>
  private let constants: UnsafeMutablePointer<ExpressionValue>
  private let paths: UnsafeMutableBufferPointer<ExpressionProgram.Path>
  private let names: UnsafeMutableBufferPointer<UnsafeRawBufferPointer>
  private let types: UnsafeMutableBufferPointer<ValueTypes>
  private let stack: UnsafeMutablePointer<ExpressionValue>
  private var stackTop = 0
  let parameters: UnsafeMutablePointer<ExpressionValue>
  /// The values of the fields that were located in the current row.
  private let fieldValues: UnsafeMutablePointer<ExpressionValue>
  /// The number of the row that a field value belongs to.
  private let fieldRows: UnsafeMutablePointer<UInt64>
  private var rowNumber: UInt64 = 0
  private var random: UInt64
  var scratch: [UInt8] = []

  static let patterns = PatternCache(patternsMax: ExpressionLimits.patternsKeptMax)

  /// Creates an evaluator.
  ///
  /// `now` is the time of the request, the result of `current_timestamp`. `seed` determines the results of `rand`.
  package init(
    _ program: ExpressionProgram, now: Timestamp, seed: UInt64, runner: (any SubpipelineRunner)? = nil
  ) {
    self.program = program
    self.now = now
    self.runner = runner
    random = seed
    nodes = program.nodes.baseAddress ?? .allocate(capacity: 1)
    operands = program.operands.baseAddress ?? .allocate(capacity: 1)
    constants = program.constants.baseAddress ?? .allocate(capacity: 1)
    paths = program.paths
    names = program.names
    types = program.types
    stack = .allocate(capacity: program.stackCount + 1)
    parameters = .allocate(capacity: program.parameterCount + 1)
    parameters.initialize(repeating: .absent, count: program.parameterCount + 1)
    fieldValues = .allocate(capacity: program.fields.count + 1)
    fieldRows = .allocate(capacity: program.fields.count + 1)
    fieldRows.initialize(repeating: 0, count: program.fields.count + 1)
  }

  deinit {
    stack.deallocate()
    parameters.deallocate()
    fieldValues.deallocate()
    fieldRows.deallocate()
  }

  /// Begins a row. All values of the row before become invalid. The memory that `row` refers to must stay valid until
  /// the next call.
  package func begin(_ row: ExpressionRow) {
    self.row = row
    arena.reset()
    work = ExpressionLimits.rowWorkMax
    exhaustion = nil
    rowNumber &+= 1
    stackTop = 0
  }

  /// Evaluates the expression with this number for the current row. The value is valid until the next ``begin(_:)``.
  package func value(_ number: Int) -> ExpressionValue {
    let value = evaluate(program.roots[number])
    // Functions can catch errors, but not the end of a budget.
    return exhaustion.map { .error($0) } ?? value
  }

  /// Returns whether the expression with this number is true for the current row, as `where` requires.
  package func isTrue(_ number: Int) -> Bool { value(number).isTrue }

  // MARK: Nodes

  func evaluate(_ number: Int32) -> ExpressionValue {
    let node = nodes[Int(number)]
    switch node.operation {
    case .constant: return constants[Int(node.a)]
    case .field: return field(Int(node.a))
    case .call: return call(node)
    case .parameter: return parameters[Int(node.a)]
    case .variable: return Int(node.a) < row.variables.count ? row.variables[Int(node.a)] : .absent
    case .name: return row.name.map { .reference($0) } ?? .absent
    case .createTime: return row.createTime.map { .timestamp($0) } ?? .absent
    case .updateTime: return row.updateTime.map { .timestamp($0) } ?? .absent
    case .subpipeline: return subpipeline(Int(node.a), isScalar: node.b == 1)
    }
  }

  private func field(_ number: Int) -> ExpressionValue {
    if fieldRows[number] == rowNumber { return fieldValues[number] }
    let value = located(paths[number])
    fieldValues[number] = value
    fieldRows[number] = rowNumber
    return value
  }

  private func located(_ path: ExpressionProgram.Path) -> ExpressionValue {
    do throws(WireError) {
      var fields = row.fields
      for index in path.first..<path.first + path.count {
        guard let value = try fields.value(for: names[Int(index)]) else { return .absent }
        if index == path.first + path.count - 1 { return ExpressionValue(value) }
        guard let inner = try value.fields else { return .absent }
        fields = inner
      }
      return .absent
    } catch {
      return .error(ExpressionFault(.damaged))
    }
  }

  private func subpipeline(_ number: Int, isScalar: Bool) -> ExpressionValue {
    guard let runner, exhaustion == nil else { return .error(exhaustion ?? ExpressionFault(.subpipeline)) }
    var out: [UInt8] = []
    guard runner.run(number, isScalar: isScalar, for: row, into: &out) else {
      return .error(ExpressionFault(.subpipeline))
    }
    guard let bytes = copy(out) else { return exhausted(.memory) }
    return ExpressionValue(EncodedValue(bytes))
  }

  @inline(__always)
  func operand(_ node: ExpressionProgram.Node, _ index: Int) -> Int32 { operands[Int(node.a) + index] }

  private func call(_ node: ExpressionProgram.Node) -> ExpressionValue {
    guard charge(8) else { return exhausted(.work) }
    if node.mode == .lazy { return lazy(node) }
    let count = Int(node.b)
    let arguments = stack + stackTop
    stackTop += count
    defer { stackTop -= count }
    for index in 0..<count {
      (arguments + index).initialize(to: evaluate(operands[Int(node.a) + index]))
    }
    for index in 0..<count {
      if case .error = arguments[index] { return arguments[index] }
    }
    if node.mode == .propagating, let result = propagated(node.function, arguments, count) { return result }
    let result = apply(node, UnsafeBufferPointer(start: arguments, count: count))
    return work < 0 ? exhausted(.work) : result
  }

  /// Applies the rule for null: a wrong type is an error, otherwise null or absent gives null. Returns `nil` if the
  /// function has to compute.
  @inline(__always)
  private func propagated(
    _ function: ExpressionFunction, _ arguments: UnsafeMutablePointer<ExpressionValue>, _ count: Int
  ) -> ExpressionValue? {
    let first = Int(function.rawValue) * ExpressionProgram.typesPerFunction
    var isNothing = false
    for index in 0..<count {
      var found = arguments[index].types
      if found == .other {
        arguments[index] = arguments[index].ordinary
        found = arguments[index].types
      }
      if !ValueTypes.nothing.isDisjoint(with: found) {
        isNothing = true
      } else if types[first + min(index, ExpressionProgram.typesPerFunction - 1)].isDisjoint(with: found) {
        return .error(ExpressionFault(.type, in: function, argument: index + 1))
      }
    }
    if function.requiresOneType {
      var common: ValueTypes = []
      for index in 0..<count where !arguments[index].isNothing {
        let found = arguments[index].types
        if common.isEmpty { common = found }
        if common != found { return .error(ExpressionFault(.type, in: function)) }
      }
    }
    return isNothing ? .null : nil
  }

  // MARK: Budgets and memory

  /// The work for the current row so far, in steps.
  package var spent: Int { ExpressionLimits.rowWorkMax - max(work, 0) }

  /// Takes `steps` from the budget of work. Returns `false` if it is used up.
  @inline(__always)
  func charge(_ steps: Int) -> Bool {
    work -= steps
    return work >= 0
  }

  /// Ends the evaluation of the row.
  func exhausted(_ reason: ExpressionFault.Reason) -> ExpressionValue {
    let fault = exhaustion ?? ExpressionFault(reason)
    exhaustion = fault
    work = -1
    return .error(fault)
  }

  /// Returns a copy in the arena, or `nil` if the row has used up its memory.
  func copy(_ bytes: [UInt8]) -> UnsafeRawBufferPointer? {
    guard let memory = arena.take(bytes: bytes.count) else { return nil }
    bytes.withUnsafeBytes { source in
      if let start = source.baseAddress { memory.copyMemory(from: start, byteCount: source.count) }
    }
    return UnsafeRawBufferPointer(start: memory, count: bytes.count)
  }

  /// Returns memory for items in the arena, or `nil` if the row has used up its memory.
  func items(_ count: Int) -> UnsafeMutableBufferPointer<ExpressionValue>? {
    arena.take(ExpressionValue.self, count).map { UnsafeMutableBufferPointer(start: $0, count: count) }
  }

  /// The next pseudo-random number (SplitMix64).
  func nextRandom() -> Double {
    random &+= 0x9E37_79B9_7F4A_7C15
    var bits = random
    bits = (bits ^ (bits >> 30)) &* 0xBF58_476D_1CE4_E5B9
    bits = (bits ^ (bits >> 27)) &* 0x94D0_49BB_1331_11EB
    bits ^= bits >> 31
    return Double(bits >> 11) * 0x1p-53
  }

  // MARK: Constants

  /// Replaces calls by their results. The program must be new, and each call must have only constant operands.
  static func fold(
    _ calls: [(node: Int32, constant: Int32)], of program: ExpressionProgram, keeping storage: ConstantBytes
  ) {
    let evaluator = ExpressionEvaluator(program, now: .earliest, seed: 0)
    var bytes: [UInt8] = []
    for (node, constant) in calls {
      evaluator.begin(evaluator.row)
      let value = evaluator.evaluate(node)
      bytes.removeAll(keepingCapacity: true)
      switch value {
      case .error where evaluator.exhaustion != nil: continue
      case .error, .absent: program.constants[Int(constant)] = value
      default:
        guard ExpressionWriter.append(value, to: &bytes) else { continue }
        program.constants[Int(constant)] = ExpressionValue(EncodedValue(storage.keep(bytes)))
      }
      program.nodes[Int(node)] = ExpressionProgram.Node(operation: .constant, a: constant)
    }
    program.collectSets()
  }
}
