/// The members of `request`, `request.auth`, `request.query` and of documents, numbered so that the compiler can
/// resolve them.
enum RequestProperty: String, CaseIterable {
  case auth, method, path, time, resource, query, headers, inTransaction, fields, writeFields, transforms, readFields
  case uid, token
  case limit, offset, orderBy, kind, parent, ancestor, allDescendants, distinct, groupBy, selectOnlyKeys
  case data, id, name = "__name__"

  /// The place among all.
  var number: Int { Self.allCases.firstIndex(of: self) ?? 0 }

  /// All names as bytes, by number.
  static let byNumber: [RequestProperty] = allCases
}
