package import DocumentModel

/// An index that production Firestore requires before it answers a query (firestore-api.md, section 10).
package enum RequiredIndex: Hashable, Sendable {
  /// An index of several fields, of a vector, or of names in descending order: an element of `indexes` in an index
  /// file.
  case composite(IndexDefinition)
  /// A single-field index: an element of `fieldOverrides`. ``FieldIndexing/entries`` contains only the required
  /// kind.
  case field(FieldIndexing)
}

extension RequiredIndex: CustomStringConvertible {
  /// A stable text form: `collection c(a ASC, t CONTAINS, __name__ ASC)`, `group c.f ASC`.
  package var description: String {
    switch self {
    case .composite(let index):
      let fields = index.completeFields.map { "\($0.path.text) \($0.mode.text)" }.joined(separator: ", ")
      return "\(index.scope.text) \(index.collectionID)(\(fields))"
    case .field(let field):
      let kinds = field.entries.map { "\($0.scope.text) \(field.collectionID).\(field.path.text) \($0.mode.text)" }
      return kinds.sorted().joined(separator: ", ")
    }
  }
}

extension IndexDefinition {
  /// All fields of the index, with `__name__` added at the end, or before the vector, if the definition omits it.
  package var completeFields: [Field] {
    var all = fields
    var vector: Field?
    if let last = all.last, case .vector = last.mode { vector = all.popLast() }
    if all.last?.path.isDocumentName != true {
      let direction = all.last { $0.mode == .ascending || $0.mode == .descending }?.mode ?? .ascending
      all.append(Field(FieldPath(field: "__name__"), direction))
    }
    if let vector { all.append(vector) }
    return all
  }
}

extension IndexDefinition.Mode {
  fileprivate var text: String {
    switch self {
    case .ascending: "ASC"
    case .descending: "DESC"
    case .contains: "CONTAINS"
    case .vector(let dimension): "VECTOR<\(dimension)>"
    case .text: "TEXT"
    }
  }
}

extension IndexDefinition.Scope {
  fileprivate var text: String { self == .collection ? "collection" : "group" }
}
