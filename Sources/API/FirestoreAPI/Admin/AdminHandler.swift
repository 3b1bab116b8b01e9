import GatewayCore
import DatabaseService
import DocumentModel
import Transport
import WireFormat

/// Serves the requests with which deployment tools read a database's indexes (`google.firestore.admin.v1`,
/// firestore-api.md, section 10.3).
///
/// - `GET /v1/projects/{p}/databases/{d}/collectionGroups/{c}/indexes` lists indexes; `-` means all collections.
/// - `GET /v1/projects/{p}/databases/{d}/collectionGroups/{c}/fields` lists fields whose indexing is not the
///   default.
///
/// Indexes are declared with `hearth serve --indexes`, not with this API.
final class AdminHandler: Sendable {
  private let service: FirestoreService

  init(_ service: FirestoreService) { self.service = service }

  /// Handles a request for a path after `/v1/` that does not name documents.
  ///
  /// - Throws: ``Status`` or ``ModelError`` if the request is malformed or not allowed.
  func handle(
    _ path: UnsafeRawBufferPointer, _ request: borrowing HTTPRequest, _ responder: Responder, as caller: Caller
  ) throws {
    guard let target = try DatabaseRoute(path) else { return responder.sendText(404, "Not Found\n") }
    let parts = target.rest.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
    guard parts.count == 3, parts[0] == "collectionGroups", !parts[1].isEmpty else {
      return responder.sendText(404, "Not Found\n")
    }
    let collectionID = parts[1] == "-" ? nil : parts[1]
    func isRequested(_ id: String) -> Bool { collectionID.map { $0.utf8.elementsEqual(id.utf8) } ?? true }
    var json = JSONWriter(.pretty)
    switch (request.method, parts[2]) {
    case (.get, "indexes"):
      let indexes = try service.listIndexes(in: target.database, as: caller)
        .filter { isRequested($0.definition.collectionID) }
      json.list("indexes", indexes) { $1.append($0, of: target.database) }
    case (.get, "fields"):
      let fields = try service.listFields(in: target.database, as: caller).filter { isRequested($0.collectionID) }
      json.list("fields", fields) { $1.append($0, of: target.database) }
    case (_, "indexes"), (_, "fields"):
      throw Status(
        .unimplemented,
        "This API cannot change indexes. Declare them in a file: hearth serve --indexes firestore.indexes.json.")
    default: return responder.sendText(404, "Not Found\n")
    }
    responder.sendJSON(json.finish())
  }
}

extension JSONWriter {
  /// Appends an object with one list member, or `{}` for an empty list, as Google's service does.
  fileprivate mutating func list<T>(_ name: StaticString, _ items: [T], _ append: (T, inout JSONWriter) -> Void) {
    beginObject()
    if !items.isEmpty {
      key(name)
      beginArray()
      for item in items { append(item, &self) }
      endArray()
    }
    endObject()
  }

  /// Appends an Index.
  fileprivate mutating func append(_ index: DeclaredIndex, of database: DatabaseID) {
    let definition = index.definition
    let state =
      switch index.state {
      case .ready: "READY"
      case .building: "CREATING"
      case .failed, .removing: "NEEDS_REPAIR"
      }
    append(
      name: "\(database.name)/collectionGroups/\(definition.collectionID)/indexes/\(index.number)", definition.scope,
      index.completeFields, state: state)
  }

  /// Appends a Field.
  fileprivate mutating func append(_ field: FieldIndexing, of database: DatabaseID) {
    let path = field.path.isAllFields ? "*" : field.path.text
    beginObject()
    key("name")
    string("\(database.name)/collectionGroups/\(field.collectionID)/fields/\(path)")
    key("indexConfig")
    beginObject()
    if !field.entries.isEmpty {
      key("indexes")
      beginArray()
      for scope in [IndexDefinition.Scope.collection, .collectionGroup] {
        for mode in [IndexDefinition.Mode.ascending, .descending, .contains]
        where field.entries.contains(FieldIndexing.Entries(scope, mode)) {
          append(name: nil, scope, [IndexDefinition.Field(field.path, mode)], state: "READY")
        }
      }
      endArray()
    }
    endObject()
    if field.expires {
      key("ttlConfig")
      beginObject()
      key("state")
      string("ACTIVE")
      endObject()
    }
    endObject()
  }

  private mutating func append(
    name: String?, _ scope: IndexDefinition.Scope, _ fields: [IndexDefinition.Field], state: String
  ) {
    beginObject()
    if let name {
      key("name")
      string(name)
    }
    key("queryScope")
    string(scope == .collection ? "COLLECTION" : "COLLECTION_GROUP")
    key("fields")
    beginArray()
    for field in fields {
      beginObject()
      key("fieldPath")
      string(field.path.isAllFields ? "*" : field.path.text)
      switch field.mode {
      case .ascending, .descending:
        key("order")
        string(field.mode == .ascending ? "ASCENDING" : "DESCENDING")
      case .contains:
        key("arrayConfig")
        string("CONTAINS")
      case .vector(let dimension):
        key("vectorConfig")
        beginObject()
        key("dimension")
        number(dimension)
        key("flat")
        beginObject()
        endObject()
        endObject()
      }
      endObject()
    }
    endArray()
    key("state")
    string(state)
    endObject()
  }
}
