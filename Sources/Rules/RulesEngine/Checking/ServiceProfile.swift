/// The variables, functions and paths that a service offers to its rules.
struct ServiceProfile: Sendable {
  /// The name after the word `service`.
  let name: String
  /// The variables other than captures, parameters and `let` variables.
  let globals: Set<String>
  /// The functions that only this service has. They look up documents.
  let functions: Set<String>
  /// The segments at the start of every request's path. `nil` matches any one segment.
  let prefix: [String?]
  /// Whether the segments after the prefix alternate between collections and documents.
  let hasCollections: Bool

  static let firestore = ServiceProfile(
    name: "cloud.firestore", globals: ["request", "resource"],
    functions: ["get", "exists", "getAfter", "existsAfter"], prefix: ["databases", nil, "documents"],
    hasCollections: true)

  static let storage = ServiceProfile(
    name: "firebase.storage", globals: ["request", "resource"], functions: ["firestore.get", "firestore.exists"],
    prefix: ["b", nil, "o"], hasCollections: false)

  static let all = [firestore, storage]

  /// Returns the profile of a service, or that of Firestore if the service is unknown.
  static func named(_ name: String) -> ServiceProfile { all.first { $0.name == name } ?? firestore }

  /// The known members of the maps that rules read, for hints about misspelled names.
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
