import DocumentModel
import PipelineExpressions

/// Checks the stages of a pipeline and compiles their expressions.
///
/// Errors name the stage by its number and name, and the argument. Sources: pipelines.md, section 3.
struct PipelineParser {
  /// The place of a pipeline in the request.
  enum Place {
    case request
    /// An argument of `array` or `scalar`.
    case nested
    /// The argument of a union.
    case union
  }

  let database: DatabaseID
  private let place: Place
  private let depth: Int
  private let outerCount: Int
  private var scope: VariableScope
  private var stages: [PipelineStage] = []
  /// The nested pipelines of the current stage, its expressions, and the variables that these can read.
  private var subpipelines: [Subpipeline] = []
  private var expressions: [PipelineExpression] = []
  private var names: [String: Int] = [:]
  private let work: PlanningWork

  private init(
    _ database: DatabaseID, _ place: Place, _ scope: VariableScope, depth: Int, _ work: PlanningWork = PlanningWork()
  ) {
    self.work = work
    self.database = database
    self.place = place
    self.scope = scope
    outerCount = scope.count
    self.depth = depth
  }

  /// Checks the pipeline of a request.
  /// - Throws: ``PipelineError`` for the first error.
  static func parse(_ stages: [PipelineCall], in database: DatabaseID) throws(PipelineError) -> PipelineBody {
    guard stages.reduce(0, { $0 + $1.stageCount }) <= PipelineLimits.stagesMax else {
      throw PipelineError("A pipeline and those inside it can have at most \(PipelineLimits.stagesMax) stages.")
    }
    var parser = PipelineParser(database, .request, VariableScope(), depth: 0)
    return try parser.body(stages)
  }

  private mutating func body(_ calls: [PipelineCall]) throws(PipelineError) -> PipelineBody {
    guard !calls.isEmpty else { throw PipelineError("A pipeline must have at least one stage.") }
    for (index, call) in calls.enumerated() {
      do throws(PipelineError) {
        (subpipelines, expressions, names) = ([], [], scope.places)
        let operation = try stage(StageArguments(call), isFirst: index == 0, isLast: index == calls.count - 1)
        stages.append(
          PipelineStage(
            number: index + 1, name: call.name, operation: operation, program: try compile(call.name),
            subpipelines: subpipelines))
        guard scope.count <= PipelineLimits.variablesMax else {
          throw PipelineError("A pipeline can have at most \(PipelineLimits.variablesMax) variables.")
        }
      } catch { throw error.inside(index + 1, call.name) }
    }
    var body = PipelineBody(stages: stages, variableCount: scope.count, outerVariableCount: outerCount)
    if case .source(let source)? = stages.first?.operation { body.plan = SourcePlan(source, stages, in: database) }
    return body
  }

  // MARK: Stages

  private mutating func stage(
    _ arguments: StageArguments, isFirst: Bool, isLast: Bool
  ) throws(PipelineError) -> PipelineStage.Operation {
    if let source = try source(arguments) {
      guard isFirst else { throw PipelineError("This stage can only be the first of a pipeline.") }
      return .source(source)
    }
    guard Self.names.contains(arguments.name) else { throw PipelineError("Unknown stage.") }
    guard !isFirst else {
      throw PipelineError("The first stage must be an input stage, such as collection or literals.")
    }
    switch arguments.name {
    case "update", "delete":
      try checkWriting(isLast: isLast)
      return try writing(arguments)
    case "sort", "limit", "offset", "sample": return try selecting(arguments)
    case "aggregate", "distinct": return try grouping(arguments)
    case "unnest", "replace_with", "union", "find_nearest": return try joining(arguments)
    case "search": return .search(try search(arguments))
    default: return try shaping(arguments)
    }
  }

  private static let names: Set<String> = [
    "where", "select", "add_fields", "remove_fields", "sort", "limit", "offset", "aggregate", "distinct", "unnest",
    "replace_with", "sample", "union", "find_nearest", "let", "search", "update", "delete",
  ]

  /// Returns the source if the stage is an input stage.
  private mutating func source(_ arguments: StageArguments) throws(PipelineError) -> PipelineSource? {
    switch arguments.name {
    case "collection":
      try arguments.expect(1...1, options: StageArguments.hints)
      let path = try arguments.path(0, "path")
      guard path.isCollection else { throw PipelineError("path: /\(path.text) is not the path of a collection.") }
      return .query(parent: path.parent, collectionID: path.id, includesDescendants: false)
    case "collection_group":
      try arguments.expect(2...2, options: StageArguments.hints)
      let parent = try arguments.path(0, "ancestor")
      guard !parent.isCollection else {
        throw PipelineError("ancestor: /\(parent.text) is not the path of a document.")
      }
      let id = try arguments.string(1, "collection_id")
      guard !id.isEmpty, !id.utf8.contains(UInt8(ascii: "/")) else {
        throw PipelineError("collection_id: \"\(id)\" is not the ID of a collection.")
      }
      return .query(parent: parent, collectionID: id, includesDescendants: true)
    case "database":
      try arguments.expect(0...0, options: StageArguments.hints)
      return .query(parent: .root, collectionID: nil, includesDescendants: true)
    case "documents":
      try arguments.expect(1...Int.max)
      var seen: Set<DocumentKey> = []
      var keys: [DocumentKey] = []
      for index in arguments.indices {
        let path = try arguments.path(index, "document \(index + 1)")
        guard let key = DocumentKey(path) else {
          throw PipelineError("document \(index + 1): /\(path.text) is not the path of a document.")
        }
        guard seen.insert(key).inserted else { throw PipelineError("The document /\(path.text) occurs twice.") }
        keys.append(key)
      }
      return .documents(keys)
    case "literals":
      try arguments.expect(1...Int.max)
      var rows: [RowAssignments] = []
      for index in arguments.indices {
        rows.append(try assignments(try arguments.entries(index, "row \(index + 1)"), areKeysNames: true))
      }
      guard subpipelines.isEmpty else { throw PipelineError("literals cannot contain a nested pipeline.") }
      return .literals(rows)
    case "subcollection":
      try arguments.expect(1...1)
      guard case .nested = place else {
        throw PipelineError("subcollection is only allowed at the start of a nested pipeline.")
      }
      let path = try arguments.string(0, "path")
      guard let parsed = try? ResourcePath(path), parsed.isCollection else {
        throw PipelineError("path: \"\(path)\" is not the path of a collection.")
      }
      return .subcollection(path)
    default: return nil
    }
  }

  private mutating func shaping(_ arguments: StageArguments) throws(PipelineError) -> PipelineStage.Operation {
    switch arguments.name {
    case "where":
      try arguments.expect(1...1)
      return .filter(
        try expression(arguments[0]),
        PrefixCondition(arguments[0], variables: scope.places, requestConditionsLeft: &work.conditionsLeft))
    case "select":
      try arguments.expect(1...1)
      return .select(try assignments(try arguments.entries(0, "fields")))
    case "add_fields":
      try arguments.expect(1...1)
      return .addFields(try assignments(try arguments.entries(0, "fields")))
    case "remove_fields":
      try arguments.expect(1...Int.max)
      return .removeFields(try removals(arguments))
    default:
      try arguments.expect(1...1)
      let entries = try arguments.entries(0, "variables")
      // All expressions of one stage see the older variables.
      var compiled: [(String, Int)] = []
      for entry in entries {
        guard !entry.key.isEmpty else { throw PipelineError("A variable has no name.") }
        try Self.checkVariable(entry.key)
        compiled.append((entry.key, try expression(entry.value)))
      }
      return .bind(compiled.map { (scope.bind($0), $1) })
    }
  }

  private mutating func selecting(_ arguments: StageArguments) throws(PipelineError) -> PipelineStage.Operation {
    switch arguments.name {
    case "limit":
      try arguments.expect(1...1)
      return .limit(try arguments.count(0, "limit"))
    case "offset":
      try arguments.expect(1...1)
      return .offset(try arguments.count(0, "offset"))
    case "sample":
      try arguments.expect(2...2)
      switch try arguments.string(1, "mode") {
      case "documents": return .sampleCount(try arguments.count(0, "documents"))
      case "percent":
        let part = try arguments.number(0, "percent")
        guard (0.0...1.0).contains(part) else { throw PipelineError("percent must be from 0.0 to 1.0.") }
        return .samplePart(part)
      case let mode: throw PipelineError("mode: \"\(mode)\" is neither \"documents\" nor \"percent\".")
      }
    default:
      try arguments.expect(1...Int.max)
      var terms: [SortTerm] = []
      for index in arguments.indices {
        terms.append(try sortTerm(arguments[index], "ordering \(index + 1)"))
      }
      return .sort(terms)
    }
  }

  private mutating func sortTerm(_ argument: PipelineArgument, _ name: String) throws(PipelineError) -> SortTerm {
    guard let entries = argument.mapEntries else { throw StageArguments.mismatch(name, "MAP_VALUE", argument) }
    var term: SortTerm?
    var isDescending = false
    for entry in entries {
      switch entry.key {
      case "expression":
        var field: FieldPath?
        if case .field(let path) = entry.value { field = try StageArguments.path(path) }
        term = SortTerm(expression: try expression(entry.value), isDescending: false, field: field)
      case "direction":
        switch entry.value.constant {
        case .string("ascending"): isDescending = false
        case .string("descending"): isDescending = true
        default: throw PipelineError("\(name): the direction is neither \"ascending\" nor \"descending\".")
        }
      default: throw PipelineError("\(name): unknown member \"\(entry.key)\".")
      }
    }
    guard var term else { throw PipelineError("\(name): the expression is missing.") }
    term.isDescending = isDescending
    return term
  }

  private mutating func grouping(_ arguments: StageArguments) throws(PipelineError) -> PipelineStage.Operation {
    let isAggregate = arguments.name == "aggregate"
    try arguments.expect(isAggregate ? 1...2 : 1...1, options: isAggregate ? ["hints"] : [])
    let accumulated = isAggregate ? try arguments.entries(0, "accumulators") : []
    let grouped =
      isAggregate
      ? (arguments.count > 1 ? try arguments.entries(1, "groups") : []) : try arguments.entries(0, "groups")
    if isAggregate, accumulated.isEmpty {
      throw PipelineError("The stage requires at least one accumulator.")
    }
    if !isAggregate, grouped.isEmpty { throw PipelineError("The stage requires at least one group.") }
    var groups: [Int] = []
    for entry in grouped { groups.append(try expression(entry.value)) }
    var accumulators: [GroupAccumulator] = []
    for entry in accumulated { accumulators.append(try accumulator(entry.value, entry.key)) }
    var paths: [FieldPath] = []
    for entry in grouped + accumulated { paths.append(try StageArguments.alias(entry.key)) }
    scope.forgetOwn()
    return .aggregate(RowGrouping(groups: groups, accumulators: accumulators, tree: try FieldTree(paths)))
  }

  private mutating func joining(_ arguments: StageArguments) throws(PipelineError) -> PipelineStage.Operation {
    switch arguments.name {
    case "unnest":
      try arguments.expect(2...2, options: ["index_field"])
      let index = try arguments.option("index_field").map { (value) throws(PipelineError) in
        try StageArguments.aliasField(value, "index_field")
      }
      let alias = try StageArguments.aliasField(arguments[1], "alias")
      _ = try FieldTree([alias] + (index.map { [$0] } ?? []))
      return .unnest(try expression(arguments[0]), alias: alias, index: index)
    case "replace_with":
      try arguments.expect(1...2)
      let mode = arguments.count > 1 ? try arguments.string(1, "mode") : "full_replace"
      guard let mode = Self.replaceModes[mode] else { throw PipelineError("mode: unknown mode \"\(mode)\".") }
      return .replace(try expression(arguments[0]), mode)
    case "union":
      try arguments.expect(1...1)
      guard case .pipeline(let stages) = arguments[0] else {
        throw StageArguments.mismatch("other", "PIPELINE_VALUE", arguments[0])
      }
      // The rows of both pipelines have no variables of their own afterwards.
      scope.forgetOwn()
      var parser = PipelineParser(database, .union, VariableScope(inside: scope), depth: try nestedDepth(), work)
      let body = try parser.body(stages)
      scope.reserve(body.variableCount)
      return .union(body)
    default: return .nearest(try nearest(arguments))
    }
  }

  private static let replaceModes: [String: ReplaceMode] = [
    "full_replace": .full, "merge_overwrite_existing": .overwriteExisting, "merge_keep_existing": .keepExisting,
  ]

  private mutating func nearest(_ arguments: StageArguments) throws(PipelineError) -> NearestSearch {
    try arguments.expect(3...3, options: ["limit", "distance_field"])
    guard let value = arguments[1].constant, let vector = FindNearest.components(of: value), !vector.isEmpty else {
      throw PipelineError("vector: a vector is required.")
    }
    let measure: FindNearest.Measure
    switch try arguments.string(2, "distance_measure") {
    case "euclidean": measure = .euclidean
    case "cosine": measure = .cosine
    case "dot_product": measure = .dotProduct
    case let name: throw PipelineError("distance_measure: unknown measure \"\(name)\".")
    }
    var limit: Int?
    if let option = arguments.option("limit") { limit = try StageArguments.count(option, "limit") }
    var field: FieldPath?
    if let option = arguments.option("distance_field") {
      field = try StageArguments.aliasField(option, "distance_field")
    }
    return NearestSearch(
      expression: try expression(arguments[0]), vector: vector, measure: measure, limit: limit,
      distanceField: field)
  }

  // MARK: Search

  private mutating func search(_ arguments: StageArguments) throws(PipelineError) -> SearchPlan {
    guard stages.count == 1, case .source(.query(_, _?, _)) = stages[0].operation else {
      throw PipelineError("This stage must directly follow collection or collection_group.")
    }
    try arguments.expect(
      0...0,
      options: ["query", "limit", "offset", "retrieval_depth", "sort", "add_fields", "language_code"])
    guard let query = arguments.option("query") else { throw PipelineError("The option query is missing.") }
    var plan = SearchPlan()
    try searchQuery(query, &plan)
    if let limit = arguments.option("limit") { plan.limit = try StageArguments.count(limit, "limit") }
    if let offset = arguments.option("offset") { plan.offset = try StageArguments.count(offset, "offset") }
    if let depth = arguments.option("retrieval_depth") {
      plan.depth = try StageArguments.count(depth, "retrieval_depth")
    }
    if let language = arguments.option("language_code") {
      guard case .constant(.string(let code)) = language else {
        throw StageArguments.mismatch("language_code", "STRING_VALUE", language)
      }
      guard let known = TextLanguage(tag: code) else {
        throw PipelineError("language_code: the language \"\(code)\" is unknown.")
      }
      plan.language = known
    }
    // The text and the language are checked now, before anything is read.
    if let text = plan.text { _ = try TextQuery(text, plan.language ?? .english) }
    if let sort = arguments.option("sort") { plan.terms = try searchTerms(sort) }
    if let fields = arguments.option("add_fields") {
      guard let entries = fields.mapEntries else { throw StageArguments.mismatch("add_fields", "MAP_VALUE", fields) }
      plan.added = try assignments(entries)
    }
    guard subpipelines.isEmpty else { throw PipelineError("This stage cannot contain a nested pipeline.") }
    return plan
  }

  /// Reads the query of a search: a text, conditions on distances, or several of them in `and`.
  private mutating func searchQuery(_ query: PipelineArgument, _ plan: inout SearchPlan) throws(PipelineError) {
    var parts = [query]
    if case .function(let call) = query, call.name == "and" { parts = call.arguments }
    var conditions: [PipelineArgument] = []
    for part in parts {
      guard case .function(let call) = part else { throw Self.searchMistake }
      if call.name == "document_matches" {
        guard call.arguments.count == 1, case .constant(.string(let text)) = call.arguments[0] else {
          throw PipelineError("query: document_matches takes one string.")
        }
        guard plan.text == nil else { throw PipelineError("query: document_matches can occur only once.") }
        plan.text = text
      } else {
        guard ["less_than_or_equal", "lte"].contains(call.name), case .function(let distance)? = call.arguments.first,
          distance.name == "geo_distance"
        else { throw Self.searchMistake }
        conditions.append(part)
      }
    }
    guard !parts.isEmpty else { throw Self.searchMistake }
    if conditions.isEmpty { return }
    guard case .function(var all) = query, conditions.count > 1 else {
      plan.condition = try expression(conditions[0])
      return
    }
    all.arguments = conditions
    plan.condition = try expression(.function(all))
  }

  private static var searchMistake: PipelineError {
    PipelineError(
      "query: document_matches, a condition that a geo_distance is at most a number, or 'and' of both is required.")
  }

  private mutating func searchTerms(_ sort: PipelineArgument) throws(PipelineError) -> [SortTerm] {
    var arguments = [sort]
    switch sort {
    case .array(let elements): arguments = elements
    case .constant(.array(let elements)): arguments = elements.map(PipelineArgument.constant)
    default: break
    }
    var terms: [SortTerm] = []
    for (index, argument) in arguments.enumerated() {
      terms.append(try sortTerm(argument, "ordering \(index + 1)"))
    }
    return terms
  }

  // MARK: Writing stages

  private func checkWriting(isLast: Bool) throws(PipelineError) {
    guard isLast else { throw PipelineError("This stage can only be the last of a pipeline.") }
    guard case .request = place else {
      throw PipelineError("A pipeline inside another one cannot write documents.")
    }
    for stage in stages {
      switch stage.operation {
      case .source(.subcollection), .aggregate, .unnest, .nearest, .union, .replace, .sampleCount, .samplePart,
        .search:
        throw PipelineError("This stage cannot follow \(stage.name).")
      default:
        guard stage.subpipelines.isEmpty else { throw PipelineError("This stage cannot follow a nested pipeline.") }
      }
    }
  }

  private mutating func writing(_ arguments: StageArguments) throws(PipelineError) -> PipelineStage.Operation {
    guard arguments.name == "update" else {
      try arguments.expect(0...0)
      return .delete
    }
    try arguments.expect(0...1)
    let assigned = try assignments(arguments.count > 0 ? try arguments.entries(0, "fields") : [])
    guard assigned.fieldCount == assigned.expressions.count else {
      throw PipelineError("The name and the times of a document cannot be updated.")
    }
    guard subpipelines.isEmpty else { throw PipelineError("This stage cannot contain a nested pipeline.") }
    return .update(assigned)
  }

  // MARK: Expressions

  private func nestedDepth() throws(PipelineError) -> Int {
    guard depth < Limits.subpipelineDepthMax else {
      throw PipelineError("Pipelines are nested more than \(Limits.subpipelineDepthMax) levels deep.")
    }
    return depth + 1
  }

  /// Adds an expression to the stage's program and returns its number. Its nested pipelines become variables, which
  /// receive their values before the stage evaluates the expression.
  private mutating func expression(_ argument: PipelineArgument) throws(PipelineError) -> Int {
    expressions.append(try converted(argument))
    return expressions.count - 1
  }

  private mutating func accumulator(
    _ argument: PipelineArgument, _ alias: String
  ) throws(PipelineError) -> GroupAccumulator {
    guard case .function(let call) = argument, let function = AccumulatorFunction(rawValue: call.name) else {
      throw PipelineError("\(alias): an accumulator is required, such as count or sum.")
    }
    guard function.accepts(argumentCount: call.arguments.count) else {
      throw PipelineError("\(alias): function '\(call.name)' was given \(call.arguments.count) arguments.")
    }
    if let option = call.options.first {
      throw PipelineError("\(alias): function '\(call.name)' has no option '\(option.key)'.")
    }
    return GroupAccumulator(
      function: function, argument: call.arguments.isEmpty ? nil : try expression(call.arguments[0]))
  }

  private func compile(_ stage: String) throws(PipelineError) -> ExpressionProgram? {
    guard !expressions.isEmpty else { return nil }
    do throws(ExpressionError) {
      return try ExpressionCompiler.compile(expressions, variables: names, isSearch: stage == "search")
    } catch { throw PipelineError(error.text) }
  }

  private mutating func converted(_ argument: PipelineArgument) throws(PipelineError) -> PipelineExpression {
    switch argument {
    case .constant(let value): return .constant(value)
    case .field(let path): return .field(try StageArguments.path(path))
    case .variable(let name):
      try Self.checkVariable(name)
      return .variable(name)
    case .array(let elements): return .array(try converted(elements))
    case .map(let entries):
      var all: [PipelineExpression.Entry] = []
      for entry in entries { all.append(PipelineExpression.Entry(key: entry.key, value: try converted(entry.value))) }
      return .map(all)
    case .pipeline: throw PipelineError("A pipeline is only allowed as the argument of array or scalar.")
    case .function(let call):
      if call.arguments.count == 1, call.name == "array" || call.name == "scalar",
        case .pipeline(let stages) = call.arguments[0]
      {
        return try subpipeline(stages, argument, isScalar: call.name == "scalar")
      }
      return .call(
        PipelineExpression.FunctionCall(
          name: call.name, arguments: try convertedArguments(call), options: call.options.map(\.key)))
    }
  }

  /// Names that contain NUL are those of the values of nested pipelines.
  private static func checkVariable(_ name: String) throws(PipelineError) {
    guard !name.utf8.contains(0) else { throw PipelineError("The name of a variable contains the character NUL.") }
  }

  /// Nested pipelines run before the functions around them. So they do not see a variable with the name of a parameter.
  private mutating func convertedArguments(_ call: PipelineCall) throws(PipelineError) -> [PipelineExpression] {
    guard ["array_filter", "array_transform"].contains(call.name), let body = call.arguments.last else {
      return try converted(call.arguments)
    }
    let rest = try converted(Array(call.arguments.dropLast()))
    let visible = scope.hide(call.arguments.dropFirst().dropLast().compactMap(\.constant))
    defer { scope.show(visible) }
    return try rest + [converted(body)]
  }

  private mutating func converted(_ arguments: [PipelineArgument]) throws(PipelineError) -> [PipelineExpression] {
    var all: [PipelineExpression] = []
    for argument in arguments { all.append(try converted(argument)) }
    return all
  }

  private mutating func subpipeline(
    _ stages: [PipelineCall], _ argument: PipelineArgument, isScalar: Bool
  ) throws(PipelineError) -> PipelineExpression {
    var parser = PipelineParser(database, .nested, VariableScope(inside: scope), depth: try nestedDepth(), work)
    let body = try parser.body(stages)
    let place = scope.bindHidden()
    subpipelines.append(
      Subpipeline(
        variable: place, isScalar: isScalar, isCorrelated: argument.readsVariables, body: body,
        lookup: try lookup(stages)))
    // No variable of a client has this name.
    let name = "\u{0}\(place)"
    names[name] = place
    return .variable(name)
  }

  /// Returns the other form of a nested pipeline, if it has one.
  private func lookup(_ stages: [PipelineCall]) throws(PipelineError) -> LookupPlan? {
    guard let (stages, name) = LookupPlan.rewritten(stages), let variable = scope.places[name] else { return nil }
    var parser = PipelineParser(database, .nested, VariableScope(inside: scope), depth: try nestedDepth(), work)
    // A form that is not valid, such as one whose field occurs twice, is not used.
    guard let body = try? parser.body(stages) else { return nil }
    return LookupPlan(variable: variable, body: body)
  }

  private mutating func assignments(
    _ entries: [PipelineArgument.Entry], areKeysNames: Bool = false
  ) throws(PipelineError) -> RowAssignments {
    var expressions: [Int] = []
    var paths: [FieldPath] = []
    var metadata: [String: Int] = [:]
    // Fields come first, so that their numbers are those of their paths.
    let special = PipelineRow.metadataNames
    for entry in entries where !special.contains(entry.key) {
      paths.append(areKeysNames ? FieldPath(field: entry.key) : try StageArguments.alias(entry.key))
      expressions.append(try expression(entry.value))
    }
    for entry in entries where special.contains(entry.key) {
      metadata[entry.key] = expressions.count
      expressions.append(try expression(entry.value))
    }
    return RowAssignments(
      expressions: expressions, tree: try FieldTree(paths), name: metadata["__name__"],
      createTime: metadata["__create_time__"], updateTime: metadata["__update_time__"])
  }

  private func removals(_ arguments: StageArguments) throws(PipelineError) -> RowRemovals {
    var paths: [FieldPath] = []
    var names: Set<String> = []
    for index in arguments.indices {
      let path = try StageArguments.field(arguments[index], "field \(index + 1)")
      if path.segments.count == 1, ["__name__", "__create_time__", "__update_time__"].contains(path.segments[0]) {
        names.insert(path.segments[0])
      } else {
        paths.append(path)
      }
    }
    return RowRemovals(
      tree: try FieldTree(FieldMask(paths).paths), removesName: names.contains("__name__"),
      removesCreateTime: names.contains("__create_time__"), removesUpdateTime: names.contains("__update_time__"))
  }
}
