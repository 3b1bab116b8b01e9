import DocumentModel
import DocumentStore

/// How a query is answered: where candidates come from, and what is still to be done with them.
///
/// Every candidate is tried against the whole filter and the bounds, so a plan can be slow but not wrong.
package struct QueryPlan: Sendable {
  /// Where candidates come from.
  indirect enum Source: Sendable {
    /// Nothing can match.
    case nothing
    /// Documents of one collection in name order, within bounds on the name.
    case names(ResourcePath)
    /// Documents of several collections, one collection behind the other.
    case collections([ResourcePath])
    /// Everything below a path, in name order.
    case walk(below: ResourcePath)
    /// Entries of one field.
    case entries(ResourcePath, EntryUse)
    /// Ids that all of several equalities name.
    case intersection(ResourcePath, [EntryUse])
    /// Ids that any of several alternatives name, each an intersection of equalities.
    case union(ResourcePath, [[EntryUse]])
  }

  /// A range of entries with what it stands for.
  struct EntryUse: Sendable {
    var range: EntryRange
    var path: FieldPath
    /// The condition in text, for ``QueryPlan/description``.
    var text: String
  }

  let source: Source
  /// Whether candidates come in the order of the query already.
  let isOrdered: Bool
  /// Whether candidates that do not come in order are to be sorted.
  let isSorted: Bool
  /// Whether entries are read from the highest to the lowest.
  let isDescending: Bool
  /// Whether the query is over a group, or over all there is.
  let isGroup: Bool
  /// The order, for the text.
  let orders: [Order]
  let limit: Int?
}

extension QueryPlan: CustomStringConvertible {
  /// The plan in a stable text form: the outermost step first, each inner one indented.
  package var description: String {
    var lines: [String] = []
    if let limit { lines.append("limit \(limit)") }
    if !isOrdered, isSorted { lines.append("sort by \(orders.map(\.text).joined(separator: ", "))") }
    lines.append("filter")
    lines.append(sourceText)
    return lines.enumerated().map { String(repeating: "  ", count: $0.offset) + $0.element }.joined(separator: "\n")
  }

  private var sourceText: String {
    let direction = isDescending ? " descending" : ""
    return switch source {
    case .nothing: "nothing"
    case .names(let path): "scan names of \(path)\(direction)"
    case .collections(let paths): "scan \(paths.count) collections"
    case .walk(let path): "walk all below /\(path)"
    case .entries(let path, let use): "scan entries of \(path): \(use.text)\(direction)"
    case .intersection(let path, let uses):
      "intersect entries of \(path): \(uses.map(\.text).joined(separator: " and "))\(direction)"
    case .union(let path, let alternatives):
      "unite entries of \(path): "
        + alternatives.map { $0.map(\.text).joined(separator: " and ") }.joined(separator: " or ") + direction
    }
  }
}

extension Order {
  /// `a.b descending`.
  package var text: String { isDescending ? "\(path.text) descending" : path.text }
}
