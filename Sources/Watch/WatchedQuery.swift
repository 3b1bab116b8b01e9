package import DocumentModel
import KeyEncoding
import Matching
package import QueryEngine

/// The documents or the query that a target follows, prepared for the hub.
package enum TargetSelection: Sendable {
  /// Documents, without duplicates.
  case documents([DocumentKey])
  case query(WatchedQuery)

  /// The fields that clients receive; `nil` for all.
  package var projection: FieldMask? {
    if case .query(let query) = self { query.projection } else { nil }
  }

  /// A short text form of the target, for diagnostics.
  package var text: String {
    switch self {
    case .documents(let keys):
      return keys.prefix(3).map(\.path.text).joined(separator: ", ") + (keys.count > 3 ? ", …" : "")
    case .query(let query): return query.text
    }
  }
}

/// A query that a target follows, or the query that finds the same documents as a pipeline.
package final class WatchedQuery: Sendable {
  /// The way the hub tracks the query's results.
  enum Shape: Equatable, Sendable {
    /// The query never has results.
    case nothing
    /// Whether a document is a result depends only on the document.
    case each
    /// Results are at these positions of the order. The hub keeps a window of them.
    case window(Range<Int>)
    /// There are too many positions to keep. Each change requires that the query runs again.
    case whole
  }

  /// The identity of a query. Equal queries share a view.
  struct Key: Hashable, Sendable {
    /// Distinguishes collections by bytes, because the text in the query compares by Unicode equivalence.
    var scope: QueryScope
    var query: Query
    /// A pipeline has no implicit order by the fields of inequalities.
    var isOfPipeline: Bool
  }

  /// The query whose results rules must allow.
  package let provable: Query
  /// Whether the target follows a pipeline.
  package let isOfPipeline: Bool

  /// The checked and completed query.
  package let resolved: ResolvedQuery
  let scope: QueryScope
  let shape: Shape
  let key: Key
  /// Determines whether a document can be a result, and its position in the order; `nil` if the query never has
  /// results.
  let range: QueryRange?
  /// A field that has the same value in every result, and the code of that value.
  let pin: (field: FieldPath, code: [UInt8])?
  /// The query that reads a window and its slack.
  let filling: ResolvedQuery

  /// The highest end position of a window that is kept in memory.
  static let windowMax = 2000

  /// Checks and completes a query.
  ///
  /// If the query is that of a pipeline, `provable` is the query whose results rules must allow.
  /// - Throws: ``QueryError`` for the first rule that the query violates, with the documented text.
  package init(
    _ query: Query, in database: DatabaseID, edition: Edition, ofPipelineWith provable: Query? = nil
  ) throws(QueryError) {
    let edition = provable == nil ? edition : .enterprise
    self.provable = provable ?? query
    isOfPipeline = provable != nil
    resolved = try ResolvedQuery(query, in: database, edition: edition)
    scope = QueryScope(query)
    key = Key(scope: scope, query: query, isOfPipeline: isOfPipeline)
    range = resolved.range()
    pin = query.filter.flatMap(Self.pin)
    shape = Self.shape(query)
    var whole = query
    if case .window(let places) = shape {
      whole.offset = 0
      whole.limit = ResultWindow.capacity(places)
    }
    filling = try ResolvedQuery(whole, in: database, edition: edition)
  }

  private static func pin(_ filter: QueryFilter) -> (field: FieldPath, code: [UInt8])? {
    switch filter {
    case .field(let path, .equal, let value) where !path.isDocumentName: (path, OrderedCode.encode(value))
    case .and(let filters): filters.lazy.compactMap(pin).first
    default: nil
    }
  }

  private static func shape(_ query: Query) -> Shape {
    guard let limit = query.limit else { return query.offset == 0 ? .each : .whole }
    if limit == 0 { return .nothing }
    let (end, overflow) = query.offset.addingReportingOverflow(limit)
    return overflow || end > windowMax ? .whole : .window(query.offset..<end)
  }

  /// The approximate size of the query's operands, in bytes. The hub keeps several copies of them.
  package var operandBytes: Int {
    let bounds = [resolved.query.start, resolved.query.end].compactMap { $0?.values }.joined()
    return bounds.reduce(resolved.query.filter.map(Self.bytes) ?? 0) { $0 + Self.bytes($1) }
  }

  private static func bytes(_ filter: QueryFilter) -> Int {
    switch filter {
    case .field(_, _, let value): bytes(value)
    case .unary: 0
    case .and(let filters), .or(let filters): filters.reduce(0) { $0 + bytes($1) }
    }
  }

  /// Recurses at most as deep as documents can be nested.
  private static func bytes(_ value: Value) -> Int {
    switch value {
    case .string(let text), .reference(let text): 16 + text.utf8.count
    case .bytes(let bytes): 16 + bytes.count
    case .array(let values): values.reduce(16) { $0 + bytes($1) }
    case .map(let map): map.entries.reduce(16) { $0 + $1.key.utf8.count + bytes($1.value) }
    default: 16
    }
  }

  /// The fields that clients receive; `nil` for all.
  var projection: FieldMask? { resolved.query.projection }

  /// A short text form of the query, for diagnostics.
  var text: String {
    var text =
      switch scope {
      case .collection(let path): path.text
      case .group(let id, let root): (root.isRoot ? "" : root.text + "/") + "**/" + String(decoding: id, as: UTF8.self)
      case .children(let root): (root.isRoot ? "" : root.text + "/") + "*"
      case .subtree(let root): (root.isRoot ? "" : root.text + "/") + "**"
      }
    if resolved.query.filter != nil { text += " where …" }
    let orders = resolved.query.orders.filter { !$0.path.isDocumentName }
    if !orders.isEmpty {
      text += " order by " + orders.map { $0.path.text + ($0.isDescending ? " desc" : "") }.joined(separator: ", ")
    }
    if let limit = resolved.query.limit { text += " limit \(limit)" }
    return text
  }
}
