import TestSupport

/// A query as an app builds it.
struct AppQuery: Sendable {
  /// The parent document of the collection, or empty for the root.
  let parent: String
  private let from: JSONNode
  private var filters: [JSONNode] = []
  private var orders: [JSONNode] = []
  private var limit: Int?
  private let database = TestDatabase(project: "demo")

  /// The documents of the collection at `path`.
  init(_ path: String) {
    let segments = path.split(separator: "/").map(String.init)
    parent = segments.dropLast().joined(separator: "/")
    from = ["collectionId": .string(segments.last ?? "")]
  }

  /// The documents of all collections called `group`.
  init(group: String) {
    parent = ""
    from = ["collectionId": .string(group), "allDescendants": true]
  }

  /// A condition: `.where("timestamp", ">=", at("2025-03-01T00:00:00Z"))`.
  func `where`(_ field: String, _ comparison: String, _ value: JSONNode) -> AppQuery {
    var query = self
    let name = Self.operators[comparison] ?? comparison
    query.filters.append([
      "fieldFilter": [
        "field": ["fieldPath": .string(field)], "op": .string(name), "value": value.typed(in: database),
      ]
    ])
    return query
  }

  func order(_ field: String, descending: Bool = false) -> AppQuery {
    var query = self
    query.orders.append([
      "field": ["fieldPath": .string(field)], "direction": descending ? "DESCENDING" : "ASCENDING",
    ])
    return query
  }

  func limit(_ count: Int) -> AppQuery {
    var query = self
    query.limit = count
    return query
  }

  private static let operators = [
    "==": "EQUAL", "!=": "NOT_EQUAL", "<": "LESS_THAN", "<=": "LESS_THAN_OR_EQUAL", ">": "GREATER_THAN",
    ">=": "GREATER_THAN_OR_EQUAL", "in": "IN", "not-in": "NOT_IN", "contains": "ARRAY_CONTAINS",
    "contains-any": "ARRAY_CONTAINS_ANY",
  ]

  /// The query in the form of the API.
  func json(in database: TestDatabase) -> JSONNode {
    var members: [JSONNode.Member] = [.init("from", [from])]
    if filters.count == 1 { members.append(.init("where", filters[0])) }
    if filters.count > 1 {
      members.append(.init("where", ["compositeFilter": ["op": "AND", "filters": .array(filters)]]))
    }
    if !orders.isEmpty { members.append(.init("orderBy", .array(orders))) }
    if let limit { members.append(.init("limit", .number(String(limit)))) }
    return .object(members)
  }
}

/// One write of a commit, as an app builds it.
enum AppWrite {
  /// Creates a document that must not exist.
  case create(String, JSONNode)
  /// Replaces or creates a document.
  case set(String, JSONNode)
  /// Changes the given top-level fields of an existing document.
  case update(String, JSONNode)
  /// Increments a number of a document that may not exist.
  case increment(String, field: String, by: Int)
  case delete(String)

  func json(in database: TestDatabase) -> JSONNode {
    func update(_ path: String, _ fields: JSONNode) -> JSONNode {
      ["name": .string(database.name(path)), "fields": fields.typedFields(in: database)]
    }
    switch self {
    case .create(let path, let fields):
      return ["update": update(path, fields), "currentDocument": ["exists": false]]
    case .set(let path, let fields):
      return ["update": update(path, fields)]
    case .update(let path, let fields):
      let mask = JSONNode.array(fields.members.map { .string("`\($0.name)`") })
      return ["update": update(path, fields), "updateMask": ["fieldPaths": mask], "currentDocument": ["exists": true]]
    case .increment(let path, let field, let amount):
      let transform: JSONNode = ["fieldPath": .string(field), "increment": ["integerValue": .string(String(amount))]]
      return ["transform": ["document": .string(database.name(path)), "fieldTransforms": [transform]]]
    case .delete(let path):
      return ["delete": .string(database.name(path))]
    }
  }
}
