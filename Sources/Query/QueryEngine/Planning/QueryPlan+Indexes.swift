import DocumentModel
import DocumentStore

extension QueryPlan {
  /// Returns the indexes that the plan reads, under the names that production uses. There is at least one, and no
  /// duplicates.
  ///
  /// A scan of names that keeps only documents with certain fields is reported as a scan of an index on these
  /// fields. A vector search is reported as a scan of the vector index that production would require: the
  /// equalities, the name and the vector.
  func indexesUsed(
    reading required: [FieldPath], search: (FindNearest, ResolvedQuery)?
  ) -> [ExplainMetrics.IndexUse] {
    if let (search, query) = search {
      let parts = query.equalityFields.map { "\($0.text) ASC" } + ["__name__ ASC"]
      return [use(parts + ["\(search.field.text) VECTOR<\(search.vector.count)>"], query.query.includesDescendants)]
    }
    if case .none = scope {
      return [use(orders.map { "\($0.path.text) \($0.isDescending ? "DESC" : "ASC")" }, isGroup)]
    }
    switch access {
    case .names: return [names(required, isGroup: isGroup)]
    case .values(let range): return [use(range.field, isGroup)]
    case .ordered(let scans):
      var uses: [ExplainMetrics.IndexUse] = []
      for scan in scans.alternatives.flatMap(\.scans) {
        let use = use(scan.index.definition, isGroup)
        if !uses.contains(use) { uses.append(use) }
      }
      return uses
    case .points(let alternatives):
      var uses: [ExplainMetrics.IndexUse] = []
      for use in alternatives.joined().map({ self.use($0.field, isGroup) }) where !uses.contains(use) {
        uses.append(use)
      }
      return uses
    }
  }

  /// Reports the use of a declared index, in the direction in which it is read.
  private func use(_ index: IndexDefinition, _ isGroup: Bool) -> ExplainMetrics.IndexUse {
    let parts = index.fields.map { field in
      switch field.mode {
      case .ascending, .descending: "\(field.path.text) \((field.mode == .descending) == isDescending ? "ASC" : "DESC")"
      case .contains: "\(field.path.text) CONTAINS"
      case .vector(let dimension): "\(field.path.text) VECTOR<\(dimension)>"
      case .text: "\(field.path.text) TEXT"
      }
    }
    return use(parts + ["__name__ \(isDescending ? "DESC" : "ASC")"], isGroup)
  }

  private func names(_ fields: [FieldPath], isGroup: Bool) -> ExplainMetrics.IndexUse {
    let direction = isDescending ? "DESC" : "ASC"
    return use(fields.map { "\($0.text) ASC" } + ["__name__ \(direction)"], isGroup)
  }

  private func use(_ field: EntryField, _ isGroup: Bool) -> ExplainMetrics.IndexUse {
    let direction = isDescending ? "DESC" : "ASC"
    let mode = field.table == .containmentEntries ? "CONTAINS" : direction
    return use(["\(field.path.text) \(mode)", "__name__ \(direction)"], isGroup)
  }

  private func use(_ parts: [String], _ isGroup: Bool) -> ExplainMetrics.IndexUse {
    ExplainMetrics.IndexUse(
      scope: isGroup ? "Collection group" : "Collection", properties: "(\(parts.joined(separator: ", ")))")
  }
}

extension ResolvedQuery {
  /// The fields that every alternative compares for equality, sorted, without duplicates.
  var equalityFields: [FieldPath] {
    var common: Set<FieldPath>?
    for conditions in alternatives {
      var fields: Set<FieldPath> = []
      for condition in conditions {
        switch condition {
        case .field(let path, .equal, _), .field(let path, .arrayContains, _): fields.insert(path)
        case .unary(let path, .isNull), .unary(let path, .isNaN): fields.insert(path)
        default: break
        }
      }
      common = common.map { $0.intersection(fields) } ?? fields
    }
    return (common ?? []).filter { !$0.isDocumentName }.sorted()
  }
}
