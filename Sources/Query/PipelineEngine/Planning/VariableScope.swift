import DocumentModel

/// The variables that the expressions of a stage can read, with their places in a row.
struct VariableScope {
  /// The place of each name. An inner variable hides an outer one with the same name.
  private(set) var places: [String: Int] = [:]
  /// The variables of the enclosing pipelines.
  private var outer: [String: Int] = [:]
  /// The number of places in a row so far.
  private(set) var count = 0

  /// Creates the scope of a request's pipeline.
  init() {}

  /// Creates the scope of a nested pipeline.
  init(inside scope: VariableScope) {
    places = scope.places
    outer = scope.places
    count = scope.count
  }

  /// Binds a variable to a new place.
  mutating func bind(_ name: String) -> Int {
    places[name] = count
    count += 1
    return count - 1
  }

  /// Adds a place without a name, for the value of a nested pipeline.
  mutating func bindHidden() -> Int {
    count += 1
    return count - 1
  }

  /// Hides variables by the names in strings. Returns the variables as they were, for ``show(_:)``.
  mutating func hide(_ names: [Value]) -> [String: Int] {
    let visible = places
    for case .string(let name) in names { places[name] = nil }
    return visible
  }

  mutating func show(_ visible: [String: Int]) { places = visible }

  /// Makes the number of places at least `count`.
  mutating func reserve(_ count: Int) { self.count = max(self.count, count) }

  /// Ends the variables of this pipeline, because a stage merges rows.
  mutating func forgetOwn() { places = outer }
}

extension PipelineArgument {
  /// Whether the argument, or a pipeline in it, reads a variable that is not a parameter of a function around it. Names
  /// are not resolved: the answer can be yes for a variable that the nested pipeline binds itself.
  var readsVariables: Bool {
    switch self {
    case .constant, .field: false
    case .variable: true
    case .array(let elements): elements.contains(where: \.readsVariables)
    case .map(let entries): entries.contains { $0.value.readsVariables }
    case .function(let call): call.readsVariables
    case .pipeline(let stages): stages.contains { $0.name == "subcollection" || $0.readsVariables }
    }
  }
}

extension PipelineArgument {
  /// The number of stages of the pipelines in the argument.
  fileprivate var stageCount: Int {
    switch self {
    case .constant, .field, .variable: 0
    case .array(let elements): elements.reduce(0) { $0 + $1.stageCount }
    case .map(let entries): entries.reduce(0) { $0 + $1.value.stageCount }
    case .function(let call): call.stageCount - 1
    case .pipeline(let stages): stages.reduce(0) { $0 + $1.stageCount }
    }
  }
}

extension PipelineCall {
  /// The number of stages: this one, and those of the pipelines in its arguments.
  var stageCount: Int {
    1 + arguments.reduce(0) { $0 + $1.stageCount } + options.reduce(0) { $0 + $1.value.stageCount }
  }

  /// Whether an argument or option reads a variable; see ``PipelineArgument/readsVariables``.
  var readsVariables: Bool {
    arguments.contains(where: \.readsVariables) || options.contains { $0.value.readsVariables }
  }
}
