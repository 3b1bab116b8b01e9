package import DocumentModel
package import KeyEncoding
package import WireFormat

/// The documents that determine the result of a query: their collections, a filter, and a span of the query's order.
///
/// A change leaves the result as it was unless it affects a document that is in the range before or after the change.
package struct QueryRange: Sendable {
  /// The parts of the documents that the result depends on.
  package enum Observation: Sendable {
    /// The whole documents.
    case documents
    /// The existence of the documents and the values of some fields; also their positions, if a limit or an offset
    /// counts them.
    case values([FieldPath], comparesPositions: Bool)
  }

  /// The collections of the documents.
  package let scope: QueryScope
  package let observation: Observation
  /// Whether missing documents with descendants are results too. Requires a scope of one collection and name order.
  package let includesMissing: Bool
  /// The complete order, ending with the name.
  private let orders: [Order]
  private let required: [FieldPath]
  private let start: SortBound?
  private var end: SortBound?
  private var matcher: DocumentMatcher

  /// Creates the range of the documents in `scope` that match `matcher`, have all fields of the order and all
  /// `required` fields, and lie between two positions of the order.
  package init(
    _ scope: QueryScope, matching matcher: DocumentMatcher, orders: [Order], from start: SortBound?,
    to end: SortBound?, requiring required: [FieldPath] = [], observing observation: Observation = .documents
  ) {
    self.scope = scope
    self.matcher = matcher
    self.orders = orders
    self.start = start
    self.end = end
    self.required = required
    self.observation = observation
    includesMissing = false
  }

  /// Creates the range of a listing: the documents with all fields of the order, from a position in it on.
  package init(
    listing scope: QueryScope, orders: [Order], from start: SortBound?, includesMissing: Bool,
    in database: DatabaseID
  ) {
    self.scope = scope
    matcher = DocumentMatcher(nil, in: database)
    self.orders = orders
    self.includesMissing = includesMissing
    self.start = start
    required = []
    observation = .documents
  }

  /// The approximate memory of the range, in bytes.
  package var bytes: Int {
    let fields = orders.reduce(0) { $0 + 32 * $1.path.segments.count } + 64 * required.count
    return 256 + scope.bytes + matcher.bytes + fields + (start?.code.count ?? 0) + (end?.code.count ?? 0)
  }

  /// Writes the sort key of a document to `key`. Returns whether the document is in the range; if not, `key` may be
  /// incomplete.
  /// - Throws: ``WireError`` if the stored bytes are not valid fields.
  package mutating func place(
    of fields: EncodedMap, at path: ResourcePath, into key: inout [UInt8]
  ) throws(WireError) -> Bool {
    key.removeAll(keepingCapacity: true)
    guard try matcher.matches(fields, at: path),
      try SortKey.append(orders, fields, name: NameCode.encode(path), to: &key)
    else { return false }
    for field in required where try fields.value(at: field) == nil { return false }
    return SortKey.isWithin(key, start: start, end: end)
  }

  /// Returns whether a document's name lies in the span, regardless of its content. The order must be by name.
  package func spansName(_ path: ResourcePath) -> Bool {
    SortKey.isWithin(NameCode.encode(path) + [SortKey.endOfName], start: start, end: end)
  }

  /// Ends the range after a document in it, because later documents did not affect the result.
  /// - Throws: ``WireError`` if the stored bytes are not valid fields.
  package mutating func end(after fields: EncodedMap, at path: ResourcePath) throws(WireError) {
    var key: [UInt8] = []
    guard try SortKey.append(orders, fields, name: NameCode.encode(path), to: &key) else { return }
    end = SortBound(code: key, isBefore: false)
  }
}
