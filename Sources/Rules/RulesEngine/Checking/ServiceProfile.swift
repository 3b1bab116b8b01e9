/// What one service offers to its rules, as data.
struct ServiceProfile: Sendable {
  /// The name behind `service`.
  let name: String
  /// The variables besides captures and parameters.
  let globals: Set<String>
  /// The functions that look documents up, and others that only this service has.
  let functions: Set<String>
  /// The segments that every request's path begins with; `nil` stands for any one segment.
  let prefix: [String?]
  /// Whether what lies below the prefix alternates between collections and documents.
  let hasCollections: Bool

  static let firestore = ServiceProfile(
    name: "cloud.firestore", globals: ["request", "resource"],
    functions: ["get", "exists", "getAfter", "existsAfter"], prefix: ["databases", nil, "documents"],
    hasCollections: true)

  static let storage = ServiceProfile(
    name: "firebase.storage", globals: ["request", "resource"], functions: ["firestore.get", "firestore.exists"],
    prefix: ["b", nil, "o"], hasCollections: false)

  static let all = [firestore, storage]

  /// The profile of a service; that of documents for an unknown one.
  static func named(_ name: String) -> ServiceProfile { all.first { $0.name == name } ?? firestore }

  /// What is known of maps that rules read, for hints about misspelt names.
  static let members: [String: Set<String>] = [
    "request": [
      "auth", "method", "path", "time", "resource", "query", "headers", "inTransaction", "fields", "writeFields",
      "transforms", "readFields", "autoId", "params",
    ],
    "resource": ["data", "id", "__name__"],
    "request.auth": ["uid", "token"],
    "request.resource": ["data", "id", "__name__"],
    "request.query": [
      "limit", "offset", "orderBy", "kind", "parent", "ancestor", "allDescendants", "distinct", "groupBy",
      "selectOnlyKeys",
    ],
  ]
}
