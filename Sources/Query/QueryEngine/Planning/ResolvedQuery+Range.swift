package import DocumentModel
package import Matching

extension ResolvedQuery {
  /// The range that determines the query's results, from the position of the first result to that of the last.
  /// Returns `nil` if the query has no results regardless of the stored documents.
  ///
  /// - Parameters:
  ///   - aggregated: the aggregated fields, if the results are aggregations and not documents.
  package func range(aggregated: [FieldPath]? = nil) -> QueryRange? {
    if query.limit == 0 { return nil }
    let isCounted = query.limit != nil || query.offset > 0
    // The nearest documents depend on more fields than the aggregated ones.
    let values = query.findNearest == nil ? aggregated : nil
    return QueryRange(
      QueryScope(query), matching: DocumentMatcher(query.filter, in: database), orders: orders, from: start, to: end,
      requiring: aggregated ?? [],
      observing: values.map { .values($0, comparesPositions: isCounted) } ?? .documents)
  }
}
