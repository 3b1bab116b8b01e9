import DocumentModel
import DocumentStore
import TextAnalysis

/// The strings that a `search` stage reads, their language, and the index that finds candidates.
///
/// If the collection has a text index, its fields are read, whether or not the index can be used. So a search has the
/// same result while the index is built. Otherwise all strings are read.
struct SearchScope {
  let language: TextLanguage
  let fields: TextFields
  /// A complete index of these fields in this language, or `nil` if every document must be read.
  let index: StoredIndex?

  /// Chooses for the pipeline whose first stage names the collections. `language` is that of the request, if any.
  init(_ language: TextLanguage?, of body: PipelineBody, _ indexes: IndexCatalog) {
    var declared: [StoredIndex] = []
    var scope = IndexDefinition.Scope.collection
    if case .source(.query(_, let collectionID?, let includesDescendants))? = body.stages.first?.operation {
      declared = indexes.textIndexes(for: collectionID)
      scope = includesDescendants ? .collectionGroup : .collection
    }
    // An index for another language, or for the other scope, still says which fields count.
    func rank(_ index: StoredIndex) -> Int {
      (index.definition.textLanguage == language ? 2 : 0) + (index.definition.scope == scope ? 1 : 0)
    }
    let best = declared.reduce(nil as StoredIndex?) { best, index in
      best.map { rank($0) >= rank(index) } ?? false ? best : index
    }
    self.language = language ?? best?.definition.textLanguage ?? .english
    fields = TextFields(best?.definition.fields.map(\.path))
    let isRight = best?.definition.textLanguage == self.language && best?.definition.scope == scope
    index = isRight && best?.isUsable == true ? best : nil
  }
}
