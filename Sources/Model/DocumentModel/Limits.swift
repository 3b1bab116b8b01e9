/// Every documented bound in one place, with its unit and its source.
///
/// Source of the numbers: firestore-api.md, sections 0, 5, 7 and 12.
package enum Limits {
  /// A collection id or document id, in UTF-8 bytes.
  package static let resourceIDBytesMax = 1500
  /// A document name from the database root on, in bytes.
  package static let documentNameBytesMax = 6 << 10
  /// Levels of collections below the root.
  package static let collectionDepthMax = 100
  /// A field name or map key, in UTF-8 bytes.
  package static let fieldNameBytesMax = 1500
  /// One document of a standard database as ``Document`` size is counted, in bytes: 1 MiB minus 4.
  package static let documentBytesMax = (1 << 20) - 4
  /// One string or bytes value, in bytes: 1 MiB minus 89.
  package static let valueBytesMax = (1 << 20) - 89
  /// Levels of maps and arrays inside one field.
  package static let nestingDepthMax = 20
  /// Entries in all indexes for one document.
  package static let indexEntriesMax = 40_000
  /// The codes of one entry of an index of several fields, in bytes: twice the documented 7.5 KiB, because a code can
  /// take two bytes for one.
  package static let indexEntryCodeBytesMax = 15 << 10
  /// The codes of all entries that one document has in one index of several fields, in bytes: twice the documented
  /// 8 MiB.
  package static let indexEntriesBytesMax = 16 << 20
  /// Bytes of a value that take part in an index key; longer values tie there and are settled by the document.
  package static let indexedValueBytesMax = 1500
  /// Field transforms on one document in one request.
  package static let transformsPerDocumentMax = 500
  /// One request, in bytes.
  package static let requestBytesMax = 10 << 20
  /// One document of an enterprise database, in bytes.
  package static let enterpriseDocumentBytesMax = 16 << 20
  /// One request to an enterprise database, in bytes: its largest document and what goes around it.
  package static let enterpriseRequestBytesMax = 17 << 20
  /// Life of a transaction, in seconds.
  package static let transactionSecondsMax = 270
  /// Idle life of a transaction, in seconds.
  package static let transactionIdleSecondsMax = 60
  /// Open transactions of one database; the one idle longest gives way.
  package static let transactionsMax = 10_000
  /// Components of a vector.
  package static let vectorDimensionsMax = 2048
  /// Documents that one search for the nearest vectors returns.
  package static let nearestDocumentsMax = 1000
  /// Fields of one order: as many as an index can have.
  package static let orderFieldsMax = 100
  /// Documents of a page when the request names no size.
  package static let pageSizeDefault = 300
}
