import DocumentModel
import WireFormat

/// The declarations of text indexes.
extension IndexFileReader {
  /// Checks the `searchConfig` of a field: one way to index its text exists.
  func checkSearchConfig(_ tree: JSONTree, _ place: String) throws(FixtureTreeError) {
    var hasText = false
    for member in try members(tree, place) {
      let inner = "\(place).\(member.name)"
      switch member.name {
      case "textSpec":
        hasText = true
        try checkTextSpec(member.value, inner)
      case "geoSpec":
        throw failure(member, place, "is not supported: a search by distance needs no index; remove the key")
      default: throw failure(member, place, "unknown key \"\(member.name)\"; a field has \"textSpec\"")
      }
    }
    guard hasText else {
      throw failure(
        tree, place,
        #"lacks "textSpec", such as {"indexSpecs": [{"indexType": "TOKENIZED", "matchType": "MATCH_GLOBALLY"}]}"#)
    }
  }

  private func checkTextSpec(_ tree: JSONTree, _ place: String) throws(FixtureTreeError) {
    var specs: [JSONTree] = []
    for member in try members(tree, place) {
      guard member.name == "indexSpecs" else {
        throw failure(member, place, "unknown key \"\(member.name)\"; a text has \"indexSpecs\"")
      }
      specs = try elements(member.value, "\(place).indexSpecs")
    }
    guard specs.count == 1 else {
      throw failure(
        tree, place, #"needs one element in "indexSpecs": {"indexType": "TOKENIZED", "matchType": "MATCH_GLOBALLY"}"#)
    }
    for member in try members(specs[0], "\(place).indexSpecs[0]") {
      let inner = "\(place).indexSpecs[0].\(member.name)"
      switch member.name {
      case "indexType": try expect(member.value, inner, ["TOKENIZED"], why: "the words of a text are indexed")
      case "matchType": try expect(member.value, inner, ["MATCH_GLOBALLY"], why: "a search reads all fields together")
      default:
        throw failure(
          member, "\(place).indexSpecs[0]",
          "unknown key \"\(member.name)\"; a specification has \"indexType\" and \"matchType\"")
      }
    }
  }

  /// Returns the language in `searchIndexOptions`.
  func textLanguage(_ tree: JSONTree, _ place: String) throws(FixtureTreeError) -> TextLanguage {
    var language = TextLanguage.english
    for member in try members(tree, place) {
      let inner = "\(place).\(member.name)"
      switch member.name {
      case "textLanguage":
        guard case .string(let tag) = member.value.kind, let known = TextLanguage(tag: tag) else {
          throw failure(member.value, inner, "must be the code of a known language, such as \"en\" or \"de\"")
        }
        language = known
      case "textLanguageOverrideFieldPath":
        throw failure(member, place, "a field with the language of a document is not supported; remove the key")
      default: throw failure(member, place, "unknown key \"\(member.name)\"; there is \"textLanguage\"")
      }
    }
    return language
  }
}

extension IndexDefinition {
  /// Whether two indexes contain the same collections.
  func hasSameCollections(as other: IndexDefinition) -> Bool {
    scope == other.scope && collectionID.utf8.elementsEqual(other.collectionID.utf8)
  }
}

extension IndexDefinition.Mode {
  var isText: Bool { if case .text = self { true } else { false } }
}
