import DocumentModel
import RulesEngine

/// The names of recorded cases: `update rooms/r1 as ann (admin): name, owner`.
enum CaseName {
  /// The greatest number of bytes of a name. Longer names are cut.
  private static let bytesMax = 160

  /// Returns a name that tells the method, the path, the caller with the names of its own claims, and the fields of the
  /// request. Several cases can have the same name.
  static func of(_ test: RuleTest, _ claims: [String]) -> String {
    var name = request(test.operation)
    if let auth = test.auth {
      name += " as " + (auth.uid ?? "a caller without a user ID")
      if !claims.isEmpty { name += " (\(claims.joined(separator: ", ")))" }
    } else {
      name += " unauthenticated"
    }
    let fields = fields(test.operation)
    if !fields.isEmpty { name += ": " + fields.joined(separator: ", ") }
    guard name.utf8.count > bytesMax else { return name }
    return String(decoding: name.utf8.prefix(bytesMax), as: UTF8.self) + "…"
  }

  private static func request(_ operation: RuleTest.Operation) -> String {
    switch operation {
    case .get(let key): return "get \(key.path.text)"
    case .list(let query):
      let id = query.collectionID ?? ""
      return query.includesDescendants ? "list all \(id)" : "list \(query.parent.appending(id).text)"
    case .pipeline(let pipeline): return "pipeline \(pipeline.text)"
    case .commit(let writes):
      let texts = writes.map { "\($0.kind.rawValue) \($0.key.path.text)" }
      return texts.joined(separator: " and ")
    case .hosted(let request, _): return "\(request.method.rawValue) \(request.path.text)"
    case .file(let request): return "\(request.methods.map(\.rawValue).joined(separator: " and ")) \(request.path)"
    }
  }

  /// Returns the fields that distinguish requests with the same method and path.
  private static func fields(_ operation: RuleTest.Operation) -> [String] {
    switch operation {
    case .get, .hosted, .file, .pipeline: return []
    case .list(let query):
      var fields: [String] = []
      append(query.filter, to: &fields)
      if let limit = query.limit { fields.append("limit \(limit)") }
      return fields
    case .commit(let writes):
      guard writes.count == 1, let write = writes.first else { return [] }
      let paths = write.mask?.map(\.text) ?? write.data.entries.map(\.key)
      return paths + write.transforms.map(\.path.text).filter { !paths.contains($0) }
    }
  }

  private static func append(_ filter: QueryFilter?, to fields: inout [String]) {
    switch filter {
    case .field(let path, let operation, _)?: fields.append("\(path.text) \(operation.symbol)")
    case .unary(let path, _)?: fields.append(path.text)
    case .and(let filters)?, .or(let filters)?: for filter in filters { append(filter, to: &fields) }
    case nil: break
    }
  }
}
