import DocumentModel
import DocumentStore
import Matching

/// The way a query is executed: the source of candidates, and the checks and sorting still to be done.
package struct QueryPlan: Sendable {
  /// The collections that the query reads.
  enum Scope: Sendable {
    /// None: no document can match.
    case none
    /// One collection, with the code of its path.
    case collection(ResourcePath, code: [UInt8])
    /// Several, in name order.
    case collections(QueryScope)
  }

  /// The way candidates are found in a collection.
  enum Access: Sendable {
    /// All documents by name.
    case names
    /// The entries of one field, by value and then by name.
    case values(ValueRange)
    /// The union of several alternatives, by name. Each alternative is the intersection of its points.
    case points([[Point]])
    /// The entries of declared indexes, in the order of the query.
    case ordered(OrderedIndexIterator)
  }

  /// A table of single-field entries, and a field.
  struct EntryField: Hashable, Sendable {
    var table: Table
    var number: UInt64
    var path: FieldPath

    /// Returns the prefix of the keys of the field's entries in a collection.
    func prefix(in collection: UInt64) -> [UInt8] {
      var key = StorageKey()
      key.begin(table)
      key.append(number: collection)
      key.append(number: number)
      return key.bytes
    }
  }

  /// The entries of a field between two codes, each of which begins with the code of a value. The upper code is
  /// exclusive.
  struct ValueRange: Sendable {
    var field: EntryField
    var lower: [UInt8] = []
    var upper: [UInt8]?
    /// The conditions in text form.
    var text: String
  }

  /// The entries of a field that have one value.
  struct Point: Sendable {
    var field: EntryField
    /// The complete code of the value.
    var code: [UInt8]
    /// The condition that the point answers.
    var condition: ResolvedQuery.Condition

    /// The condition in text form.
    var text: String { "\(field.path.text) \(field.table == .ascendingEntries ? "==" : "contains") …" }
  }

  /// The checks to make on each candidate, because its source does not guarantee them.
  struct Checks: Sendable {
    /// That it matches the filter of the query.
    var filter = true
    /// That it has the fields of the order and the required fields.
    var fields = true
    /// That it lies between the cursors.
    var bounds = true

    /// No checks: every candidate is a result.
    static let none = Checks(filter: false, fields: false, bounds: false)
    /// Whether every candidate is a result.
    var isEmpty: Bool { !filter && !fields && !bounds }
  }

  var scope: Scope
  var access: Access
  /// The names to scan, in the order of the scan: disjoint ranges.
  var names: [NameRange] = [.all]
  /// Whether candidates come in descending order.
  var isDescending = false
  /// Whether candidates come in the order of the query.
  var isOrdered = true
  /// Whether candidates come in the order of the query's first order field, so that only those with an equal value
  /// must be sorted.
  var isGrouped = false
  /// Whether candidates are sorted if they do not come in order.
  var isSorted = true
  var checks = Checks()
  /// Whether the query is over a collection group or a whole subtree.
  let isGroup: Bool
  /// The order, for the text form.
  let orders: [Order]
  let limit: Int?

  /// Whether all candidates come from one scan: of one collection, or of indexes over a group.
  var isOneIterator: Bool {
    switch (scope, access) {
    case (.collection, _): true
    case (.collections, .ordered): true
    default: false
    }
  }

  /// Whether candidates show the requested version, even if documents have changed since.
  var showsPast: Bool {
    if case .names = access { return !isDescending }
    return false
  }
}

extension QueryPlan: CustomStringConvertible {
  /// The plan in a stable text form: the outermost step first, each inner step indented.
  package var description: String {
    var lines: [String] = []
    if let limit { lines.append("limit \(limit)") }
    if !isOrdered, isSorted {
      let sorted = orders.dropFirst(isGrouped ? 1 : 0).map(\.text).joined(separator: ", ")
      lines.append("sort by \(sorted)\(isGrouped ? " within \(orders[0].path.text)" : "")")
    }
    if !checks.isEmpty { lines.append("filter") }
    lines.append(sourceText)
    return lines.enumerated().map { String(repeating: "  ", count: $0.offset) + $0.element }.joined(separator: "\n")
  }

  private var sourceText: String {
    guard let scopeText else { return "nothing" }
    let direction = isDescending ? " descending" : ""
    return switch access {
    case .names: "scan names of \(scopeText)\(namesText)\(direction)"
    case .values(let range): "scan entries of \(scopeText): \(range.text)\(direction)"
    case .ordered(let scans): "\(scans.text)\(direction)"
    case .points(let alternatives):
      "\(alternatives.count > 1 ? "unite" : alternatives[0].count > 1 ? "intersect" : "scan") entries of \(scopeText): "
        + alternatives.map { $0.map(\.text).joined(separator: " and ") }.joined(separator: " or ") + namesText
        + direction
    }
  }

  private var namesText: String {
    names.count > 1 ? " at \(names.count) names" : names.contains(where: \.isBounded) ? " between names" : ""
  }

  /// The collections as a pattern: `*` represents any collection, `**` any number of levels.
  private var scopeText: String? {
    switch scope {
    case .none: return nil
    case .collection(let path, _): return path.text
    case .collections(.group(let id, let root)): return below(root, "**/" + String(decoding: id, as: UTF8.self))
    case .collections(.children(let root)): return below(root, "*")
    case .collections(.subtree(let root)): return below(root, "**")
    case .collections(.collection(let path)): return path.text
    }
  }

  private func below(_ root: ResourcePath, _ pattern: String) -> String {
    root.isRoot ? pattern : "\(root.text)/\(pattern)"
  }
}

extension Order {
  /// The order in text form, such as `a.b descending`.
  package var text: String { isDescending ? "\(path.text) descending" : path.text }
}
