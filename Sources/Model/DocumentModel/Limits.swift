/// The documented limits of documents, indexes, requests, transactions and queries. ``pageSizeDefault`` is not a limit
/// but the default page size of a list request.
///
/// Each comment has three parts in this order: the limited quantity with its unit, the effect of the limit, the source.
package enum Limits {
  /// A collection ID or document ID, in UTF-8 bytes. A longer ID is INVALID_ARGUMENT. Source: firestore-api.md,
  /// section 0.
  package static let resourceIDBytesMax = 1500
  /// A document name below the documents root, in UTF-8 bytes. A longer name is INVALID_ARGUMENT. Source:
  /// firestore-api.md, section 12.
  package static let documentNameBytesMax = 6 << 10
  /// The levels of collections in a document name. A deeper name is INVALID_ARGUMENT. Source: firestore-api.md,
  /// section 12.
  package static let collectionDepthMax = 100
  /// A field name or map key, in UTF-8 bytes. A longer name is INVALID_ARGUMENT. Source: firestore-api.md, section
  /// 0.
  package static let fieldNameBytesMax = 1500
  /// One document of a standard database, in bytes as `DocumentSize` counts it (1 MiB minus 4). Writing a larger
  /// document is INVALID_ARGUMENT. Source: firestore-api.md, section 12.
  package static let documentBytesMax = (1 << 20) - 4
  /// One string or bytes value in a standard database, in bytes (1 MiB minus 89). Writing a longer value is
  /// INVALID_ARGUMENT. Source: firestore-api.md, section 12.
  package static let valueBytesMax = (1 << 20) - 89
  /// The levels of maps and arrays inside one field. Writing a deeper value is INVALID_ARGUMENT. Source:
  /// firestore-api.md, section 12.
  package static let nestingDepthMax = 20
  /// The entries of one document in all indexes. Writing a document with more is INVALID_ARGUMENT. Source:
  /// firestore-api.md, section 12.
  package static let indexEntriesMax = 40_000
  /// The encoded values of one entry in a composite index, in bytes. Writing a document with a larger entry is
  /// INVALID_ARGUMENT. This is twice the documented 7.5 KiB, because an encoded byte can take two bytes. Source:
  /// firestore-api.md, section 12.
  package static let indexEntryCodeBytesMax = 15 << 10
  /// The encoded values of all entries of one document in one composite index, in bytes. Writing a document with
  /// more is INVALID_ARGUMENT. This is twice the documented 8 MiB, because an encoded byte can take two bytes.
  /// Source: firestore-api.md, section 12.
  package static let indexEntriesBytesMax = 16 << 20
  /// The encoded bytes of one value in an index entry. Longer values are truncated: filters still compare whole
  /// values, but values that agree up to the limit sort by the next part of the order. Source: firestore-api.md,
  /// section 12.
  package static let indexedValueBytesMax = 1500
  /// The bytes of a word in a text index. Of a longer word, this many bytes from the start count, so a search finds all
  /// words that begin with them. Source: Hearth's own limit, which bounds the size of an entry.
  package static let indexedWordBytesMax = 128
  /// The field transforms of one document in one request. A request with more is INVALID_ARGUMENT. Source:
  /// firestore-api.md, section 7.2.
  package static let transformsPerDocumentMax = 500
  /// One request to a standard database, in bytes. A larger request is rejected with status 413, over gRPC with
  /// RESOURCE_EXHAUSTED. Source: firestore-api.md, section 12.
  package static let requestBytesMax = 10 << 20
  /// One request whose body an event loop decodes, in bytes. If a Commit, BatchWrite, BatchGetDocuments, RunQuery or
  /// RunAggregationQuery is larger, another thread decodes it, because that takes more than a few milliseconds. Source:
  /// Hearth's own limit, which bounds how long one request holds back the others of its event loop.
  package static let decodedOnLoopBytesMax = 256 << 10
  /// One document, and one string or bytes value, of an enterprise database, in bytes. Writing a larger one is
  /// INVALID_ARGUMENT. Source: firestore-api.md, section 12.
  package static let enterpriseDocumentBytesMax = 16 << 20
  /// One request to an enterprise database, in bytes: its largest document and 1 MiB for the rest. A larger request
  /// is rejected with status 413, over gRPC with RESOURCE_EXHAUSTED. Source: firestore-api.md, section 12.
  package static let enterpriseRequestBytesMax = 17 << 20
  /// The age of a transaction, in seconds. An older transaction ends: using it is ABORTED, or INVALID_ARGUMENT if it
  /// is read-only. Source: firestore-api.md, section 12.
  package static let transactionSecondsMax = 270
  /// The time that a transaction is idle, in seconds. A transaction that is idle for longer ends: using it is ABORTED,
  /// or INVALID_ARGUMENT if it is read-only. Source: firestore-api.md, section 12.
  package static let transactionIdleSecondsMax = 60
  /// The open transactions of one database. When another one begins, the transaction that was idle longest ends.
  /// Source: Hearth's own limit, which bounds memory.
  package static let transactionsMax = 10_000
  /// The age of the authorization of a response, in seconds. If a response takes longer and there were commits
  /// meanwhile, the newest state must allow the rest of it, otherwise the response ends with PERMISSION_DENIED. Source:
  /// Hearth's own limit, which bounds how long a slow client keeps access that it has lost.
  package static let authorizationAgeSecondsMax = 1
  /// The components of a vector. Writing or searching for a longer vector is INVALID_ARGUMENT. Source:
  /// firestore-api.md, section 5.2.
  package static let vectorDimensionsMax = 2048
  /// The documents that one vector search returns. A search with a higher limit is INVALID_ARGUMENT. Source:
  /// firestore-api.md, section 5.2.
  package static let nearestDocumentsMax = 1000
  /// The fields in the `orderBy` of a list request, as many as a composite index can have. A request with more is
  /// INVALID_ARGUMENT. Source: firestore-api.md, section 12.
  package static let orderFieldsMax = 100
  /// The levels of values inside one argument of a pipeline: arrays, maps, functions and nested pipelines. A deeper
  /// pipeline is INVALID_ARGUMENT. Source: Hearth's own limit, which bounds the stack; it leaves room for
  /// ``subpipelineDepthMax`` nested pipelines.
  package static let pipelineNestingDepthMax = 100
  /// The levels of nested pipelines in a pipeline. A deeper pipeline is INVALID_ARGUMENT. Source: pipelines.md,
  /// section 6.4.
  package static let subpipelineDepthMax = 20
  /// The documents on one page of a list request that sets no page size. The response has a token for the next
  /// page. Source: firestore-api.md, section 14.
  package static let pageSizeDefault = 300
}
