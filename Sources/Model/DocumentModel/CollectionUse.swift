/// The documents of one or several collections, and the bytes of their rows.
///
/// The bytes are those of keys and values. The file is larger: it also contains the tree of pages, free space, and the
/// change log, which belongs to no collection here.
package struct CollectionUse: Equatable, Sendable {
  package var documents = 0
  package var documentBytes = 0
  package var indexEntries = 0
  package var indexBytes = 0
  /// The number of before-images, which reads in the past need.
  package var history = 0
  package var historyBytes = 0

  /// The bytes of all rows.
  package var bytes: Int { documentBytes + indexBytes + historyBytes }

  /// The JSON names of ``values``, and their titles in tables.
  package static let columns: [(name: StaticString, title: String)] = [
    ("documents", "documents"), ("documentBytes", "document bytes"), ("indexEntries", "index entries"),
    ("indexBytes", "index bytes"), ("history", "before-images"), ("historyBytes", "history bytes"),
  ]

  /// The numbers, in the order of ``columns``.
  package var values: [Int] { [documents, documentBytes, indexEntries, indexBytes, history, historyBytes] }

  package init() {}

  /// Creates the use with numbers in the order of ``columns``. Missing numbers are 0.
  package init(_ values: [Int]) {
    let values = values + [Int](repeating: 0, count: max(0, Self.columns.count - values.count))
    (documents, documentBytes, indexEntries) = (values[0], values[1], values[2])
    (indexBytes, history, historyBytes) = (values[3], values[4], values[5])
  }
}

/// The collections whose use is counted, and the rows in which they are counted.
package struct CollectionChoice: Equatable, Sendable {
  /// How collections share a row.
  package enum Grouping: String, CaseIterable, Sendable {
    /// Collections whose paths differ only in the IDs of documents, such as `users/*/notes`.
    case pattern
    /// Collections with the same ID.
    case group
    /// No collections share a row.
    case path
  }

  package var grouping: Grouping
  /// The path at or below which collections are counted.
  package var root: ResourcePath
  /// Collections below this number of levels are counted with the collection that contains them; `nil` for no limit.
  package var depth: Int?

  package init(_ grouping: Grouping = .pattern, below root: ResourcePath = .root, depth: Int? = nil) {
    (self.grouping, self.root, self.depth) = (grouping, root, depth)
  }

  /// Returns the name of the row of a collection, or `nil` if the collection is not counted.
  package func name(of collection: ResourcePath) -> String? {
    guard collection.isAtOrBelow(root) else { return nil }
    var segments = collection.segments
    if let depth, segments.count > 2 * depth - 1 { segments.removeLast(segments.count - (2 * depth - 1)) }
    switch grouping {
    case .group: return segments.last.map { String(decoding: $0, as: UTF8.self) }
    case .path: return String(decoding: Array(segments.joined(separator: [UInt8(ascii: "/")])), as: UTF8.self)
    case .pattern:
      return segments.enumerated().map { $0.isMultiple(of: 2) ? String(decoding: $1, as: UTF8.self) : "*" }
        .joined(separator: "/")
    }
  }
}
