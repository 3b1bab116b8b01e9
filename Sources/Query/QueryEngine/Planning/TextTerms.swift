package import DocumentStore

/// Terms that every wanted document contains, and a text index that finds documents by term.
package struct TextTerms: Sendable {
  /// A complete text index of the collections of the query.
  let index: StoredIndex
  /// The codes of the terms, without duplicates.
  let codes: [[UInt8]]
  /// The terms in text form, such as `taco and burrito`.
  let text: String

  /// Creates the condition. `terms` are in UTF-8, as `TextAnalyzer` returns them; there must be at least one.
  package init(_ terms: [[UInt8]], in index: StoredIndex) {
    self.index = index
    codes = terms.map { term in
      var code: [UInt8] = []
      term.withUnsafeBytes { StoredIndex.append(term: $0, to: &code) }
      return code
    }
    text = terms.map { String(decoding: $0, as: UTF8.self) }.joined(separator: " and ")
  }
}
