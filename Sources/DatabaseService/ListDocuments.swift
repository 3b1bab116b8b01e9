import FieldMatch
package import DocumentModel
import DocumentStore
import WireFormat

/// What a ListDocuments call asks for.
package struct ListDocumentsRequest: Sendable {
  /// The collection.
  package var collection: ResourcePath
  /// The most documents of a page; 0 for the default.
  package var pageSize = 0
  /// What an earlier page ended with; empty for the first page.
  package var pageToken: [UInt8] = []
  /// The order as text; empty for name order.
  package var orderBy = ""
  /// Whether documents that are missing but have descendants are listed.
  package var showMissing = false
  /// The moment to show.
  package var consistency = Consistency.latest

  /// Asks for the first page of a collection in name order.
  package init(_ collection: ResourcePath) { self.collection = collection }
}

extension Service {
  /// Lists a page of a collection: calls `found` per document and returns the token of the next page, empty at the end.
  ///
  /// In name order a page is one scan. With an order on fields every page reads the whole collection and keeps the
  /// page in memory. A page ends early when it holds ``pageBytesMax`` of stored documents, or when `answerBytes`, the
  /// length of what the dialect made of them, comes to that: deep maps take many times their stored bytes in JSON.
  /// - Throws: `INVALID_ARGUMENT` for a bad size, token or order, or an order together with `showMissing`.
  package func listDocuments(
    _ request: ListDocumentsRequest, in id: DatabaseID, answerBytes: () -> Int = { 0 },
    found: (FoundDocument) throws -> Void
  ) throws -> [UInt8] {
    let database = try database(id)
    guard request.pageSize >= 0 else { throw Status(.invalidArgument, "Page size must be nonnegative.") }
    let orders = request.orderBy.isEmpty ? [] : try OrderBy.parse(request.orderBy)
    if request.showMissing, !request.orderBy.isEmpty {
      throw Status(.invalidArgument, "cannot specify an order when show_missing is true")
    }
    let binding = PageToken.Binding(
      "documents", request.collection.text, request.orderBy, request.showMissing ? "missing" : "")
    let after = try request.pageToken.isEmpty ? nil : PageToken.position(request.pageToken, binding)
    let limit = min(request.pageSize == 0 ? Limits.pageSizeDefault : request.pageSize, Self.pageDocumentsMax)
    return try database.read(request.consistency) { reader, moment in
      var last: [UInt8]?
      var lastKey: DocumentKey?
      let found: (FoundDocument) throws -> Void = { document in
        lastKey = document.key
        try found(document)
      }
      if orders.isEmpty || orders == [Order(FieldPath(field: "__name__"))] {
        last = try Self.listByName(request, limit: limit, after: after, at: moment, &reader, answerBytes, found: found)
      } else {
        last = try Self.listOrdered(
          request.collection, orders, limit: limit, after: after, at: moment, &reader, answerBytes, found: found)
      }
      if let transaction = moment.transaction {
        var range = Self.range(of: request, orders, after: after, in: id)
        if last != nil, let lastKey {
          let document = try database.document(lastKey, at: moment, &reader)
          let fields = EncodedMap(documentFields: document?.fields ?? UnsafeRawBufferPointer(start: nil, count: 0))
          try range.end(behind: fields, at: lastKey.path)
        }
        database.transactions.note(range, in: transaction)
      }
      return last.map { PageToken.encode($0, binding) } ?? []
    }
  }

  /// What decides a page, up to the end of the collection. A page by fields counts from the beginning: those before it
  /// were read in the same transaction, mostly.
  private static func range(
    of request: ListDocumentsRequest, _ orders: [Order], after: [UInt8]?, in id: DatabaseID
  ) -> QueryRange {
    let byName = [Order(FieldPath(field: "__name__"))]
    return QueryRange(
      listing: request.collection, orders: orders.isEmpty ? byName : orders,
      after: orders.isEmpty || orders == byName ? after : nil, includesMissing: request.showMissing, in: id)
  }

  /// The version of the last change of a collection, and the life of the database it counts in: together they name
  /// one state of the collection's documents.
  package func collectionState(
    _ collection: ResourcePath, in id: DatabaseID
  ) throws -> (incarnation: UInt64, lastChange: Int64) {
    let database = try database(id)
    let incarnation = database.incarnation
    return try database.read { reader in (incarnation, try reader.collection(collection)?.lastChange ?? 0) }
  }

  /// Documents of one page, whatever was asked for.
  private static let pageDocumentsMax = 10_000
  /// Stored bytes of one page, in bytes, so that no answer needs memory without bound.
  private static let pageBytesMax = 8 << 20

  /// Returns the id the next page starts after, or `nil` at the end.
  private static func listByName(
    _ request: ListDocumentsRequest, limit: Int, after: [UInt8]?, at moment: ReadMoment,
    _ reader: inout DocumentReader, _ answerBytes: () -> Int, found: (FoundDocument) throws -> Void
  ) throws -> [UInt8]? {
    var scan: CollectionScan?
    if let row = try reader.collection(request.collection) {
      scan = try CollectionScan(
        reader.snapshot, collection: row.number, from: after.map(CollectionScan.Start.after) ?? .beginning,
        at: moment.version)
    }
    var parents: SubtreeSegments?
    if request.showMissing {
      parents = try SubtreeSegments(reader.snapshot, below: request.collection, after: after, at: moment.version)
    }
    var document = try scan?.next()
    var parent = try parents?.next()
    var last: [UInt8] = []
    var count = 0
    var bytes = 0
    while document != nil || parent != nil {
      if count == limit || max(bytes, answerBytes()) >= pageBytesMax { return last }
      var id: [UInt8] = []
      if document != nil { scan?.appendID(to: &id) }
      var isMissing = document == nil
      if let parent, let order = document.map({ _ in ResourceID.compare(parent, id) }) { isMissing = order == .less }
      if isMissing, let parent { id = parent }
      guard let key = DocumentKey(request.collection.appending(id)) else { break }
      try found(FoundDocument(key: key, stored: isMissing ? nil : document))
      last = id
      count += 1
      if parent == id { parent = try parents?.next() }
      if !isMissing {
        bytes += document?.fields.count ?? 0
        document = try scan?.next()
      }
    }
    return nil
  }

  /// Returns the order key the next page starts after, or `nil` at the end.
  private static func listOrdered(
    _ collection: ResourcePath, _ orders: [Order], limit: Int, after: [UInt8]?, at moment: ReadMoment,
    _ reader: inout DocumentReader, _ answerBytes: () -> Int, found: (FoundDocument) throws -> Void
  ) throws -> [UInt8]? {
    guard limit > 0, let row = try reader.collection(collection) else { return nil }
    var page = LowestKeys(count: limit + 1)
    var scan = try CollectionScan(reader.snapshot, collection: row.number, at: moment.version)
    var key: [UInt8] = []
    while let document = try scan.next() {
      key.removeAll(keepingCapacity: true)
      var id: [UInt8] = []
      scan.appendID(to: &id)
      guard try appendOrderKey(orders, document, id: id, to: &key) else { continue }
      if let after, Ordering.bytes(key, after) != .greater { continue }
      page.add(key, id: id)
    }
    let entries = page.sorted()
    var bytes = 0
    for (index, entry) in entries.prefix(limit).enumerated() {
      if index > 0, max(bytes, answerBytes()) >= pageBytesMax { return entries[index - 1].key }
      let document: StoredDocument? =
        if let version = moment.version {
          try reader.document(entry.id, in: row.number, at: version)
        } else {
          try reader.document(entry.id, in: row.number)
        }
      if let document, let key = DocumentKey(collection.appending(entry.id)) {
        bytes += document.fields.count
        try found(FoundDocument(key: key, stored: document))
      }
    }
    return entries.count > limit ? entries[limit - 1].key : nil
  }

  /// Appends the place of a document in an order; returns `false` where it lacks a field of the order.
  ///
  /// Of each value ``Limits/indexedValueBytesMax`` take part, as in an index; documents that tie there stand by name.
  /// So a page's memory, and the token that holds such a key, stay small.
  private static func appendOrderKey(
    _ orders: [Order], _ document: StoredDocument, id: [UInt8], to key: inout [UInt8]
  ) throws -> Bool {
    let fields = EncodedMap(documentFields: document.fields)
    for order in orders {
      let start = key.count
      if order.path.isDocumentName {
        OrderedCode.append(segment: id, to: &key)
      } else {
        guard let value = try fields.value(at: order.path) else { return false }
        try OrderedCode.append(value, to: &key)
      }
      if order.isDescending {
        for index in start..<key.count { key[index] = ~key[index] }
      }
    }
    return true
  }
}
