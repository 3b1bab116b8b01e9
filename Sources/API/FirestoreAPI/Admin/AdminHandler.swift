package import DatabaseService
import DocumentModel
package import GatewayCore
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
package final class AdminHandler: API {
  package let authenticator: Authenticator
  private let service: FirestoreService

  /// Creates a handler for the indexes of a service's databases.
  package init(_ service: FirestoreService, _ authenticator: Authenticator) {
    self.service = service
    self.authenticator = authenticator
  }

  /// The requests that the API handles.
  package static var routes: [Route<AdminHandler>] {
    let group = "/v1/projects/{project}/databases/{database}/collectionGroups/{collection}"
    let beta = "/v1beta1/projects/{project}/databases/{database}/collectionGroups/{collection}"
    return [
      Route(.get, ["\(group)/indexes", "\(beta)/indexes"], kind: .rest, access: .caller) { try $0.indexes($1, $2) },
      Route(.get, ["\(group)/fields", "\(beta)/fields"], kind: .rest, access: .caller) { try $0.fields($1, $2) },
      Route(
        .all, ["\(group)/indexes", "\(beta)/indexes", "\(group)/fields", "\(beta)/fields"], kind: .rest,
        access: .caller
      ) { _, _, _ in
        throw Status(
          .unimplemented,
          "This API cannot change indexes. Declare them in a file: hearth serve --indexes firestore.indexes.json.")
      },
    ]
  }

  private func indexes(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let (database, collection) = try Self.collection(request, call)
    let indexes = try service.listIndexes(in: database, as: call.caller)
      .filter { collection.includes($0.definition.collectionID) }
    var json = JSONWriter(.pretty)
    json.list("indexes", indexes) { $1.append($0, of: database) }
    call.responder.sendJSON(json.finish())
  }

  private func fields(_ request: borrowing HTTPRequest, _ call: RoutedCall) throws {
    let (database, collection) = try Self.collection(request, call)
    let fields = try service.listFields(in: database, as: call.caller).filter { collection.includes($0.collectionID) }
    var json = JSONWriter(.pretty)
    json.list("fields", fields) { $1.append($0, of: database) }
    call.responder.sendJSON(json.finish())
  }

  /// The collections that a request names: one, or all with `-`.
  private struct Collections {
    let id: String

    func includes(_ other: String) -> Bool { id == "-" || id.utf8.elementsEqual(other.utf8) }
  }

  private static func collection(
    _ request: borrowing HTTPRequest, _ call: RoutedCall
  ) throws -> (DatabaseID, Collections) {
    (try DocumentsPath.database(request, call), Collections(id: try call.text(2, of: request)))
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
      case .text: appendTextSearchConfig()
      }
      endObject()
    }
    endArray()
    if case .text(let language)? = fields.first?.mode { appendSearchIndexOptions(language) }
    key("state")
    string(state)
    endObject()
  }
}
