import DocumentModel
import FixtureTree
import QueryEngine
import WireFormat

/// The errors for queries that lack an index in production (firestore-api.md, section 10.2).
///
/// The documented text comes first and unchanged, because clients match it. The entry for the index file follows
/// after an empty line.
struct MissingIndexes {
  let database: DatabaseID
  let configuration: IndexConfiguration

  /// Returns the error of a query whose indexes are not declared. `missing` is not empty.
  func status(_ missing: [RequiredIndex]) -> Status {
    let text = missing.first.map { refusal($0) } ?? ""
    var indexes = ""
    var fields = ""
    for index in missing {
      var json = JSONWriter(.compact)
      switch index {
      case .composite(let definition):
        IndexFile.append(definition, to: &json)
        indexes += "\n" + String(decoding: json.bytes, as: UTF8.self)
      case .field(let wanted):
        IndexFile.append(configuration.declaration(of: wanted), to: &json)
        fields += "\n" + String(decoding: json.bytes, as: UTF8.self)
      }
    }
    var hint = ""
    if !indexes.isEmpty { hint += "\n\nAdd to \"indexes\" in firestore.indexes.json:\(indexes)" }
    if !fields.isEmpty { hint += "\n\nAdd to \"fieldOverrides\" in firestore.indexes.json:\(fields)" }
    return Status(.failedPrecondition, text + hint)
  }

  /// Returns the error of a query whose index is declared but not built yet.
  func statusWhileBuilding(_ index: RequiredIndex) -> Status {
    let text =
      switch index {
      case .composite: "The query requires an index. That index is currently building and cannot be used yet."
      case .field(let field): "The query requires \(Self.article(field)). That index is not ready yet."
      }
    return Status(.failedPrecondition, "\(text) See its status here: \(link(index))")
  }

  private func refusal(_ index: RequiredIndex) -> String {
    switch index {
    case .composite(let definition):
      if case .vector? = definition.fields.last?.mode { return vectorText(definition) }
      return "The query requires an index. You can create it here: \(link(index))"
    case .field(let field):
      return "The query requires \(Self.article(field)). You can create it here: \(link(index))"
    }
  }

  /// The description of an index, such as `a COLLECTION_GROUP_ASC index for collection items and field nx`.
  private static func article(_ field: FieldIndexing) -> String {
    let kind =
      switch field.entries.first?.mode {
      case .descending?: "DESC"
      case .contains?: "CONTAINS"
      default: "ASC"
      }
    let scope = field.entries.first?.scope == .collectionGroup ? "COLLECTION_GROUP" : "COLLECTION"
    return "a \(scope)_\(kind) index for collection \(field.collectionID) and field \(field.path.text)"
  }

  private func vectorText(_ index: IndexDefinition) -> String {
    var command = "gcloud firestore indexes composite create --project=\(database.project)"
    if database.database != DatabaseID.defaultDatabase { command += " --database=\(database.database)" }
    command += " --collection-group=\(index.collectionID)"
    command += " --query-scope=\(index.scope == .collection ? "COLLECTION" : "COLLECTION_GROUP")"
    for field in index.fields {
      let config =
        switch field.mode {
        case .ascending: "order=ASCENDING"
        case .descending: "order=DESCENDING"
        case .contains: "array-config=CONTAINS"
        case .vector(let dimension): "vector-config='{\"dimension\":\"\(dimension)\",\"flat\": \"{}\"}'"
        // No query requires a text index.
        case .text: ""
        }
      command += " --field-config=\(config),field-path=\(field.path.text)"
    }
    return "Missing vector index configuration. Please create the required index with the following gcloud command: "
      + command
  }

  // MARK: The link to the console

  private func link(_ index: RequiredIndex) -> String {
    var link = "https://console.firebase.google.com/v1/r/project/\(database.project)/firestore/"
    if database.database != DatabaseID.defaultDatabase { link += "databases/\(database.database)/" }
    switch index {
    case .composite(let definition):
      return link + "indexes?create_composite="
        + String(decoding: Base64URL.encode(message(of: definition)), as: UTF8.self)
    case .field(let field):
      return link + "indexes?create_exemption=" + String(decoding: Base64URL.encode(message(of: field)), as: UTF8.self)
    }
  }

  /// Returns an `Index` message of google.firestore.admin.v1 without an ID.
  private func message(of index: IndexDefinition) -> [UInt8] {
    var out: [UInt8] = []
    ProtobufWriter.string(1, "\(database.name)/collectionGroups/\(index.collectionID)/indexes/_", to: &out)
    append(index.scope, index.completeFields, to: &out)
    return out
  }

  private func message(of field: FieldIndexing) -> [UInt8] {
    var out: [UInt8] = []
    let path = field.path.text
    ProtobufWriter.string(1, "\(database.name)/collectionGroups/\(field.collectionID)/fields/\(path)", to: &out)
    if let entry = field.entries.first {
      append(entry.scope, [IndexDefinition.Field(field.path, entry.mode)], to: &out)
    }
    return out
  }

  private func append(_ scope: IndexDefinition.Scope, _ fields: [IndexDefinition.Field], to out: inout [UInt8]) {
    ProtobufWriter.int64(2, scope == .collection ? 1 : 2, to: &out)
    for field in fields {
      ProtobufWriter.message(3, to: &out) { out in
        ProtobufWriter.string(1, field.path.text, to: &out)
        switch field.mode {
        case .ascending: ProtobufWriter.int64(2, 1, to: &out)
        case .descending: ProtobufWriter.int64(2, 2, to: &out)
        case .contains: ProtobufWriter.int64(3, 1, to: &out)
        case .vector(let dimension):
          ProtobufWriter.message(4, to: &out) { out in
            ProtobufWriter.int64(1, Int64(dimension), to: &out)
            ProtobufWriter.message(2, to: &out) { _ in }
          }
        case .text: break
        }
      }
    }
  }
}
