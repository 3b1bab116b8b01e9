package import DocumentModel
package import WireFormat

extension IndexFile {
  /// Returns the text of a configuration, indented by two spaces as deploy tools print it. ``read(_:)`` reads it
  /// back.
  package static func text(of configuration: IndexConfiguration) -> [UInt8] {
    var json = JSONWriter(.pretty)
    json.beginObject()
    json.key("indexes")
    json.beginArray()
    for index in configuration.indexes { append(index, to: &json) }
    json.endArray()
    json.key("fieldOverrides")
    json.beginArray()
    for field in configuration.fields { append(field, to: &json) }
    json.endArray()
    json.endObject()
    return json.bytes + [UInt8(ascii: "\n")]
  }

  /// Appends one element of `indexes`.
  package static func append(_ index: IndexDefinition, to json: inout JSONWriter) {
    json.beginObject()
    json.key("collectionGroup")
    json.string(index.collectionID)
    json.key("queryScope")
    json.string(name(of: index.scope))
    json.key("fields")
    json.beginArray()
    for field in index.fields {
      json.beginObject()
      json.key("fieldPath")
      json.string(field.path.text)
      append(field.mode, to: &json)
      json.endObject()
    }
    json.endArray()
    if let language = index.textLanguage { json.appendSearchIndexOptions(language) }
    json.endObject()
  }

  /// Appends one element of `fieldOverrides`.
  package static func append(_ field: FieldIndexing, to json: inout JSONWriter) {
    json.beginObject()
    json.key("collectionGroup")
    json.string(field.collectionID)
    json.key("fieldPath")
    json.string(field.path.isAllFields ? "*" : field.path.text)
    if field.expires {
      json.key("ttl")
      json.bool(true)
    }
    json.key("indexes")
    json.beginArray()
    for scope in [IndexDefinition.Scope.collection, .collectionGroup] {
      for mode in [IndexDefinition.Mode.ascending, .descending, .contains]
      where field.entries.contains(FieldIndexing.Entries(scope, mode)) {
        json.beginObject()
        append(mode, to: &json)
        json.key("queryScope")
        json.string(name(of: scope))
        json.endObject()
      }
    }
    json.endArray()
    json.endObject()
  }

  private static func append(_ mode: IndexDefinition.Mode, to json: inout JSONWriter) {
    switch mode {
    case .ascending, .descending:
      json.key("order")
      json.string(mode == .ascending ? "ASCENDING" : "DESCENDING")
    case .contains:
      json.key("arrayConfig")
      json.string("CONTAINS")
    case .vector(let dimension):
      json.key("vectorConfig")
      json.beginObject()
      json.key("dimension")
      json.number(dimension)
      json.key("flat")
      json.beginObject()
      json.endObject()
      json.endObject()
    case .text: json.appendTextSearchConfig()
    }
  }

  private static func name(of scope: IndexDefinition.Scope) -> String {
    scope == .collection ? "COLLECTION" : "COLLECTION_GROUP"
  }
}
