import DocumentModel

/// A checked `search` stage.
struct SearchPlan: Sendable {
  /// The text of `document_matches`, or `nil` if the query is a condition.
  var text: String?
  /// The condition on a distance, or `nil` if the query is a text.
  var condition: Int?
  var language = "en"
  var limit: Int?
  var offset = 0
  /// The number of best matches to consider, or `nil` for all.
  var depth: Int?
  /// The order, or empty for newest first.
  var terms: [SortTerm] = []
  var added: RowAssignments?
}
