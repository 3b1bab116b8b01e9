import DocumentModel
import DocumentStore
import Matching

/// How a query is answered: where candidates come from, and what is still to be done with them.
package struct QueryPlan: Sendable {
  /// The collections that are looked at.
  enum Scope: Sendable {
    /// None: nothing can match.
    case none
    /// One, with the code of its path.
    case collection(ResourcePath, code: [UInt8])
    /// Several, in name order.
    case collections(QueryScope)
  }

  /// How candidates are found in a collection.
  enum Access: Sendable {
    /// All documents by name.
    case names
    /// The entries of one field, by value and then by name.
    case values(ValueRange)
    /// The documents that any of several alternatives name, each of points that must all agree; by name.
    case points([[Point]])
    /// The entries of declared indexes, in the order of the query.
    case ordered(OrderedIndexIterator)
  }

  /// A table of entries of one field.
  struct EntryField: Hashable, Sendable {
    var table: Table
    var number: UInt64
    var path: FieldPath

    /// What the keys of the entries of a collection begin with.
    func prefix(in collection: UInt64) -> [UInt8] {
      var key = StorageKey()
      key.begin(table)
      key.append(number: collection)
      key.append(number: number)
      return key.bytes
    }
  }

  /// Entries of a field between two codes, which a value begins; the upper one is outside.
  struct ValueRange: Sendable {
    var field: EntryField
    var lower: [UInt8] = []
    var upper: [UInt8]?
    /// The conditions in text.
    var text: String
  }

  /// The entries of a field with one value.
  struct Point: Sendable {
    var field: EntryField
    /// The whole code of the value.
    var code: [UInt8]
    /// What it stands for.
    var condition: ResolvedQuery.Condition

    /// The condition in text.
    var text: String { "\(field.path.text) \(field.table == .ascendingEntries ? "==" : "contains") …" }
  }

  /// What has to be asked of each candidate, because its source does not see to it.
  struct Checks: Sendable {
    /// The filter of the query.
    var filter = true
    /// That it has the fields of the order and those required besides.
    var fields = true
    /// That it lies between the cursors.
    var bounds = true

    /// Nothing: a candidate is a result.
    static let none = Checks(filter: false, fields: false, bounds: false)
    /// Whether a candidate is a result as it is.
    var isEmpty: Bool { !filter && !fields && !bounds }
  }

  var scope: Scope
  var access: Access
  /// The names that are looked at, in the order of the scan: one range, or several apart from each other.
  var names: [NameRange] = [.all]
  /// Whether candidates come from the highest to the lowest.
  var isDescending = false
  /// Whether candidates come in the order of the query.
  var isOrdered = true
  /// Whether candidates come by the first field of the order at least, so that only what is alike there is sorted.
  var isGrouped = false
  /// Whether candidates that do not come in order are sorted.
  var isSorted = true
  var checks = Checks()
  /// Whether the query is over a group, or over all there is.
  let isGroup: Bool
  /// The order, for the text.
  let orders: [Order]
  let limit: Int?

  /// Whether all candidates come from one scan: that of one collection, or of indexes over a group.
  var isOneIterator: Bool {
    switch (scope, access) {
    case (.collection, _): true
    case (.collections, .ordered): true
    default: false
    }
  }

  /// Whether candidates show the version that is read whatever changed since.
  var showsPast: Bool {
    if case .names = access { return !isDescending }
    return false
  }
}

extension QueryPlan: CustomStringConvertible {
  /// The plan in a stable text form: the outermost step first, each inner one indented.
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

  /// The collections as a pattern: `*` stands for any collection, `**` for any number of levels.
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
  /// `a.b descending`.
  package var text: String { isDescending ? "\(path.text) descending" : path.text }
}
