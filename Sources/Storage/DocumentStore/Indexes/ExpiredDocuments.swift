import Basics
import DocumentModel
import KeyEncoding
import KeyValue
import WireFormat

/// A search for expired documents: those with a timestamp in the past in a field configured to expire.
struct ExpiredDocuments {
  /// A document to delete, unless it changes after it was found.
  struct Found {
    var key: DocumentKey
    var updateVersion: Int64
  }

  /// The most documents found by one search.
  static let countMax = 300

  private let catalog: IndexCatalog
  private let now: Int64
  private var reader: SnapshotReader
  private var found: [Found] = []

  /// Returns up to ``countMax`` expired documents.
  ///
  /// Cost: one seek per collection. If the field is exempt from indexing, it reads all documents of its collections.
  static func find(
    _ catalog: IndexCatalog, now: Int64, _ reader: inout SnapshotReader
  ) throws(StorageError) -> [Found] {
    var search = ExpiredDocuments(catalog: catalog, now: now, reader: reader)
    for field in catalog.expiringFields {
      for path in try reader.collections(ofGroup: Array(field.collectionID.utf8)) ?? [] {
        guard search.found.count < countMax else { return search.found }
        guard let number = try reader.collection(path)?.number else { continue }
        if catalog.mayScan(field.path, of: field.collectionID, .ascendingEntries) {
          try search.searchEntries(field.path, path, number)
        } else {
          try search.searchDocuments(field.path, path, number)
        }
      }
    }
    return search.found
  }

  private mutating func searchEntries(_ field: FieldPath, _ path: ResourcePath, _ number: UInt64) throws(StorageError) {
    guard let fieldNumber = try reader.fieldNumber(field) else { return }
    var prefix = StorageKey()
    prefix.begin(.ascendingEntries)
    prefix.append(number: number)
    prefix.append(number: fieldNumber)
    prefix.append(raw: CollectionOfOne(TypeBracket.timestamp.rawValue))
    let rows = PrefixCursor(try reader.snapshot.makeCursor(), prefix: prefix.bytes)
    try rows.seek(prefix)
    while found.count < Self.countMax, let suffix = try rows.suffix() {
      // The code of a timestamp is its microseconds in eight bytes, in the same form as a version.
      guard suffix.count > 8, OrderedCode.version(at: 0, of: suffix) <= now else { return }
      var id: [UInt8] = []
      let code = UnsafeRawBufferPointer(rebasing: suffix[8...])
      guard OrderedCode.decode(lastID: code, into: &id), let key = DocumentKey(path.appending(id)) else {
        throw .corruption(path: "ascendingEntries", detail: "an entry has no document ID")
      }
      if let document = try reader.document(id, in: number) {
        found.append(Found(key: key, updateVersion: document.updateVersion))
      }
      rows.consume()
    }
  }

  private mutating func searchDocuments(
    _ field: FieldPath, _ path: ResourcePath, _ number: UInt64
  ) throws(StorageError) {
    var scan = try DocumentIterator(reader.snapshot, collection: number)
    while found.count < Self.countMax, let document = try scan.next() {
      guard case .timestamp(let time)? = try? EncodedMap(documentFields: document.fields).value(at: field)?.content,
        time.microseconds <= now
      else { continue }
      var id: [UInt8] = []
      scan.appendID(to: &id)
      if let key = DocumentKey(path.appending(id)) {
        found.append(Found(key: key, updateVersion: document.updateVersion))
      }
    }
  }
}

extension DocumentDatabase {
  /// Deletes expired documents in ordinary commits, which listeners see. Returns at once.
  func removeExpired() {
    guard isAdopted, hasExpiringFields, background.beginExpiring() else { return }
    queues.aside { self.removeExpiredBatch() }
  }

  private func removeExpiredBatch() {
    let found = try? read { reader in
      try ExpiredDocuments.find(try indexes(&reader), now: clock.now(), &reader)
    }
    guard let found, !found.isEmpty, !background.isStopped else { return background.endExpiring() }
    // If a document was changed meanwhile, for example to expire later, its version differs and it stays.
    let writes = found.map { document in
      Write(
        .delete, key: document.key,
        precondition: .updateTime(Timestamp(uncheckedMicroseconds: document.updateVersion)))
    }
    commitEach(writes) { [self] results in
      // If no document could be deleted, the next maintenance tries again.
      let isProgress = results.contains { result in
        if case .success = result { true } else { false }
      }
      guard isProgress, found.count >= ExpiredDocuments.countMax else { return background.endExpiring() }
      queues.aside { self.removeExpiredBatch() }
    }
  }
}
