import DocumentModel
import QueryEngine

/// The query that finds the first rows of a pipeline: its source, and what indexes can check and order of the stages
/// that follow.
struct SourcePlan: Sendable {
  let parent: ResourcePath
  let collectionID: String?
  let includesDescendants: Bool
  /// The usable conditions of the `where` stages that see the documents as they are stored. Those without variables,
  /// together with the order, are a legal query.
  private(set) var filters: [PrefixCondition.Filter] = []
  /// The order of the first `sort` stage, if every document that passes has its fields.
  private(set) var orders: [Order] = []
  /// The index of that stage, which then does nothing.
  private(set) var orderStage: Int?
  /// The field of the order if documents without it pass. An index lacks these, so they are read after all others.
  private(set) var lateField: FieldPath?
  /// The number of rows after which a following `limit` stage ends the pipeline, or `nil`. The query may have it as its
  /// limit only if it checks all conditions itself (``isExact``).
  private(set) var limit: Int?
  /// The fields that `exists` requires in these stages, which the query checks if it has a limit.
  private(set) var existingFields: [FieldPath] = []
  /// Whether the filters, with ``existingFields``, are exactly the conditions of the `where` stages, if their variables
  /// have comparable values.
  private(set) var isExact = true
  /// Whether ``filters`` has the usable conditions of all those stages.
  private var isWhole = true

  /// Creates the plan of a pipeline, or `nil` if its first stage does not read collections. Two plans of the same
  /// stages are equal, so the rules authorize the query that is executed.
  init?(_ source: PipelineSource, _ stages: [PipelineStage], in database: DatabaseID) {
    switch source {
    case .query(let parent, let collectionID, let includesDescendants):
      self.parent = parent
      self.collectionID = collectionID
      self.includesDescendants = includesDescendants
    case .subcollection(let path):
      // The parent is known when the pipeline runs. Until then this is every collection with the ID.
      parent = .root
      collectionID = path.split(separator: "/").last.map(String.init)
      includesDescendants = true
    case .documents, .literals: return nil
    }
    readPrefix(stages)
    keepLegalFilters(in: database)
  }

  private mutating func readPrefix(_ stages: [PipelineStage]) {
    var required: Set<FieldPath> = []
    var conditionCount = 0
    var skipped = 0
    // Whether a stage sees documents as they are stored, and all of them.
    var seesDocuments = true
    for (index, stage) in stages.enumerated().dropFirst() {
      switch stage.operation {
      case .filter(_, let condition):
        guard seesDocuments else { return }
        required.formUnion(condition.requiredFields)
        isExact = isExact && condition.isExact
        for field in condition.existingFields where !existingFields.contains(field) {
          // A query checks each of them on each document.
          if existingFields.count < PipelineLimits.plannedConditionsMax {
            existingFields.append(field)
          } else {
            isExact = false
          }
        }
        // After a sort, a condition still applies to stored documents, and order and conditions do not interfere.
        guard let filter = condition.filter else { continue }
        if conditionCount < PipelineLimits.plannedStagesMax {
          conditionCount += 1
          filters += filter.conjuncts
        } else {
          (isExact, isWhole) = (false, false)
        }
      case .bind where orderStage == nil: continue
      case .bind, .select, .addFields, .removeFields: seesDocuments = false
      case .sort(let terms):
        // Of consecutive sorts only the last one counts, so a second one ends the prefix.
        guard seesDocuments, orderStage == nil else { return }
        if let orders = Self.orders(terms, required) {
          self.orders = orders
        } else if isExact, Self.isLimited(stages[(index + 1)...]), let order = Self.lateOrder(terms) {
          orders = [order]
          lateField = order.path
        } else {
          return
        }
        orderStage = index
      case .offset(let count):
        seesDocuments = false
        let (sum, overflow) = skipped.addingReportingOverflow(count)
        if overflow { return }
        skipped = sum
      case .limit(let count):
        let (sum, overflow) = skipped.addingReportingOverflow(count)
        if !overflow { limit = sum }
        return
      default: return
      }
    }
  }

  /// Removes conditions until those without variables are a legal query, because queries have limits that pipelines do
  /// not have. The stages of the removed conditions still evaluate them.
  private mutating func keepLegalFilters(in database: DatabaseID) {
    guard (try? ResolvedQuery(query(), in: database, edition: .enterprise)) == nil else { return }
    (isExact, isWhole, limit) = (false, false, nil)
    if lateField != nil { (orders, orderStage, lateField) = ([], nil, nil) }
    // A query cannot have more conditions, however short they are.
    let candidates = filters.prefix(QueryLimits.partsMax)
    filters = []
    var checksLeft = PipelineLimits.plannedChecksMax
    keep(candidates, in: database, &checksLeft)
  }

  /// Adds the conditions that leave the query legal, in their order. Cost: a check of the query for about each half of
  /// the conditions that contains an illegal one.
  private mutating func keep(
    _ candidates: ArraySlice<PrefixCondition.Filter>, in database: DatabaseID, _ checksLeft: inout Int
  ) {
    guard !candidates.isEmpty, checksLeft > 0 else { return }
    checksLeft -= 1
    filters += candidates
    if (try? ResolvedQuery(query(), in: database, edition: .enterprise)) != nil { return }
    filters.removeLast(candidates.count)
    guard candidates.count > 1 else { return }
    let middle = candidates.startIndex + candidates.count / 2
    keep(candidates[..<middle], in: database, &checksLeft)
    keep(candidates[middle...], in: database, &checksLeft)
  }

  /// Whether a limit follows, with no stages before it that drop or reorder rows.
  private static func isLimited(_ stages: ArraySlice<PipelineStage>) -> Bool {
    for stage in stages {
      switch stage.operation {
      case .limit: return true
      case .offset, .bind, .select, .addFields, .removeFields: continue
      default: return false
      }
    }
    return false
  }

  /// Returns the order of a sort by one field, descending, after which the rows without the field come last.
  private static func lateOrder(_ terms: [SortTerm]) -> Order? {
    guard terms.count == 1, terms[0].isDescending, let path = terms[0].field, !path.isDocumentName else { return nil }
    return Order(path, isDescending: true)
  }

  private static func orders(_ terms: [SortTerm], _ required: Set<FieldPath>) -> [Order]? {
    var orders: [Order] = []
    for term in terms {
      guard let path = term.field, path.isDocumentName || required.contains(path),
        orders.count < Limits.orderFieldsMax, !orders.contains(where: { $0.path == path })
      else { return nil }
      orders.append(Order(path, isDescending: term.isDescending))
      // The name decides every tie.
      if path.isDocumentName { return orders }
    }
    return orders
  }

  /// Returns the query, with the values of the variables of the enclosing row.
  private func query(_ value: (Int) -> Value? = { _ in nil }) -> Query {
    var query = Query(parent: parent, collectionID: collectionID, includesDescendants: includesDescendants)
    let parts = filters.compactMap { $0.filter(value) }
    query.filter = parts.isEmpty ? nil : parts.count == 1 ? parts[0] : .and(parts)
    query.orders = orders
    return query
  }

  /// A query to execute.
  struct Executed {
    let query: ResolvedQuery
    /// Whether the query checks every condition that ``PrefixCondition/isExact`` describes exactly.
    let checksConditions: Bool
    /// The limit of the query, if it has one.
    let limit: Int?
    /// The fields that every document must have. If empty, the query does not check ``SourcePlan/existingFields``.
    let required: [FieldPath]
  }

  /// Returns the query to execute, with the values of the variables of the enclosing row. It always contains the
  /// conditions of ``provableQuery``, so that no stage sees a document that the rules do not allow.
  /// - Parameters:
  ///   - parent: the document whose collection is read, if the source is `subcollection`.
  ///   - isLate: whether the documents without ``lateField`` are read, which have no order.
  /// - Throws: ``QueryError`` if the query is invalid.
  func executed(
    in database: DatabaseID, below parent: ResourcePath?, isLate: Bool = false, _ value: (Int) -> Value?
  ) throws(QueryError) -> Executed {
    func resolved(_ value: (Int) -> Value?, limit: Int?) throws(QueryError) -> ResolvedQuery {
      var query = query(value)
      query.limit = limit
      if isLate { query.orders = [] }
      if let parent {
        query.parent = parent
        query.includesDescendants = false
      }
      return try ResolvedQuery(query, in: database, edition: .enterprise)
    }
    let checksConditions = isWhole && filters.allSatisfy { $0.isComplete(value) }
    let limit = isExact && checksConditions && !isLate ? limit : nil
    // Values of variables can add alternatives, up to more than a query can have.
    if let query = try? resolved(value, limit: limit) {
      return Executed(
        query: query, checksConditions: checksConditions, limit: limit,
        required: limit == nil && !isLate ? [] : existingFields)
    }
    return Executed(
      query: try resolved({ _ in nil }, limit: nil), checksConditions: false, limit: nil, required: [])
  }

  /// The query whose results the rules must allow: all conditions without variables, and no order.
  var provableQuery: Query {
    var query = query()
    query.orders = []
    return query
  }
}
