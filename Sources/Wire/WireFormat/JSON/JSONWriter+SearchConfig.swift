package import DocumentModel

/// The parts of an index in JSON that only text indexes have.
extension JSONWriter {
  /// Appends the member `searchConfig` of a field in a text index.
  package mutating func appendTextSearchConfig() {
    key("searchConfig")
    beginObject()
    key("textSpec")
    beginObject()
    key("indexSpecs")
    beginArray()
    beginObject()
    key("indexType")
    string("TOKENIZED")
    key("matchType")
    string("MATCH_GLOBALLY")
    endObject()
    endArray()
    endObject()
    endObject()
  }

  /// Appends the member `searchIndexOptions` of a text index.
  package mutating func appendSearchIndexOptions(_ language: TextLanguage) {
    key("searchIndexOptions")
    beginObject()
    key("textLanguage")
    string(language.code)
    endObject()
  }
}
