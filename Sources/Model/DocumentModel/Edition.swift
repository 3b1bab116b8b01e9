/// Which of the two kinds of database one is: they differ in limits, in types of values and in how queries are ordered.
package enum Edition: Hashable, Sendable {
  /// The kind that every SDK expects.
  case standard
  /// Larger documents, BSON types, and queries that are ordered only as they ask.
  case enterprise

  /// One document as its size is counted, in bytes.
  package var documentBytesMax: Int {
    switch self {
    case .standard: Limits.documentBytesMax
    case .enterprise: Limits.enterpriseDocumentBytesMax
    }
  }

  /// One string or bytes value, in bytes.
  package var valueBytesMax: Int {
    switch self {
    case .standard: Limits.valueBytesMax
    case .enterprise: Limits.enterpriseDocumentBytesMax
    }
  }

  /// One request, in bytes.
  package var requestBytesMax: Int {
    switch self {
    case .standard: Limits.requestBytesMax
    case .enterprise: Limits.enterpriseRequestBytesMax
    }
  }

  /// Whether maps with one reserved key stand for values of ``BSONType``.
  package var hasBSONTypes: Bool { self == .enterprise }
}
