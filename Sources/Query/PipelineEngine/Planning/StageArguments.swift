import DocumentModel
import PipelineExpressions

/// The arguments and options of a stage, checked by kind.
struct StageArguments {
  private let call: PipelineCall

  init(_ call: PipelineCall) { self.call = call }

  /// The options of stages that read collections. They are hints, which the planner does not need.
  static let hints: Set<String> = ["force_index", "ignore_index_fields", "hints"]

  var name: String { call.name }
  var count: Int { call.arguments.count }
  var indices: Range<Int> { call.arguments.indices }

  subscript(index: Int) -> PipelineArgument { call.arguments[index] }

  /// Returns an option, or `nil` if it is not given.
  func option(_ name: String) -> PipelineArgument? { call.options.last { $0.key == name }?.value }

  /// Checks the number of arguments and the names of the options.
  func expect(_ counts: ClosedRange<Int>, options: Set<String> = []) throws(PipelineError) {
    guard counts.contains(count) else {
      let expected =
        counts.upperBound == .max
        ? "at least \(counts.lowerBound)"
        : counts.count == 1 ? "\(counts.lowerBound)" : "\(counts.lowerBound) to \(counts.upperBound)"
      throw PipelineError("The stage takes \(expected) arguments, but has \(count).")
    }
    if let other = call.options.first(where: { !options.contains($0.key) }) {
      throw PipelineError("Unknown option \"\(other.key)\".")
    }
    try checkForcedIndex()
  }

  /// A forced index must exist. Indexes have no names here, so none does, except the documents themselves.
  private func checkForcedIndex() throws(PipelineError) {
    var forced = option("force_index")
    if let hints = option("hints")?.mapEntries { forced = forced ?? hints.first { $0.key == "force_index" }?.value }
    guard let forced else { return }
    guard case .constant(.string(let index)) = forced else {
      throw Self.mismatch("force_index", "STRING_VALUE", forced)
    }
    guard index == "primary" else { throw PipelineError("force_index: the index \"\(index)\" does not exist.") }
  }

  static func mismatch(_ name: String, _ kind: String, _ argument: PipelineArgument) -> PipelineError {
    PipelineError("Expected \(name) to be \(kind), but was \(argument.kindName).")
  }

  // MARK: Kinds

  func string(_ index: Int, _ name: String) throws(PipelineError) -> String {
    guard case .constant(.string(let text)) = call.arguments[index] else {
      throw Self.mismatch(name, "STRING_VALUE", call.arguments[index])
    }
    return text
  }

  func count(_ index: Int, _ name: String) throws(PipelineError) -> Int {
    try Self.count(call.arguments[index], name)
  }

  static func count(_ argument: PipelineArgument, _ name: String) throws(PipelineError) -> Int {
    guard case .constant(.integer(let number)) = argument else { throw mismatch(name, "INTEGER_VALUE", argument) }
    guard number >= 0 else { throw PipelineError("\(name) must not be negative, but was \(number).") }
    return Int(number)
  }

  func number(_ index: Int, _ name: String) throws(PipelineError) -> Double {
    switch call.arguments[index] {
    case .constant(.double(let number)): return number
    case .constant(.integer(let number)): return Double(number)
    default: throw Self.mismatch(name, "DOUBLE_VALUE", call.arguments[index])
    }
  }

  /// Returns the members of a map, whose values are expressions.
  func entries(_ index: Int, _ name: String) throws(PipelineError) -> [PipelineArgument.Entry] {
    guard let entries = call.arguments[index].mapEntries else {
      throw Self.mismatch(name, "MAP_VALUE", call.arguments[index])
    }
    return entries
  }

  static func field(_ argument: PipelineArgument, _ name: String) throws(PipelineError) -> FieldPath {
    guard case .field(let path) = argument else { throw mismatch(name, "FIELD_REFERENCE_VALUE", argument) }
    return try Self.path(path)
  }

  /// Parses a field path or an alias.
  static func path(_ text: String) throws(PipelineError) -> FieldPath {
    guard let path = PipelineExpression.fieldPath(text) else {
      throw PipelineError("\"\(text)\" is not a valid field path.")
    }
    return path
  }

  /// Parses the alias of a field. A row has its name and times beside its fields.
  static func alias(_ text: String) throws(PipelineError) -> FieldPath {
    let path = try path(text)
    guard let first = path.segments.first, !PipelineRow.metadataNames.contains(first) else {
      throw PipelineError("A field cannot have the name \(path.segments[0]). Use another alias.")
    }
    return path
  }

  static func aliasField(_ argument: PipelineArgument, _ name: String) throws(PipelineError) -> FieldPath {
    guard case .field(let path) = argument else { throw mismatch(name, "FIELD_REFERENCE_VALUE", argument) }
    return try alias(path)
  }

  /// Returns the path of a source: a reference that begins with `/` and lacks the database, or is empty.
  func path(_ index: Int, _ name: String) throws(PipelineError) -> ResourcePath {
    guard case .constant(.reference(let text)) = call.arguments[index] else {
      throw Self.mismatch(name, "REFERENCE_VALUE", call.arguments[index])
    }
    guard !text.isEmpty, text != "/" else { return .root }
    guard text.hasPrefix("/") else { throw PipelineError("\(name): \"\(text)\" does not begin with \"/\".") }
    do throws(ModelError) { return try ResourcePath(String(text.dropFirst())) } catch {
      throw PipelineError("\(name): \(error.description)")
    }
  }
}
