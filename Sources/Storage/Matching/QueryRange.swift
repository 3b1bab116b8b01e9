package import DocumentModel
package import KeyEncoding
package import WireFormat

/// The documents that decide the result of a query: where they lie, what they hold, and from which place of the order
/// to which they stand.
///
/// A change of the database leaves the result as it was unless it touches a document that is in the range before or
/// after it.
package struct QueryRange: Sendable {
  /// What of the documents in the range went into the result.
  package enum Observation: Sendable {
    /// The documents.
    case documents
    /// That they are there, and the values of some fields; their places too, where a limit or an offset counts them.
    case values([FieldPath], places: Bool)
  }

  /// Where the documents lie.
  package let scope: QueryScope
  /// What went into the result.
  package let observation: Observation
  /// Whether missing documents that have descendants are results too. Needs a scope of one collection and name order.
  package let includesMissing: Bool
  /// The whole order, ending in the name.
  private let orders: [Order]
  private let required: [FieldPath]
  private let start: SortBound?
  private var end: SortBound?
  private var matcher: DocumentMatcher

  /// Takes the documents of `scope` that match `matcher`, have all fields of the order and all `required` ones, and
  /// stand between two positions of the order.
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

  /// Takes the documents that a listing shows: those that have all fields of the order, from a position in it on.
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

  /// About how much memory it holds, in bytes.
  package var bytes: Int {
    let fields = orders.reduce(0) { $0 + 32 * $1.path.segments.count } + 64 * required.count
    return 256 + scope.bytes + matcher.bytes + fields + (start?.code.count ?? 0) + (end?.code.count ?? 0)
  }

  /// Puts the place of a document in the order into `key`; returns whether the document is in the range.
  /// - Throws: ``WireError`` when the stored bytes are no fields.
  package mutating func place(
    of fields: EncodedMap, at path: ResourcePath, into key: inout [UInt8]
  ) throws(WireError) -> Bool {
    key.removeAll(keepingCapacity: true)
    guard try matcher.matches(fields, at: path), try SortKey.append(orders, fields, name: NameCode.encode(path), to: &key) else { return false }
    for field in required where try fields.value(at: field) == nil { return false }
    return SortKey.isWithin(key, start: start, end: end)
  }

  /// Whether the range, in name order, spans the place of a document, whatever it holds.
  package func spansName(_ path: ResourcePath) -> Bool {
    SortKey.isWithin(NameCode.encode(path) + [SortKey.endOfName], start: start, end: end)
  }

  /// Ends the range behind a document in it: what stands further back did not count.
  package mutating func end(behind fields: EncodedMap, at path: ResourcePath) throws(WireError) {
    var key: [UInt8] = []
    guard try SortKey.append(orders, fields, name: NameCode.encode(path), to: &key) else { return }
    end = SortBound(code: key, isBefore: false)
  }
}
