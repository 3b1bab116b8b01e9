import DocumentModel

/// A checked `search` stage.
struct SearchPlan: Sendable {
  /// The text of `document_matches`, or `nil` if the query has only conditions.
  var text: String?
  /// The conditions on distances, or `nil` if the query is only a text.
  var condition: Int?
  /// The language of the request, or `nil` if the index decides.
  var language: TextLanguage?
  var limit: Int?
  var offset = 0
  /// The number of best matches to consider, or `nil` for all.
  var depth: Int?
  /// The order, or empty for newest first.
  var terms: [SortTerm] = []
  var added: RowAssignments?
}
