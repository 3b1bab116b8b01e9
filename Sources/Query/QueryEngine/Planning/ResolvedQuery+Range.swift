package import DocumentModel
package import Matching

extension ResolvedQuery {
  /// What decides the result of the query, from its first place to its last; `nil` where it has no result whatever is
  /// stored.
  ///
  /// - Parameters:
  ///   - aggregated: the fields that were aggregated, where the documents themselves are no result.
  package func range(aggregated: [FieldPath]? = nil) -> QueryRange? {
    if query.limit == 0 { return nil }
    let isCounted = query.limit != nil || query.offset > 0
    // Which documents are the nearest hangs on more of them than what is aggregated.
    let values = query.findNearest == nil ? aggregated : nil
    return QueryRange(
      QueryScope(query), matching: DocumentMatcher(query.filter, in: database), orders: orders, from: start, to: end,
      requiring: aggregated ?? [], observing: values.map { .values($0, places: isCounted) } ?? .documents)
  }
}
