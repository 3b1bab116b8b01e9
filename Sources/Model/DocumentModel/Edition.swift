/// The edition of a database. Editions differ in their limits, value types and query order.
package enum Edition: Hashable, Sendable {
  /// The edition that every SDK expects.
  case standard
  /// The edition with larger documents and BSON types, whose queries sort only by the requested fields, then by
  /// name.
  case enterprise

  /// The size limit of one document, in bytes, as `DocumentSize` counts it.
  package var documentBytesMax: Int {
    switch self {
    case .standard: Limits.documentBytesMax
    case .enterprise: Limits.enterpriseDocumentBytesMax
    }
  }

  /// The size limit of one string or bytes value, in bytes.
  package var valueBytesMax: Int {
    switch self {
    case .standard: Limits.valueBytesMax
    case .enterprise: Limits.enterpriseDocumentBytesMax
    }
  }

  /// The size limit of one request, in bytes.
  package var requestBytesMax: Int {
    switch self {
    case .standard: Limits.requestBytesMax
    case .enterprise: Limits.enterpriseRequestBytesMax
    }
  }

  /// Whether a map with one reserved key can represent a value of a ``BSONType``.
  package var hasBSONTypes: Bool { self == .enterprise }
}
