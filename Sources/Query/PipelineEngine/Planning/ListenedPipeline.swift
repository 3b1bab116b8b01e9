package import DocumentModel

/// The documents that a listener of a pipeline follows: documents by name, or the results of a query that finds the
/// same documents as the pipeline.
///
/// Listeners follow a pipeline of a source, then `where`, `sort` and `limit` (pipelines.md, section 5.3). A response
/// to a listener has no order, so an order matters only if a limit follows. A condition must mean the same in a
/// query: where the languages differ, for example for a field that is absent, the pipeline is refused.
package enum ListenedPipeline: Equatable, Sendable {
  /// The query, in the order of the enterprise edition, and the query whose results rules must allow.
  case query(Query, provable: Query)
  /// Documents by name, which may not exist.
  case documents([DocumentKey])

  /// Finds the documents of a pipeline.
  /// - Throws: ``PipelineError`` that names the stage if the pipeline is invalid, or listeners cannot follow it.
  package init(_ pipeline: StructuredPipeline, in database: DatabaseID) throws(PipelineError) {
    let plan = try PipelinePlan(pipeline, in: database)
    guard pipeline.options.isEmpty else { throw PipelineError("The pipeline of a listener cannot have options.") }
    var reader = PrefixReader()
    var keys: [DocumentKey]?
    for (stage, call) in zip(plan.body.stages, pipeline.stages) {
      do throws(PipelineError) {
        if case .source(.documents(let named)) = stage.operation {
          keys = named
        } else {
          try reader.add(stage.operation, call, isOfDocuments: keys != nil)
        }
      } catch { throw error.inside(stage.number, stage.name) }
    }
    if let keys {
      self = .documents(keys)
    } else {
      self = .query(try reader.finish(), provable: plan.provableQuery ?? reader.query)
    }
  }
}

extension PipelinePlan {
  fileprivate var provableQuery: Query? {
    for case .query(let query) in sources { return query }
    return nil
  }
}

/// Reads the stages of a pipeline that listeners follow.
private struct PrefixReader {
  private(set) var query = Query(collectionID: nil)
  private var conditions: [(stage: Int, argument: PipelineArgument)] = []
  private var orders: [Order] = []
  /// The number of the stage that sorts, for errors.
  private var sortStage = 0
  private var stageCount = 1
  /// Whether a sort follows the limit.
  private var isSortedAgain = false
  /// The parts that further conditions may have.
  private var conditionsLeft = PipelineLimits.requestConditionsMax

  mutating func add(
    _ operation: PipelineStage.Operation, _ call: PipelineCall, isOfDocuments: Bool
  ) throws(PipelineError) {
    defer { stageCount += 1 }
    switch operation {
    case .source(.query(let parent, let collectionID, let includesDescendants)):
      query = Query(parent: parent, collectionID: collectionID, includesDescendants: includesDescendants)
    case .filter where isOfDocuments, .limit where isOfDocuments:
      throw PipelineError("Listeners follow all documents of the stage documents. Use a collection.")
    case .filter:
      guard query.limit == nil else { throw PipelineError("Listeners cannot follow a condition after a limit.") }
      conditionsLeft -= Self.count(call.arguments[0])
      guard conditionsLeft >= 0 else {
        throw PipelineError(
          "Listeners cannot follow a pipeline whose conditions have more than \(PipelineLimits.requestConditionsMax) parts."
        )
      }
      for condition in Self.parts(call.arguments[0]) { conditions.append((stageCount, condition)) }
    case .sort(let terms):
      let orders = try Self.orders(terms)
      if query.limit != nil {
        isSortedAgain = isSortedAgain || orders != self.orders
      } else {
        (self.orders, sortStage) = (orders, stageCount)
      }
    case .limit(let count):
      guard !isSortedAgain else { throw PipelineError("Listeners cannot follow a limit after two different sorts.") }
      query.limit = min(count, query.limit ?? Int(Int32.max))
    default:
      throw PipelineError(
        "Listeners follow pipelines of collection, collection_group, database or documents, then where, sort and limit."
      )
    }
  }

  private static func orders(_ terms: [SortTerm]) throws(PipelineError) -> [Order] {
    var orders: [Order] = []
    for term in terms {
      guard let path = term.field else { throw PipelineError("Listeners can sort only by fields.") }
      if !orders.contains(where: { $0.path == path }) { orders.append(Order(path, isDescending: term.isDescending)) }
      // The name decides every tie.
      if path.isDocumentName { return orders }
      guard orders.count < Limits.orderFieldsMax else {
        throw PipelineError("Listeners cannot sort by that many fields.")
      }
    }
    return orders + [Order(FieldPath(field: "__name__"))]
  }

  /// Completes the query.
  mutating func finish() throws(PipelineError) -> Query {
    var filters: [QueryFilter] = []
    let existing = Set(conditions.compactMap { Self.existingField($0.argument) })
    let compared = Set(conditions.compactMap { Self.comparedField($0.argument, known: existing) })
    for (number, condition) in conditions where Self.existingField(condition) == nil {
      do throws(PipelineError) {
        filters.append(try Self.filter(condition, canFail: true, known: existing))
      } catch { throw error.inside(number, "where") }
    }
    let unchecked = existing.subtracting(compared).sorted()
    if query.limit == nil {
      // Without a limit only the presence of the fields matters, which an order requires.
      query.orders = unchecked.map { Order($0) }
    } else {
      for order in orders where !order.path.isDocumentName {
        guard compared.contains(order.path) || existing.contains(order.path) else {
          let text =
            "A document may lack \(order.path.text), which listeners cannot sort by before a limit. "
            + "Add where(exists(\(order.path.text)))."
          throw PipelineError(text).inside(sortStage, "sort")
        }
      }
      query.orders = orders
      for field in unchecked where !orders.contains(where: { $0.path == field }) { filters.append(Self.exists(field)) }
    }
    query.filter = filters.isEmpty ? nil : filters.count == 1 ? filters[0] : .and(filters)
    return query
  }

  // MARK: Conditions

  /// Returns the number of comparisons, and of calls of `and` and `or`.
  private static func count(_ condition: PipelineArgument) -> Int {
    guard case .function(let call) = condition, call.name == "and" || call.name == "or" else { return 1 }
    return call.arguments.reduce(1) { $0 + count($1) }
  }

  /// Returns the parts of a conjunction.
  private static func parts(_ condition: PipelineArgument) -> [PipelineArgument] {
    guard case .function(let call) = condition, call.name == "and" else { return [condition] }
    return call.arguments.flatMap(parts)
  }

  private static func exists(_ field: FieldPath) -> QueryFilter {
    .or([.unary(field, .isNull), .unary(field, .isNotNull)])
  }

  /// Returns the field of `exists(field)`.
  private static func existingField(_ condition: PipelineArgument) -> FieldPath? {
    guard case .function(let call) = condition, call.name == "exists", call.arguments.count == 1 else { return nil }
    return PrefixCondition.field(call.arguments[0]).flatMap { $0.isDocumentName ? nil : $0 }
  }

  /// Returns the field that a document must have to meet a comparison.
  private static func comparedField(_ condition: PipelineArgument, known: Set<FieldPath>) -> FieldPath? {
    guard existingField(condition) == nil, let filter = try? filter(condition, canFail: true, known: known) else {
      return nil
    }
    return comparedField(filter)
  }

  /// Returns the field that a document must have to meet a comparison.
  private static func comparedField(_ filter: QueryFilter) -> FieldPath? {
    switch filter {
    case .field(let path, _, _), .unary(let path, _): path
    case .and, .or: nil
    }
  }

  /// Returns the filter that matches the documents for which a condition is true.
  /// - Parameters:
  ///   - canFail: whether the condition may fail for a value of another type. In an alternative that others follow, the
  ///     failure would end the evaluation before them.
  ///   - known: the fields that the documents have.
  private static func filter(
    _ condition: PipelineArgument, canFail: Bool, known: Set<FieldPath>
  ) throws(PipelineError) -> QueryFilter {
    guard case .function(let call) = condition else {
      throw PipelineError("Listeners can follow only comparisons of fields with constants.")
    }
    switch call.name {
    case "and":
      let parts = parts(condition)
      let existing = Set(parts.compactMap(existingField))
      let required = known.union(existing)
      var filters: [QueryFilter] = []
      for part in parts where existingField(part) == nil {
        filters.append(try filter(part, canFail: canFail, known: required))
      }
      let compared = Set(filters.compactMap(comparedField))
      for field in existing.subtracting(known).subtracting(compared).sorted() { filters.append(exists(field)) }
      return filters.count == 1 ? filters[0] : .and(filters)
    case "or":
      var filters: [QueryFilter] = []
      for (index, part) in call.arguments.enumerated() {
        filters.append(try filter(part, canFail: canFail && index == call.arguments.count - 1, known: known))
      }
      return filters.count == 1 ? filters[0] : .or(filters)
    case "exists":
      guard let field = existingField(condition) else { break }
      return exists(field)
    case "not", "not_equal", "neq":
      // Only a document that has the field differs from null in both languages.
      if let field = fieldOfDifferenceFromNull(call), known.contains(field) { return .unary(field, .isNotNull) }
    default:
      if let found = comparison(call) {
        if [.arrayContains, .arrayContainsAny].contains(found.op), !canFail {
          throw PipelineError(
            "Listeners can follow \(call.name) only as the last alternative of or, because it fails for other types.")
        }
        return found.filter
      }
    }
    throw PipelineError(
      "Listeners cannot follow \(call.name) with these arguments. They follow exists, and equal, less_than, "
        + "greater_than, equal_any, array_contains and their relatives, of a field and a constant.")
  }

  private static func comparison(_ call: PipelineCall) -> (filter: QueryFilter, op: FieldOperator)? {
    if ["equal", "eq"].contains(call.name), call.arguments.count == 2,
      let path = PrefixCondition.field(call.arguments[0]), !path.isDocumentName
    {
      switch call.arguments[1].constant {
      case .null: return (.unary(path, .isNull), .equal)
      case .double(let number) where number.isNaN: return (.unary(path, .isNaN), .equal)
      default: break
      }
    }
    guard case .field(let path, let op, .constant(let operand))? = PrefixCondition.comparison(of: call) else {
      return nil
    }
    return (.field(path, op, operand), op)
  }

  /// Returns the field of `not(equal(field, null))` or `not_equal(field, null)`.
  private static func fieldOfDifferenceFromNull(_ call: PipelineCall) -> FieldPath? {
    var call = call
    if call.name == "not" {
      guard case .function(let inner)? = call.arguments.first, ["equal", "eq"].contains(inner.name) else { return nil }
      call = inner
    }
    guard call.arguments.count == 2, call.arguments[1].constant == .null else { return nil }
    return PrefixCondition.field(call.arguments[0]).flatMap { $0.isDocumentName ? nil : $0 }
  }
}
