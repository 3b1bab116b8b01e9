package import DocumentModel
package import QueryEngine

/// The query that finds the first rows of a pipeline: its source, and what indexes can check and order of the stages
/// that follow.
struct SourcePlan: Sendable {
  let parent: ResourcePath
  let collectionID: String?
  let includesDescendants: Bool
  /// The usable conditions of the `where` stages that see the documents as they are stored.
  private(set) var filters: [PrefixCondition.Filter] = []
  /// The order of the first `sort` stage, if every document that passes has its fields.
  private(set) var orders: [Order] = []
  /// The index of that stage, which then does nothing.
  private(set) var orderStage: Int?

  /// Creates the plan of a pipeline, or `nil` if its first stage does not read collections.
  init?(_ source: PipelineSource, _ stages: [PipelineStage]) {
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
    var required: Set<FieldPath> = []
    for (index, stage) in stages.enumerated().dropFirst() {
      switch stage.operation {
      case .filter(_, let condition):
        required.formUnion(condition.requiredFields)
        // After a sort, a condition still applies to stored documents, and order and conditions do not interfere.
        if let filter = condition.filter, filters.count < PipelineLimits.plannedStagesMax { filters.append(filter) }
      case .bind where orderStage == nil: continue
      case .sort(let terms):
        // Of consecutive sorts only the last one counts, so a second one ends the prefix.
        guard orderStage == nil, let orders = Self.orders(terms, required) else { return }
        self.orders = orders
        orderStage = index
      default: return
      }
    }
  }

  private static func orders(_ terms: [SortTerm], _ required: Set<FieldPath>) -> [Order]? {
    var orders: [Order] = []
    for term in terms {
      guard let path = term.field, path.isDocumentName || required.contains(path),
        !orders.contains(where: { $0.path == path })
      else { return nil }
      orders.append(Order(path, isDescending: term.isDescending))
      // The name decides every tie.
      if path.isDocumentName { return orders }
    }
    return orders.count <= Limits.orderFieldsMax ? orders : nil
  }

  /// Returns the query, with the values of the variables of the enclosing row.
  func query(below parent: ResourcePath? = nil, _ value: (Int) -> Value? = { _ in nil }) -> Query {
    var query = Query(
      parent: parent ?? self.parent, collectionID: collectionID, includesDescendants: includesDescendants)
    let parts = filters.compactMap { $0.filter(value) }
    query.filter = parts.isEmpty ? nil : parts.count == 1 ? parts[0] : .and(parts)
    query.orders = orders
    return query
  }

  /// The query whose results the rules must allow: all conditions without variables, and no order.
  var provableQuery: Query {
    var query = query()
    query.orders = []
    return query
  }
}

extension PipelinePlan {
  /// Returns the query that is executed: the query with all filters if it is a legal one, otherwise with fewer, because
  /// queries have limits that pipelines do not have.
  /// - Throws: ``QueryError`` if the query is invalid without a filter too.
  package static func resolved(_ query: Query, in database: DatabaseID) throws(QueryError) -> ResolvedQuery {
    do throws(QueryError) { return try ResolvedQuery(query, in: database, edition: .enterprise) } catch {
      guard query.filter != nil else { throw error }
    }
    var plain = query
    if case .and(let parts)? = query.filter {
      // The first legal part alone is better than none.
      for part in parts {
        plain.filter = part
        if let resolved = try? ResolvedQuery(plain, in: database, edition: .enterprise) { return resolved }
      }
    }
    plain.filter = nil
    return try ResolvedQuery(plain, in: database, edition: .enterprise)
  }
}
