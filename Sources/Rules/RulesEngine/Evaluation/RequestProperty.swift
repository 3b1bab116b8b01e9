/// The members of `request`, `request.auth`, `request.query` and documents. The compiler resolves their names to
/// numbers.
enum RequestProperty: String, CaseIterable {
  case auth, method, path, time, resource, query, headers, inTransaction, fields, writeFields, transforms, readFields
  case uid, token
  case limit, offset, orderBy, kind, parent, ancestor, allDescendants, distinct, groupBy, selectOnlyKeys
  case data, id, name = "__name__"

  /// The index in ``byNumber``.
  var number: Int { Self.allCases.firstIndex(of: self) ?? 0 }

  /// All properties, by number.
  static let byNumber: [RequestProperty] = allCases
}
