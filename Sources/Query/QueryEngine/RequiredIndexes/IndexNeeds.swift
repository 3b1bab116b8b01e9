package import DocumentModel
import DocumentStore

/// The indexes that production Firestore requires for a query: one need for each alternative of the query's filter.
///
/// Needs contain no values, so queries of one shape have equal needs. The rules are those of production
/// (firestore-api.md, section 10): equality filters are answered by merging single-field indexes, or composite indexes
/// that end in the same fields in the same directions. All ordered and compared fields are at the end of an index, in
/// exactly the order and directions of the query. An index is not read backwards.
package struct IndexNeeds: Sendable {
  private let collectionID: String
  private let scope: IndexDefinition.Scope
  private let needs: [Need]

  /// The need of one alternative of the filter.
  private struct Need: Equatable, Sendable {
    /// Fields that must equal a value, sorted, each once.
    var equalities: [FieldPath] = []
    /// The field whose array must contain a value.
    var containing: FieldPath?
    /// The order after the equalities, ending in `__name__`.
    var order: [IndexDefinition.Field] = []
    /// The vector field of a search, with its dimension.
    var vector: IndexDefinition.Field?
  }

  /// Derives the needs of a query, including the fields that are aggregated over its results.
  package init(_ query: ResolvedQuery, aggregated: [FieldPath] = []) {
    collectionID = query.query.collectionID ?? ""
    scope = query.query.includesDescendants ? .collectionGroup : .collection
    guard query.query.collectionID != nil else {
      // Queries over collections of any ID can only select by name, which needs no index.
      needs = []
      return
    }
    var all: [Need] = []
    for conditions in query.alternatives {
      let need = Self.need(conditions, query, aggregated)
      if !all.contains(need) { all.append(need) }
    }
    needs = all
  }

  private static func need(
    _ conditions: [ResolvedQuery.Condition], _ query: ResolvedQuery, _ aggregated: [FieldPath]
  ) -> Need {
    var need = Need()
    for condition in conditions {
      switch condition {
      case .field(let path, .equal, _), .unary(let path, .isNull), .unary(let path, .isNaN):
        if !path.isDocumentName, !need.equalities.contains(path) { need.equalities.append(path) }
      case .field(let path, .arrayContains, _): need.containing = path
      default: break  // Comparisons are part of the order.
      }
    }
    need.equalities.sort()
    // A field that equals a constant does not affect the order.
    var orders = query.orders.filter { !need.equalities.contains($0.path) }
    let isDescending = query.orders.last?.isDescending ?? false
    let extra = Set(aggregated).sorted().filter { path in
      !need.equalities.contains(path) && !orders.contains { $0.path == path }
    }
    orders.insert(contentsOf: extra.map { Order($0, isDescending: isDescending) }, at: max(0, orders.count - 1))
    need.order = orders.map { IndexDefinition.Field($0.path, $0.isDescending ? .descending : .ascending) }
    // An index cannot contain a field twice, and the order already contains this one.
    if let path = need.containing, orders.contains(where: { $0.path == path }) { need.containing = nil }
    if let search = query.query.findNearest {
      need.vector = IndexDefinition.Field(search.field, .vector(dimension: search.vector.count))
      need.order.removeLast()
    }
    return need
  }

  /// Whether the automatic single-field entries are enough for the query.
  package var isAutomatic: Bool { missing(in: IndexConfiguration()).isEmpty }

  /// The indexes that a configuration lacks, without duplicates, in the order of the filter's alternatives.
  ///
  /// Cost: one pass over the declared indexes for each alternative.
  package func missing(in configuration: IndexConfiguration) -> [RequiredIndex] {
    var missing: [RequiredIndex] = []
    for need in needs {
      for index in self.missing(need, configuration) where !missing.contains(index) { missing.append(index) }
    }
    return missing
  }

  // MARK: One alternative

  private func missing(_ need: Need, _ configuration: IndexConfiguration) -> [RequiredIndex] {
    if need.vector != nil {
      return usableIndexes(for: need, in: configuration).isEmpty ? [.composite(suggestedIndex(for: need))] : []
    }
    // A query with only an order needs an index, although it has no equality or array filter to cover.
    guard !need.equalities.isEmpty || need.containing != nil else {
      if isInNameOrder(need) { return [] }
      if !usableIndexes(for: need, in: configuration).isEmpty { return [] }
      guard let field = singleFieldOrder(need) else { return [.composite(suggestedIndex(for: need))] }
      return isIndexed(field.path, field.mode, configuration) ? [] : [singleFieldIndex(field.path, field.mode)]
    }
    var uncoveredFields = uncovered(need, usableIndexes(for: need, in: configuration))
    if uncoveredFields.isEmpty { return [] }
    guard need.order.count == 1 else { return suggestedIndexes(for: need, in: configuration) }
    // Ordered by name only: single-field entries are merged. Array entries are in ascending name order only.
    if need.order[0].mode == .descending, uncoveredFields.contains(where: { $0.mode == .contains }) {
      return suggestedIndexes(for: need, in: configuration)
    }
    uncoveredFields = uncoveredFields.filter { !isIndexed($0.path, $0.mode, configuration) }
    return uncoveredFields.map { singleFieldIndex($0.path, $0.mode) }
  }

  /// Whether the order is ascending by name only. Call it for a need without filters. Documents are stored in that
  /// order.
  private func isInNameOrder(_ need: Need) -> Bool { need.order.count == 1 && need.order[0].mode == .ascending }

  /// The field of the order if the entries of that single field give the order, or `nil`.
  private func singleFieldOrder(_ need: Need) -> IndexDefinition.Field? {
    guard need.order.count == 2, need.order[0].mode == need.order[1].mode else { return nil }
    return need.order[0]
  }

  /// The fields before the order, in the modes that single-field entries would need.
  private func filterFields(_ need: Need) -> [IndexDefinition.Field] {
    let direction = need.order.last?.mode ?? .ascending
    return (need.containing.map { [IndexDefinition.Field($0, .contains)] } ?? [])
      + need.equalities.map { IndexDefinition.Field($0, direction) }
  }

  private func uncovered(_ need: Need, _ indexes: [IndexDefinition]) -> [IndexDefinition.Field] {
    filterFields(need).filter { filterField in
      !indexes.contains { index in
        Self.prefixFields(of: index, before: need).contains { field in
          field.path == filterField.path && (field.mode == .contains) == (filterField.mode == .contains)
        }
      }
    }
  }

  private func isIndexed(
    _ path: FieldPath, _ mode: IndexDefinition.Mode, _ configuration: IndexConfiguration
  ) -> Bool {
    configuration.entries(of: path, in: collectionID).contains(FieldIndexing.Entries(scope, mode))
  }

  private func singleFieldIndex(_ path: FieldPath, _ mode: IndexDefinition.Mode) -> RequiredIndex {
    .field(FieldIndexing(collectionID: collectionID, path: path, entries: [FieldIndexing.Entries(scope, mode)]))
  }

  // MARK: Indexes of several fields

  /// The declared indexes that end in the same fields as a need and begin only with fields to which the need assigns
  /// a value.
  private func usableIndexes(for need: Need, in configuration: IndexConfiguration) -> [IndexDefinition] {
    configuration.indexes.filter { index in
      guard index.scope == scope, index.textLanguage == nil, index.collectionID.utf8.elementsEqual(collectionID.utf8)
      else { return false }
      let suffix = Self.suffixFields(of: need)
      let fields = Self.fieldsToCompare(of: index)
      guard fields.count >= suffix.count, Array(fields.suffix(suffix.count)) == suffix else { return false }
      let prefix = Self.prefixFields(of: index, before: need)
      // Vector searches do not merge indexes: a single index leads to the vectors.
      if need.vector != nil, prefix.count != need.equalities.count + (need.containing == nil ? 0 : 1) { return false }
      return prefix.allSatisfy { field in
        field.mode == .contains ? field.path == need.containing : need.equalities.contains(field.path)
      }
    }
  }

  /// The fields of an index for comparison with a need. The name is left out before a vector, where its order has no
  /// effect.
  private static func fieldsToCompare(of index: IndexDefinition) -> [IndexDefinition.Field] {
    guard let last = index.fields.last, case .vector = last.mode else { return index.completeFields }
    return index.fields.filter { !$0.path.isDocumentName }
  }

  private static func suffixFields(of need: Need) -> [IndexDefinition.Field] {
    need.order + (need.vector.map { [$0] } ?? [])
  }

  private static func prefixFields(
    of index: IndexDefinition, before need: Need
  ) -> ArraySlice<IndexDefinition.Field> {
    fieldsToCompare(of: index).dropLast(suffixFields(of: need).count)
  }

  /// The one index that answers a need by itself. As in the suggestions of production, the array comes first,
  /// followed by the equalities sorted by name. `__name__` is included only if its direction differs from the
  /// default, or if the index would otherwise have a single field.
  private func suggestedIndex(for need: Need) -> IndexDefinition {
    var fields = need.containing.map { [IndexDefinition.Field($0, .contains)] } ?? []
    fields += need.equalities.map { IndexDefinition.Field($0, .ascending) }
    fields += Self.suffixFields(of: need)
    let whole = IndexDefinition(collectionID: collectionID, scope: scope, fields: fields)
    guard need.vector == nil, fields.count > 1 else { return whole }
    let short = IndexDefinition(collectionID: collectionID, scope: scope, fields: fields.dropLast())
    return short.completeFields == fields && short.fields.count > 1 ? short : whole
  }

  /// Returns the index of ``suggestedIndex(for:)``. If a field is compared for equality and is also the field of an
  /// array-contains, returns those of the two indexes to merge that are not declared.
  private func suggestedIndexes(for need: Need, in configuration: IndexConfiguration) -> [RequiredIndex] {
    guard let path = need.containing, need.equalities.contains(path) else {
      return [.composite(suggestedIndex(for: need))]
    }
    var parts = [need, need]
    parts[0].equalities = []
    parts[1].containing = nil
    return parts.filter { !uncovered($0, usableIndexes(for: $0, in: configuration)).isEmpty }
      .map { .composite(suggestedIndex(for: $0)) }
  }
}
